"""What is promised, how long it may take, and which test would notice if it were not kept.

`python -m tests.docs.guarantees > docs/guarantees.md` makes the page. A proof is an invariant of the simulation by its
name, or a test as `path::test`; bounds are those that the simulation holds the program to.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple

from app.reconcile.jobs.observe import LIST_LAG
from app.reconcile.jobs.upkeep import FAILED_EXPIRY
from app.store.sqlite import PATIENCE_S
from tests.simulation.invariants import bounded
from tests.simulation.invariants.bounded import ALONE, FAIR, WASTE, WASTE_EACH, Condition
from tests.simulation.setting import CPU, GPU

ROOT: Final = Path(__file__).resolve().parents[2]
_SIMULATION: Final = "tests/simulation"
TORTURE: Final = "tests/torture/test_torture.py::test_ten_kills_lose_nothing_and_double_nothing"
_ANSWERS: Final = "tests/faults/test_answers.py"
_DOUBTFUL: Final = "tests/reconcile/test_doubtful_orders.py"
_OLDER: Final = "tests/reconcile/test_older_books.py"
_AT_ONCE: Final = "at once"
_ALWAYS: Final = "always"
_IN_THE_END: Final = "when nothing moves"


class Promise(NamedTuple):
    """One promise with its bound and its proofs."""

    words: str
    bound: str
    proofs: Sequence[str]


def _told(time: timedelta) -> str:
    seconds = round(time.total_seconds())
    return f"{seconds // 60} min" if seconds % 60 == 0 else f"{seconds} s"


def _fair(condition: Condition) -> str:
    return f"{_told(FAIR[condition])} (cloud)"


def _after(condition: Condition, name: str, setting: timedelta) -> str:
    return f"`{name}` + {_told(ALONE[condition] - setting)}"


PROMISES: Final[Mapping[str, Sequence[Promise]]] = {
    "Nothing is bought twice": [
        Promise(
            "What is ordered stands in the log before the order leaves, with the type, place and contract that is sent",
            _ALWAYS,
            ["every_order_follows_its_intent", "orders_carry_our_mark", "orders_carry_their_script"],
        ),
        Promise("For one wish there is one order at a time", _ALWAYS, ["one_order_at_a_time"]),
        Promise(
            "An order of unknown outcome is repeated only after three listings in a row, over at least "
            f"{_told(LIST_LAG)}, have shown no machine of its name",
            _ALWAYS,
            ["doubt_is_settled_before_ordering_again", "doubt_ends_by_looking_long_enough"],
        ),
        Promise(
            "Lists that lack a machine which is known to live count for nothing in that, however long they do",
            _ALWAYS,
            [
                "doubt_ends_by_looking_long_enough",
                f"{_DOUBTFUL}::test_lists_that_lack_machines_which_live_rule_nothing_out",
            ],
        ),
        Promise(
            "A machine is taken for an order in doubt only when it answers to its id, and never one that an earlier "
            "order of its name had made",
            _ALWAYS,
            [
                "an_old_stock_out_is_not_the_new_order",
                f"{_DOUBTFUL}::test_a_machine_found_for_an_order_is_taken_only_when_it_answers_to_its_id",
            ],
        ),
        Promise(
            "A kill between intent, order, answer and record leaves one machine for one wish",
            _ALWAYS,
            [
                "tests/reconcile/test_crashes.py::test_killed_at_any_instant_of_a_life_every_wish_has_one_machine",
                TORTURE,
            ],
        ),
        Promise(
            "Should the cloud execute an order after all that, the second machine goes",
            _fair(bounded.a_name_has_two_machines),
            ["a_name_has_two_machines", "nothing_wanted_is_surplus"],
        ),
        Promise(
            "What was given back, has ended or has a machine is never ordered again; a name is never used again",
            _ALWAYS,
            ["only_what_is_wanted_is_ordered", "an_order_waits_for_the_last_one", "names_are_never_used_again"],
        ),
        Promise("No group grows beyond its maximum", _ALWAYS, ["growth_stays_below_the_maximum"]),
    ],
    "Nothing is forgotten": [
        Promise(
            "An increase that was answered with OK is in the log for ever",
            _AT_ONCE,
            ["acknowledged_increases_are_remembered", "an_increase_is_seen_at_once", TORTURE],
        ),
        Promise(
            "A machine with our mark that costs money is an instance's, or on the list of machines to delete",
            _fair(bounded.a_machine_is_in_nobodys_books),
            ["a_machine_is_in_nobodys_books"],
        ),
        Promise(
            "It is known what became of an order, whatever the API answered",
            _fair(bounded.an_order_stays_unsettled),
            ["an_order_stays_unsettled"],
        ),
        Promise(
            "A wish has a machine or has failed",
            _after(bounded.a_wish_is_unanswered, "create_timeout", GPU.create_timeout),
            ["a_wish_is_unanswered"],
        ),
        Promise(
            "A machine runs or has failed",
            _after(bounded.a_machine_does_not_come_up, "provision_timeout", GPU.provision_timeout),
            ["a_machine_does_not_come_up"],
        ),
        Promise(
            "A failure that nobody collects is given back by itself",
            f"{_told(FAILED_EXPIRY)} + {_told(ALONE[bounded.a_failure_is_kept] - FAILED_EXPIRY)}",
            ["a_failure_is_kept"],
        ),
        Promise(
            "A copy of the database is sound when it is made, looked at again before it is put back, and refused if it "
            "is not what the log says",
            _ALWAYS,
            [
                "a_copy_can_be_put_back",
                "tests/store/test_restore.py::test_a_copy_that_is_not_sound_changes_nothing",
            ],
        ),
        Promise(
            "An older backup that is put back forgets what was answered after it was made, and nothing else: machines "
            "made since are taken in, wishes that it holds are not bought, names are not used again",
            _fair(bounded.a_machine_is_in_nobodys_books),
            [
                "a_machine_is_in_nobodys_books",
                "only_what_is_wanted_is_ordered",
                "names_are_never_used_again",
                f"{_OLDER}::test_machines_made_since_are_taken_in_and_those_gone_since_are_lost",
                f"{_OLDER}::test_a_wish_that_was_given_back_since_is_not_bought",
            ],
        ),
        Promise(
            "Nothing is believed lost before two listings lack it and the cloud, asked by its id, says it is no more",
            _ALWAYS,
            ["nothing_is_written_off_without_the_clouds_word"],
        ),
        Promise(
            "A machine that the cloud has ended no longer counts",
            _fair(bounded.a_dead_machine_is_listed),
            ["a_dead_machine_is_listed"],
        ),
        Promise(
            "The books show the status that the cloud shows",
            _fair(bounded.the_books_show_another_status),
            ["the_books_show_another_status"],
        ),
    ],
    "What is given back goes, and nothing else": [
        Promise(
            "A deletion that was answered with OK is final, also if the machine was believed lost and returns",
            _AT_ONCE,
            ["what_was_given_back_never_lives_again", "what_ended_stays_ended", "a_deletion_is_seen_at_once", TORTURE],
        ),
        Promise(
            "A machine that nobody wants is deleted, counted from when the cloud would take its deletion",
            _fair(bounded.what_nobody_wants_is_billed),
            ["what_nobody_wants_is_billed"],
        ),
        Promise(
            "In a story of hours full of trouble, the machine time that is paid for machines nobody wants, while the "
            "cloud would take their deletion, is small",
            f"{_told(WASTE)} + {_told(WASTE_EACH)} for each such machine (cloud)",
            ["what_nobody_wants_costs_little"],
        ),
        Promise(
            "System disks go with their machines for good; what the cloud leaves is swept, also of second machines",
            _fair(bounded.a_system_disk_is_left),
            [
                "deletions_name_the_system_disk_and_no_other",
                "our_deletions_erase_the_system_disk",
                "a_system_disk_is_left",
                "no_system_disk_is_left",
                "tests/reconcile/test_sweep.py::test_a_second_machine_of_one_name_leaves_no_disk",
            ],
        ),
        Promise(
            "Startup scripts made for machines go once nobody needs them",
            _fair(bounded.a_script_is_left),
            [
                "a_script_is_left",
                "no_script_is_left",
                "tests/reconcile/test_scripts.py::test_a_script_goes_when_its_machine_has_run_for_a_while",
            ],
        ),
        Promise(
            "A machine that was switched off goes, where the group says so",
            _after(bounded.a_switched_off_machine_is_kept, "stopped_after", CPU.stopped_after),
            ["a_switched_off_machine_is_kept"],
        ),
        Promise(
            "Other people's machines, volumes and scripts are never deleted, nor data that somebody attached to ours",
            _ALWAYS,
            [
                "no_foreign_machine_is_touched",
                "no_foreign_script_is_touched",
                "only_disks_without_a_use_are_swept",
                "the_books_hold_only_our_machines",
                "only_our_machines_are_taken_in",
                TORTURE,
            ],
        ),
        Promise(
            "Nothing is deleted that the log does not want gone",
            _ALWAYS,
            ["every_deletion_follows_its_intent", "only_the_autoscaler_gives_back"],
        ),
    ],
    "The autoscaler is told the truth": [
        Promise(
            "The target size is the number of listed instances that run or come",
            _ALWAYS,
            ["target_is_what_is_listed"],
        ),
        Promise("Reads of a listed group never fail", _ALWAYS, ["listed_groups_always_answer"]),
        Promise(
            "Whatever is wrong with the cloud, answers are right and quick",
            "100 ms (p99)",
            ["tests/faults/test_questions.py::test_answers_are_right_and_quick_during_every_fault"],
        ),
        Promise(
            "A failed instance is listed with its error until collected; lack of stock, money or quota is class 1",
            _AT_ONCE,
            ["failures_are_told", "failures_have_the_right_class", "wire_states_are_legal"],
        ),
        Promise(
            "A call that was refused, or whose deadline has passed, has changed nothing",
            _ALWAYS,
            ["a_refusal_changes_nothing", "nothing_is_done_for_callers_who_left", "strangers_are_not_given_back"],
        ),
        Promise(
            "Told to stop, it answers what it has let in, and says UNAVAILABLE to what still comes",
            _ALWAYS,
            [
                "tests/rpc/test_stop.py::test_what_was_let_in_is_answered_and_what_comes_is_refused",
                "tests/e2e/test_main_job.py::test_sigterm_loses_no_answer_that_was_given",
            ],
        ),
        Promise(
            "A new database answers nothing before the cloud has been seen",
            _ALWAYS,
            [
                "nothing_is_answered_before_the_first_look",
                "tests/e2e/test_main_job.py::test_new_database_does_not_serve_before_the_cloud_was_seen",
            ],
        ),
        Promise("A price is the cloud's", _fair(bounded.a_price_is_old), ["a_price_is_old"]),
    ],
    "The log is the truth": [
        Promise(
            "What was published is in the log, unchanged and in its place; the hash chain is whole",
            _ALWAYS,
            ["the_log_is_what_was_published", "the_database_verifies", TORTURE],
        ),
        Promise(
            "Books in memory and tables on disk are the fold of the log",
            _ALWAYS,
            ["the_books_are_the_fold_of_the_log"],
        ),
        Promise(
            "A command that was killed at any statement happened wholly or not at all; so did the first start",
            _ALWAYS,
            [
                "tests/store/test_kill.py::test_a_command_killed_at_any_statement_happened_wholly_or_not_at_all",
                "tests/store/test_kill.py::test_the_first_start_may_be_killed_at_any_statement",
            ],
        ),
        Promise(
            "A disk that refuses a commit changes nothing, and reads go on",
            _ALWAYS,
            [
                "tests/store/test_disk_trouble.py::test_a_command_that_cannot_be_written_changes_nothing",
                "tests/store/test_disk_trouble.py::test_answers_from_the_books_go_on_in_trouble",
            ],
        ),
        Promise(
            "Whoever asks for a change meanwhile is told so, UNAVAILABLE with the reason; for a lock that another "
            "process holds he waits his turn and once more",
            f"{round(2 * PATIENCE_S * 1000)} ms",
            [
                f"{_ANSWERS}::test_writes_are_refused_at_once_while_the_disk_fails_and_reads_go_on",
                f"{_ANSWERS}::test_writes_are_refused_at_once_while_somebody_holds_the_lock_and_reads_go_on",
            ],
        ),
        Promise(
            "One process writes; a second one refuses to start",
            _ALWAYS,
            ["tests/store/test_lock.py::test_a_second_process_is_refused_in_the_words_of_the_first"],
        ),
        Promise(
            "Whatever it was killed at, the next process starts, and its start does not grow with the log",
            _ALWAYS,
            [
                "the_provider_starts",
                "tests/store/test_startup.py::test_no_statement_of_a_start_walks_through_a_table_that_grows",
                TORTURE,
            ],
        ),
        Promise(
            "When nothing changes, books, cloud and wishes agree exactly, and nothing is written",
            _IN_THE_END,
            [
                "every_wish_has_its_machine",
                "every_machine_has_its_wish",
                "no_intent_is_open",
                "the_books_hold_what_was_promised",
                "a_settled_provider_writes_nothing",
            ],
        ),
    ],
}
"""Promises by topic."""

_HEAD = """<!-- Made by `python -m tests.docs.guarantees`; do not edit. -->

