"""Commits that fail, and commits of which nobody knows: the disk has the last word, and nothing is written twice."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.domain.envelope import Event, Recorded
from app.errors import NotFound, StoreHeld, StoreUnavailable
from app.ledger.ledger import Ledger
from app.store import log, sqlite
from app.store.reading import reading
from app.store.verify import verify
from tests.store.harness import CA, one_more, reopened, rows, types_of

from .flaky import Flaky

REQUESTED = ["nodegroup.scale-up-requested", "instance.requested"]


@pytest.fixture
def told(ledger: Ledger) -> list[int]:
    """The positions that a listener was told of, in its order."""
    positions: list[int] = []

    def listen(recorded: Sequence[Recorded[Event]]) -> None:
        positions.extend(item.position for item in recorded)

    ledger.subscribe(listen)
    return positions


def sound(path: Path) -> bool:
    """The log and the projections verify."""
    with reading(path) as connection:
        return list(verify(connection)) == []


def test_a_lost_commit_changes_nothing_and_the_next_command_works(
    ledger: Ledger, store: Flaky, told: list[int], started: Path
) -> None:
    """F56: the books are the very same object."""
    before, store.lost = ledger.books, True
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert ledger.books is before
    assert ledger.trouble == "the disk is full"
    assert told == []
    ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert told == [7, 8]
    ledger.close()
    assert sound(started)
    assert rows(started, "SELECT name FROM instances") == [("gpu-bbbbbbbb",)]


def test_a_commit_that_worked_and_was_called_an_error_is_a_success(
    ledger: Ledger, store: Flaky, told: list[int], started: Path
) -> None:
    """The disk is asked at once, so the caller hears the truth and does not buy twice."""
    store.unheard = True
    recorded = ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert types_of(recorded) == REQUESTED
    assert ledger.books.target_size("gpu") == 1
    assert ledger.trouble is None
    assert told == [7, 8]
    ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert told == [7, 8, 9, 10]
    ledger.close()
    assert sound(started)
    assert reopened(started) == ledger.books


def test_a_commit_of_which_nobody_knows_is_settled_before_the_next_decision(
    ledger: Ledger, store: Flaky, told: list[int], started: Path
) -> None:
    """It had worked: the next command sees it in the books, and listeners are told both in order."""
    before, store.unheard, store.blind = ledger.books, True, True
    with pytest.raises(StoreUnavailable, match="the disk reports an error"):
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert ledger.books is before
    with pytest.raises(StoreUnavailable, match="the disk cannot be read"):
        ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert told == []
    store.blind = False
    ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert ledger.books.target_size("gpu") == 2
    assert told == [7, 8, 9, 10]
    ledger.close()
    assert sound(started)


def test_a_commit_of_which_nobody_knows_may_not_have_happened(
    ledger: Ledger, store: Flaky, told: list[int], started: Path
) -> None:
    """Then its positions are free, and the chain goes on from before it."""
    store.lost, store.blind = True, True
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    store.blind = False
    ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert told == [7, 8]
    ledger.close()
    assert sound(started)
    assert rows(started, "SELECT name FROM instances") == [("gpu-bbbbbbbb",)]


def test_what_was_settled_is_told_even_if_the_next_command_is_refused(
    ledger: Ledger, store: Flaky, told: list[int]
) -> None:
    """Jobs are woken by what they are told; a wish must not wait for the next one to be bought."""
    store.unheard, store.blind = True, True
    with pytest.raises(StoreUnavailable):
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    store.blind = False
    with pytest.raises(NotFound):
        ledger.execute(one_more("x-aaaaaaaa", "nowhere"), CA)
    assert told == [7, 8]


def test_a_probe_settles_too(ledger: Ledger, store: Flaky, told: list[int]) -> None:
    """Readiness is asked for more often than nodes are."""
    store.unheard, store.blind = True, True
    with pytest.raises(StoreUnavailable):
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    with pytest.raises(StoreUnavailable, match="the disk cannot be read"):
        ledger.probe()
    assert (ledger.trouble or "") == "the disk cannot be read"
    store.blind = False
    ledger.probe()
    assert ledger.trouble is None
    assert ledger.books.target_size("gpu") == 1
    assert told == [7, 8]


def test_a_process_that_finds_a_strangers_events_stops_writing_for_good(
    ledger: Ledger, told: list[int], started: Path
) -> None:
    """F58: whoever got past the lock file is the writer now; two of them would buy everything twice."""
    engine = sqlite.writer_engine(started)
    with engine.begin() as connection:
        last = log.head(connection)
        (newest,) = log.read(connection, last.position - 1)
        strangers = replace(newest, position=newest.position + 1, version=newest.version + 1)
        log.write(connection, log.event_rows([strangers], last.hash))
    engine.dispose()
    for _ in range(2):
        with pytest.raises(StoreHeld, match="another process wrote position 7 of the log; this one must end"):
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    with pytest.raises(StoreHeld):
        ledger.probe()
    assert ledger.trouble == "another process wrote position 7 of the log; this one must end"
    assert ledger.books.position == 6
    assert told == []
    ledger.close()
    assert rows(started, "SELECT max(position) FROM events") == [(7,)]
