"""Both drivers: the one with a current SQLite inside, and the standard library's where the first has no wheel."""

import importlib
import importlib.util
import sqlite3
from contextlib import closing
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from sqlalchemy import Engine

from app.clock import FakeClock
from app.errors import StoreCorrupt, StoreUnavailable
from app.store import sqlite
from app.store.reading import reading
from app.store.store import Store
from app.store.verify import verify

from .harness import CA, LONG_AGO, copied, one_more, opened, projections, reopened, start
from .story import Story

BUNDLED = importlib.import_module("pysqlite3.dbapi2") if importlib.util.find_spec("pysqlite3") else sqlite3
DRIVERS = {"sqlite3": sqlite3, "pysqlite3": BUNDLED}


@pytest.fixture(params=DRIVERS)
def module(request: pytest.FixtureRequest) -> ModuleType:
    """Each driver in turn."""
    return DRIVERS[request.param]


def test_the_bundled_sqlite_is_preferred_and_beyond_its_known_fault() -> None:
    """Before 3.51.3 a checkpoint on one connection that races a commit on another can lose the commit."""
    assert sqlite.driver() is BUNDLED
    version = tuple(int(part) for part in sqlite.sqlite_version().split("."))
    assert version >= sqlite.FIXED_SQLITE or BUNDLED is sqlite3


def test_a_story_reads_the_same_with_either_driver(tmp_path: Path, module: ModuleType) -> None:
    """The file does not know which library wrote it."""
    path, clock = tmp_path / "provider.db", FakeClock()
    with opened(path, clock, module=module) as ledger:
        story = Story(ledger, clock, seed=3)
        story.begin()
        story.walk(60)
        books = ledger.books
    written = projections(path)
    with reading(path) as connection:
        assert list(verify(connection)) == []
    other = Store(path, module=sqlite3 if module is not sqlite3 else BUNDLED)
    assert other.open("the other", LONG_AGO).instances == books.instances
    other.close()
    assert projections(path) == written


def test_a_writer_has_its_pragmas_whatever_the_driver(started: Path, module: ModuleType) -> None:
    """F54: they are read back, for a build of SQLite or a file system may ignore one of them without a word."""
    engine = sqlite.writer_engine(started, module)
    with closing(engine.raw_connection()) as pooled:
        connection = pooled.driver_connection
        assert connection is not None
        found = {
            name: connection.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "foreign_keys", "recursive_triggers", "cell_size_check")
        }
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (5000,)
    engine.dispose()
    assert found == {
        "journal_mode": "wal",
        "synchronous": 2,
        "foreign_keys": 1,
        "recursive_triggers": 1,
        "cell_size_check": 1,
    }


def run(engine: Engine, *statements: str) -> None:
    """One transaction, its errors translated."""
    with sqlite.translated_errors(), engine.begin() as connection:
        for statement in statements:
            connection.exec_driver_sql(statement)


def test_a_reader_cannot_write_whatever_the_driver(started: Path, module: ModuleType) -> None:
    """People get their rows from it, and the server's file stays the server's."""
    engine = sqlite.reader_engine(started, module)
    with pytest.raises(StoreUnavailable, match="it is read-only"):
        run(engine, "DELETE FROM cloud")
    engine.dispose()


def test_full_means_full_whatever_the_driver(started: Path, module: ModuleType) -> None:
    """The two have unrelated exception classes; both end as ours."""
    engine = sqlite.writer_engine(started, module)
    with closing(engine.raw_connection()) as pooled:
        connection = pooled.driver_connection
        assert connection is not None
        connection.execute("PRAGMA max_page_count = 1").fetchall()
    with pytest.raises(StoreUnavailable, match="the disk is full"):
        run(engine, "INSERT INTO cloud (name, trouble, version, position) SELECT 'x', hex(zeroblob(100000)), 1, 1")
    engine.dispose()
    assert reopened(started).position == 6


def test_locked_means_locked_whatever_the_driver(started: Path, module: ModuleType) -> None:
    """F54, F55: waits as long as it was told, then says why."""
    store = Store(started, module=module, busy_timeout_s=0.05)
    with closing(module.connect(started, isolation_level=None)) as person:
        person.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreUnavailable, match="another process holds its write lock"):
            store.open("the test", LONG_AGO)
        person.execute("ROLLBACK")
    assert store.open("the test", LONG_AGO).position == 6
    store.close()


def test_garbage_means_garbage_whatever_the_driver(tmp_path: Path, module: ModuleType) -> None:
    """Damage is told apart from trouble that passes."""
    path = tmp_path / "provider.db"
    path.write_bytes(b"this is no database of anybody's " * 200)
    with pytest.raises(StoreCorrupt, match="file is not a database"):
        Store(path, module=module).open("the test", LONG_AGO)


def test_what_the_bare_driver_throws_is_translated_too(started: Path, module: ModuleType) -> None:
    """Checkpoints run outside of SQLAlchemy, which wraps the drivers' errors elsewhere."""
    with (
        pytest.raises(StoreUnavailable, match="no such table: nowhere"),
        sqlite.translated_errors(),
        closing(module.connect(started)) as connection,
    ):
        connection.execute("SELECT * FROM nowhere")


def test_a_commit_that_fails_and_leaves_its_transaction_open_does_not_spoil_the_next(
    started: Path, tmp_path: Path, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is in the log, and the next batch needs no second try."""
    connect, failures = module.connect, list[Exception]()

    class Failing(module.Connection):  # type: ignore[name-defined, misc] # of either driver
        def commit(self) -> None:
            if failures and self.in_transaction:
                raise failures.pop()
            super().commit()

    (tmp_path / "twin").mkdir()
    with opened(copied(started, tmp_path / "twin")) as ledger:
        recorded, books = ledger.execute(one_more("gpu-aaaaaaaa"), CA), ledger.books
    monkeypatch.setattr(module, "connect", lambda *args, **settings: connect(*args, factory=Failing, **settings))
    store = Store(started, module=module)
    store.open("the test", LONG_AGO)
    failures.append(module.OperationalError("disk I/O error"))
    with pytest.raises(StoreUnavailable, match="disk I/O error"):
        store.append(recorded, books)
    store.append(recorded, books)
    assert store.events_after(6) == recorded
    store.close()


def test_no_statement_of_a_command_is_prepared_twice(
    tmp_path: Path, module: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even after a start that made all the tables. SQLite asks the authorizer only while it prepares a statement.

    The COMMIT is the driver's own; the standard library's prepares it each time.
    """
    connect, asked = module.connect, list[tuple[object, ...]]()

    def note(*about: object) -> int:
        asked.append(about)
        return sqlite3.SQLITE_OK

    def watched(*args: Any, **settings: Any) -> Any:
        connection = connect(*args, **settings)
        connection.set_authorizer(note)
        return connection

    monkeypatch.setattr(module, "connect", watched)
    with opened(tmp_path / "provider.db", module=module) as ledger:
        start(ledger)
        ledger.execute(one_more("gpu-0"), CA)
        assert {what for what, *_ in asked} >= {sqlite3.SQLITE_INSERT, sqlite3.SQLITE_UPDATE}
        asked.clear()
        for number in range(1, 3):
            ledger.execute(one_more(f"gpu-{number}"), CA)
        assert [about for about in asked if about[0] != sqlite3.SQLITE_TRANSACTION] == []
