"""No fault that the simulated API can play is without its test."""

from pathlib import Path

import pytest

from app.simulator.acts import ACTS
from app.simulator.presets import PRESETS

HERE = Path(__file__).parent
PROMISES = """
Verda down, slow, throttling, garbage
  faults/test_reading.py::test_nothing_follows_from_an_answer_that_lies_or_fails
  faults/test_orders.py::test_an_order_that_goes_wrong_ends_right
  faults/test_deletions.py::test_a_deletion_that_goes_wrong_ends_right
  faults/test_answers.py::test_answers_are_right_and_quick_while_every_call_to_the_cloud_hangs
  faults/test_questions.py::test_answers_are_right_and_quick_during_every_fault
disk full, input/output error, locked, read-only
  store/test_disk_trouble.py::test_a_command_that_cannot_be_written_changes_nothing
  store/test_disk_trouble.py::test_readiness_recovers_only_when_the_disk_takes_a_write
  store/test_disk_trouble.py::test_a_read_only_database_is_refused_in_words
  faults/test_answers.py::test_writes_are_refused_at_once_while_the_disk_fails_and_reads_go_on
  faults/test_answers.py::test_writes_are_refused_at_once_while_somebody_holds_the_lock_and_reads_go_on
database corrupt at start
  store/test_bad_files.py::test_a_torn_page_is_found_at_start
  store/test_restore.py::test_a_database_beyond_repair_is_replaced
database lost
  e2e/test_lost_books.py::test_a_lost_database_waits_for_a_claim_and_then_serves_what_runs
older backup restored
  e2e/test_lost_books.py::test_an_older_backup_is_put_back_and_nothing_is_bought_twice
  reconcile/test_older_books.py::test_machines_made_since_are_taken_in_and_those_gone_since_are_lost
  reconcile/test_older_books.py::test_a_wish_that_was_given_back_since_is_not_bought
killed at any instant
  reconcile/test_crashes.py::test_a_deletion_survives_a_restart_at_any_step
  e2e/test_main_job.py::test_kill_at_a_random_instant_leaves_exactly_the_wanted_machines
  store/test_upgrades.py::test_a_migration_that_dies_anywhere_has_not_happened
  store/test_restore.py::test_nothing_starts_on_what_an_interrupted_restore_left
two replicas
  e2e/test_main_job.py::test_second_process_on_the_same_database_refuses_to_start
told to stop with work under way
  rpc/test_stop.py::test_what_was_let_in_is_answered_and_what_comes_is_refused
  e2e/test_main_job.py::test_sigterm_loses_no_answer_that_was_given
  e2e/test_main_job.py::test_sigterm_ends_it_within_five_seconds_even_while_orders_hang
bad configuration at start
  e2e/test_command_line.py::test_wrong_usage_is_told_and_changes_nothing
clock steps back
  ledger/test_commands.py::test_time_never_goes_back_in_the_log
  ledger/test_commands.py::test_time_does_not_go_back_over_a_restart_either
"""
"""Each kind of failure of the provider's surroundings, and the tests that prove what happens then."""
BY_HAND = {"listener_down", "neighbour_storm", "token_revoked"}
"""Faults of the catalogue that are not presets: they have calls or settings of their own."""
HELPERS = {"fail", "stick", "unstick", "unvanish", "offline", "set_status"}
"""Acts that are parts of others: the faults are `stuck_*`, `install_error`, `vanish*`, `guest_poweroff`, any status."""


@pytest.mark.parametrize("name", sorted((set(PRESETS) | set(ACTS) | BY_HAND) - HELPERS))
def test_every_fault_is_named_in_a_test(name: str) -> None:
    """With its right outcome beside it."""
    text = "".join(
        file.read_text(encoding="utf-8") for file in HERE.glob("test_*.py") if file.name != Path(__file__).name
    )
    assert f'"{name}"' in text or f"`{name}`" in text


@pytest.mark.parametrize("place", [line.strip() for line in PROMISES.splitlines() if "::" in line])
def test_every_kind_of_failure_has_its_tests(place: str) -> None:
    """They are there, under these names."""
    file, _, name = place.partition("::")
    assert f"def {name}(" in (HERE.parent / file).read_text(encoding="utf-8")