# Guarantees

What the provider promises, how long it may take, and the test that would notice if it did not. There are no promises
here without such a test; that the tests do notice is shown by [deliberate defects](simulation-defects.md).

Bounds hold with the default intervals, as long as the API's rate limits do not bind. They count time in which the
process lives and its disk can be written; those marked *cloud* count only time in which Verda's API answers at all and
does not leave machines out of its listings for minutes. Single faults, lost answers and stale lists are within them;
for a machine that must go, the count begins anew with every fourth deletion that Verda refuses or loses. Most proofs
are invariants of the simulation, which runs the whole provider on a simulated cloud, clock and disk, kills it at every
effect, and checks them all the time: `make simulate N=1000`. The torture kills real processes:
`make torture KILLS=1000`. A machine's time to come up counts from when Verda says it was made, by Verda's clock.
"""


def page() -> str:
    """All promises, topic by topic."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for number, (topic, promises) in enumerate(PROMISES.items()):
        yield from ([""] if number else [])
        yield from (f"## {topic}", "", "| promise | within | proof |", "|---|---|---|")
        for promise in promises:
            proofs = "<br>".join(_linked(proof) for proof in promise.proofs)
            yield f"| {promise.words}. | {promise.bound} | {proofs} |"


def _linked(proof: str) -> str:
    path, _, name = proof.partition("::")
    if not name:
        return f"[{proof.replace('_', ' ')}](../{module_of(proof)})"
    return f"[{name.removeprefix('test_').replace('_', ' ')}](../{path})"


def module_of(invariant: str) -> str:
    """Where an invariant of the simulation is written down. Raises: LookupError."""
    for path in sorted((ROOT / _SIMULATION).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if path.name != "promises.py" and (f"def {invariant}(" in text or f'"{invariant}"' in text):
            return str(path.relative_to(ROOT))
    raise LookupError(invariant)


if __name__ == "__main__":
    sys.stdout.write(page())
