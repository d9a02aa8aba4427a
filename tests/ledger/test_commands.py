"""One command at a time: decided, durable, folded, told; or refused with nothing changed."""

import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.envelope import Cause
from app.domain.instance.commands import AttemptCreate, RecordCreateRefused, Refusal
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.errors import DeadlinePassed, InvalidRequest, NotFound, RuleViolation, StoreUnavailable
from app.ledger.ledger import Ledger, open_ledger
from tests.store.harness import CA, one_more, reopened, rows, types_of

from .flaky import Flaky


def test_what_execute_returns_is_durable_and_in_the_books(ledger: Ledger, started: Path) -> None:
    """The answer to a call may be OK from here on."""
    recorded = ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert types_of(recorded) == ["nodegroup.scale-up-requested", "instance.requested"]
    assert [item.position for item in recorded] == [7, 8]
    assert ledger.books.target_size("gpu") == 1
    assert ledger.head.position == 8
    ledger.close()
    assert reopened(started) == ledger.books


def test_a_command_that_changes_nothing_writes_nothing(ledger: Ledger) -> None:
    """Idempotence: already so."""
    before = ledger.books
    assert ledger.execute(AttemptCreate(instance="gpu-unknown0"), CA) == ()
    assert ledger.books is before


def test_events_of_one_stream_in_one_batch_follow_each_other(ledger: Ledger) -> None:
    """Their versions are given out before any of them is folded."""
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    ledger.execute(AttemptCreate(instance="gpu-aaaaaaaa"), CA)
    wrong_image = RecordCreateRefused(
        instance="gpu-aaaaaaaa",
        attempt=1,
        refusal=Refusal.REJECTED,
        status=400,
        code="invalid_request",
        message="no such image",
        retry_after=None,
    )
    recorded = ledger.execute(wrong_image, CA)
    assert [(item.position, item.stream, item.version) for item in recorded] == [
        (10, "instance-gpu-aaaaaaaa", 3),
        (11, "nodegroup-gpu", 3),
        (12, "instance-gpu-aaaaaaaa", 4),
    ]


def test_a_deadline_that_has_passed_writes_nothing(ledger: Ledger, clock: FakeClock) -> None:
    """The autoscaler has counted the call as failed, and would buy elsewhere as well."""
    clock.advance(10)
    before = ledger.books
    for not_after in (0.0, 9.999, 10.0):
        with pytest.raises(DeadlinePassed, match="the caller's deadline"):
            ledger.execute(one_more("gpu-aaaaaaaa"), CA, not_after)
    assert ledger.books is before
    assert ledger.head.position == 6
    ledger.execute(one_more("gpu-aaaaaaaa"), CA, 10.001)
    assert ledger.head.position == 8


def test_a_deadline_without_end_is_none(ledger: Ledger) -> None:
    """A caller may say "for ever" in numbers."""
    ledger.execute(one_more("gpu-aaaaaaaa"), CA, float("inf"))
    assert ledger.head.position == 8


def test_a_refusal_that_is_a_fact_is_recorded_and_raised(ledger: Ledger, started: Path) -> None:
    """Who wanted too much, and when, is worth knowing; nothing else changed."""
    told: list[str] = []
    ledger.subscribe(lambda recorded: told.extend(types_of(recorded)))
    too_many = IncreaseSize(node_group="gpu", delta=4, names=tuple(f"gpu-{number:08d}" for number in range(4)))
    with pytest.raises(RuleViolation, match="0 \\+ 4 is more than max_size 3 of gpu"):
        ledger.execute(too_many, CA)
    assert ledger.books.target_size("gpu") == 0
    assert told == ["nodegroup.scale-up-rejected"]
    ledger.close()
    assert rows(started, "SELECT type FROM events WHERE position > 6") == [("nodegroup.scale-up-rejected",)]


@pytest.mark.parametrize(
    ("command", "refusal"),
    [
        (IncreaseSize(node_group="gpu", delta=0, names=()), InvalidRequest),
        (one_more("x-aaaaaaaa", "nowhere"), NotFound),
        (DecreaseTargetSize(node_group="gpu", delta=-1), RuleViolation),
        (DeleteNodes(node_group="gpu", instances=("stranger",)), InvalidRequest),
    ],
)
def test_a_refusal_that_is_no_fact_changes_nothing(ledger: Ledger, command: IncreaseSize, refusal: type) -> None:
    """Nonsense leaves no trace, and does not count as trouble with the disk."""
    before = ledger.books
    with pytest.raises(refusal):
        ledger.execute(command, CA)
    assert ledger.books is before
    assert ledger.trouble is None


def test_time_never_goes_back_in_the_log(ledger: Ledger, clock: FakeClock, started: Path) -> None:
    """A wrong time server moved the clock back by an hour: later events keep the time that the log had reached."""
    clock.advance(timedelta(hours=2))
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    clock.step_wall(-timedelta(hours=1))
    ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    clock.advance(timedelta(hours=1, seconds=1))
    ledger.execute(one_more("gpu-cccccccc"), CA)
    ledger.close()
    times = "SELECT substr(recorded_at, 12, 8) FROM events WHERE type = 'instance.requested' ORDER BY position"
    assert rows(started, times) == [
        ("02:00:00",),
        ("02:00:00",),
        ("02:00:01",),
    ]


def test_time_does_not_go_back_over_a_restart_either(ledger: Ledger, clock: FakeClock, started: Path) -> None:
    """The new process's clock may be the wrong one."""
    clock.advance(timedelta(hours=2))
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    ledger.close()
    behind = open_ledger(started, FakeClock(datetime(2026, 1, 1, tzinfo=UTC)), "the next")
    recorded = behind.execute(one_more("gpu-bbbbbbbb"), Cause(actor="operator", correlation_id="x"))
    behind.close()
    assert recorded[0].recorded_at == datetime(2026, 1, 5, 2, tzinfo=UTC)


def test_a_closed_ledger_refuses_commands_and_still_answers(ledger: Ledger) -> None:
    """A call that comes while the process ends is told so; reads need no disk."""
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    ledger.close()
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="the database is closed"):
            ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert ledger.books.target_size("gpu") == 1
    ledger.close()


def test_a_caller_with_a_deadline_does_not_wait_for_a_stuck_disk(
    ledger: Ledger, store: Flaky, clock: FakeClock
) -> None:
    """Its worker is free again when its caller has gone, however long the command before it takes."""
    store.gate.clear()
    first = threading.Thread(target=ledger.execute, args=(one_more("gpu-aaaaaaaa"), CA))
    first.start()
    try:
        assert store.appending.wait(10)
        with pytest.raises(DeadlinePassed, match="while earlier commands were being written"):
            ledger.execute(one_more("gpu-bbbbbbbb"), CA, clock.monotonic() + 0.05)
    finally:
        store.gate.set()
        first.join()
    assert ledger.books.target_size("gpu") == 1
