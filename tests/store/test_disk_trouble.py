"""A disk that is full, broken, locked or slow: nothing changes in memory or on disk, and all is well afterwards."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from app.clock import FakeClock
from app.domain.nodegroup.commands import DecreaseTargetSize
from app.errors import StoreUnavailable
from app.ledger.ledger import Ledger
from app.store.reading import reading
from app.store.sqlite import BUSY_TIMEOUT_S, driver
from app.store.store import Store
from app.store.verify import verify

from .harness import CA, LONG_AGO, no_byte_written, one_more, opened, plain, projections, reopened, rows

SHORT_LOCK = """
import sqlite3, sys, threading
person = sqlite3.connect(sys.argv[1], isolation_level=None)
person.execute("BEGIN IMMEDIATE")
print("locked", flush=True)
threading.Event().wait(0.3)
person.execute("ROLLBACK")
"""
SLOW_READER = """
import sqlite3, sys
person = sqlite3.connect(sys.argv[1], isolation_level=None)
person.execute("BEGIN")
print(*person.execute("SELECT max(position) FROM events").fetchone(), flush=True)
sys.stdin.readline()
print(*person.execute("SELECT max(position) FROM events").fetchone(), flush=True)
"""

Trouble = Callable[[Store, Path], AbstractContextManager[None]]


@contextmanager
def no_page_left(store: Store, _path: Path) -> Iterator[None]:
    """SQLite may not make the file longer than it is."""
    assert store._engine is not None
    with closing(store._engine.raw_connection()) as pooled:
        connection = pooled.driver_connection
        assert connection is not None
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        connection.execute(f"PRAGMA max_page_count = {pages}").fetchall()
    yield
    with closing(store._engine.raw_connection()) as pooled:
        connection = pooled.driver_connection
        assert connection is not None
        connection.execute("PRAGMA max_page_count = 1000000").fetchall()


def no_byte_written_by(_store: Store, _path: Path) -> AbstractContextManager[None]:
    """Only the COMMIT notices: till then all is in memory."""
    return no_byte_written()


@contextmanager
def locked_by_a_person(_store: Store, path: Path) -> Iterator[None]:
    """Somebody typed BEGIN IMMEDIATE at a prompt and went for lunch."""
    with closing(driver().connect(path, isolation_level=None)) as person:
        person.execute("BEGIN IMMEDIATE")
        yield
        person.execute("ROLLBACK")


TROUBLES: dict[str, tuple[Trouble, str]] = {
    "disk full": (no_page_left, "the disk is full (database or disk is full)"),
    "input/output error": (no_byte_written_by, "the disk reports an error (disk I/O error)"),
    "locked": (locked_by_a_person, "another process holds its write lock (database is locked)"),
}


@pytest.fixture
def store(started: Path) -> Store:
    """A store that does not wait long for locks."""
    return Store(started, busy_timeout_s=0.05)


@pytest.fixture
def ledger(store: Store) -> Iterator[Ledger]:
    """A ledger on it."""
    ledger = Ledger(store, FakeClock())
    ledger.open("the test")
    yield ledger
    ledger.close()


def ask_for_many(ledger: Ledger) -> None:
    """Commands until one needs a new page of the file; at most that many find room in the pages that there are."""
    for _ in range(60):
        ledger.execute(one_more(f"gpu-{ledger.books.position:08d}"), CA)
        ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)


@pytest.mark.parametrize("trouble", TROUBLES)
def test_a_command_that_cannot_be_written_changes_nothing(
    store: Store, ledger: Ledger, started: Path, trouble: str
) -> None:
    """F56: the reason is told, the books are the very same object, the log is as long as before, and later it works."""
    trouble_of, words = TROUBLES[trouble]
    told: list[int] = []
    ledger.subscribe(lambda recorded: told.append(recorded[-1].position))
    with trouble_of(store, started):
        with pytest.raises(StoreUnavailable) as refused:
            ask_for_many(ledger)
        before, acknowledged = ledger.books, list(told)
        assert refused.value.message == f"the database cannot be used: {words}"
        assert (ledger.trouble or "") == refused.value.message
        for _ in range(3):
            with pytest.raises(StoreUnavailable):
                ask_for_many(ledger)
        assert ledger.books is before
        assert told == acknowledged
        with reading(started) as connection:
            assert connection.exec_driver_sql("SELECT max(position) FROM events").scalar() == before.position
    assert len(ledger.execute(one_more("gpu-zzzzzzzz"), CA)) == 2
    assert ledger.trouble is None
    live = ledger.books
    ledger.close()
    assert reopened(started).instances == live.instances
    with reading(started) as connection:
        assert list(verify(connection)) == []


@pytest.mark.parametrize("trouble", ["input/output error", "locked"])
def test_readiness_recovers_only_when_the_disk_takes_a_write(
    store: Store, ledger: Ledger, started: Path, trouble: str
) -> None:
    """A probe that only read would call a full disk healthy."""
    trouble_of, _ = TROUBLES[trouble]
    with trouble_of(store, started):
        with pytest.raises(StoreUnavailable):
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        with pytest.raises(StoreUnavailable):
            ledger.probe()
        assert ledger.trouble is not None
    ledger.probe()
    assert ledger.trouble is None


def test_a_probe_leaves_no_trace(started: Path) -> None:
    """It writes for real and changes nothing."""
    before = projections(started), rows(started, "SELECT * FROM projections")
    with opened(started) as ledger:
        ledger.probe()
    assert (projections(started), rows(started, "SELECT * FROM projections")) == before


@pytest.mark.parametrize("trouble", TROUBLES)
def test_answers_from_the_books_go_on_in_trouble(store: Store, ledger: Ledger, started: Path, trouble: str) -> None:
    """Reads need neither the disk nor a lock; what has ended is read beside the writer."""
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    with TROUBLES[trouble][0](store, started):
        assert ledger.books.target_size("gpu") == 1
        found = ledger.find_ended("gpu-aaaaaaaa")
        assert found is not None
        assert found.state == "requested"


def test_a_lock_is_waited_for_as_long_as_was_said(started: Path) -> None:
    """Somebody's short transaction is no trouble at all."""
    ledger = Ledger(Store(started, patience_s=60), FakeClock())
    ledger.open("the test")
    command = [sys.executable, "-c", SHORT_LOCK, str(started)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as person:
        assert person.stdout is not None
        assert person.stdout.readline() == b"locked\n"
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert ledger.books.position == 8
    ledger.close()


def test_a_lock_is_waited_for_longer_at_start_than_when_callers_wait(started: Path) -> None:
    """Five seconds and a tenth of one: a caller that is told at once can ask again, a start that fails is an outage."""
    store = Store(started)
    store.open("the test", LONG_AGO)
    assert store._engine is not None
    with closing(store._engine.raw_connection()) as connection:
        assert connection.cursor().execute("PRAGMA busy_timeout").fetchone() == (100,)
    store.close()
    assert BUSY_TIMEOUT_S == 5


def test_a_reader_with_an_open_transaction_blocks_nobody(started: Path) -> None:
    """F55: a person's forgotten SELECT sees its old moment, and twenty commands go through beside it."""
    with opened(started) as ledger:
        command = [sys.executable, "-c", SLOW_READER, str(started)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as person:
            assert person.stdin is not None
            assert person.stdout is not None
            assert person.stdout.readline() == b"6\n"
            for number in range(20):
                ledger.execute(one_more(f"gpu-{number:08d}"), CA)
                ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
                ledger.checkpoint()
            person.stdin.write(b"\n")
            person.stdin.flush()
            assert person.stdout.readline() == b"6\n"
        assert ledger.books.position == 6 + 20 * 4
    assert rows(started, "SELECT count(*) FROM events") == [(86,)]


def test_a_checkpoint_that_fails_is_our_own_error(ledger: Ledger) -> None:
    """It runs outside of any transaction, where nobody but us translates what the driver throws."""
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    with no_byte_written(), pytest.raises(StoreUnavailable, match="the disk reports an error"):
        ledger.checkpoint()
    ledger.checkpoint()


def test_a_read_only_database_is_refused_in_words(started: Path) -> None:
    """As a volume mounted read-only answers; SQLite itself says it of a connection that may only read."""
    with plain(started) as connection:
        connection.execute("PRAGMA journal_mode=DELETE")
    store = Store(started)
    books = store.open("the test", LONG_AGO)
    assert store._engine is not None
    with closing(store._engine.raw_connection()) as pooled:
        connection_of_ours: Any = pooled.driver_connection
        connection_of_ours.execute("PRAGMA query_only=1").fetchall()
    with pytest.raises(StoreUnavailable, match="it is read-only"):
        store.probe()
    assert books.position == 6
    store.close()
