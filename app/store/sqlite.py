"""Everything that is SQLite's own: driver, pragmas, triggers, checkpoints, its errors. Nothing else may assume it."""

import contextlib
import importlib
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from operator import itemgetter
from pathlib import Path
from types import ModuleType
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, Table, create_engine, event, exc, text
from sqlalchemy.dialects.sqlite import Insert, dialect, insert
from sqlalchemy.pool import NullPool, StaticPool

from app.errors import StoreBusy, StoreCorrupt, StoreUnavailable

FIXED_SQLITE = (3, 51, 3)
"""From here on SQLite no longer loses a commit when a checkpoint on another connection races it."""

BUSY_TIMEOUT_S = 5.0
"""How long to wait at start for another connection's write lock. Only people with `sqlite3` ever hold one."""

PATIENCE_S = 0.1
"""How long to wait for it once callers wait for us: a caller that is told at once can do something better."""

_STATEMENTS = 1000
"""How many prepared statements a writer keeps. In a full cache `pysqlite3` throws out the newest: after the migrations,
which alone fill the usual hundred, every commit would prepare its own anew, at three times the price."""

_READING = "reading"
# `trusted_schema` stays on: without it SQLite 3.40 refuses json_valid() in our own constraints as unsafe.
_WRITER_PRAGMAS = {
    "journal_mode": "wal",
    # In WAL mode NORMAL survives a crash of the process but may lose commits when the power fails; an intent must not.
    "synchronous": 2,
    "foreign_keys": 1,
    # Without it REPLACE slips past the triggers that keep the log append-only.
    "recursive_triggers": 1,
    "cell_size_check": 1,
    "mmap_size": 0,
    # SQLite's default, said aloud: the connection that writes is the one that checkpoints, at every 4 MB.
    "wal_autocheckpoint": 1000,
    # What a long reader made of the write-ahead log does not stay on the disk after it.
    "journal_size_limit": 64_000_000,
}


def driver() -> ModuleType:
    """The DB-API module: `pysqlite3`, which bundles a current SQLite, where it has a wheel, else `sqlite3`."""
    try:
        return importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        return sqlite3


def sqlite_version() -> str:
    """Version of the SQLite library in use."""
    return str(driver().sqlite_version)


def writer_engine(path: Path, module: ModuleType | None = None, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Engine:
    """An engine with the one connection that writes and checkpoints, usable from any thread, one at a time."""
    database = module or driver()
    engine = create_engine(
        "sqlite://",
        module=database,
        poolclass=StaticPool,
        creator=lambda: database.connect(
            str(path.absolute()), timeout=busy_timeout_s, check_same_thread=False, cached_statements=_STATEMENTS
        ),
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # we emit BEGIN ourselves
        for pragma, value in _WRITER_PRAGMAS.items():
            connection.execute(f"PRAGMA {pragma}={value}").fetchall()
            found = connection.execute(f"PRAGMA {pragma}").fetchone()
            if found is not None and found[0] != value:
                raise StoreUnavailable(f"{path}: PRAGMA {pragma} is {found[0]}, must be {value}", path=str(path))

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        only_reads = connection.get_execution_options().get(_READING, False)
        # Load-bearing: a transaction that will write owns the write lock from its beginning, or fails now.
        _driver_s(connection).execute("BEGIN" if only_reads else "BEGIN IMMEDIATE")

    return engine


def _driver_s(connection: Connection) -> Any:
    """The driver's own connection, for what every commit does; what it throws, `translated_errors` knows as well."""
    return connection.connection.driver_connection


def set_patience(engine: Engine, seconds: float) -> None:
    """How long the writer's connection waits for somebody else's lock from now on."""
    with contextlib.closing(engine.raw_connection()) as connection:
        connection.cursor().execute(f"PRAGMA busy_timeout={int(seconds * 1000)}").fetchall()


def looking(engine: Engine) -> Engine:
    """The writer's engine for transactions that only read: they wait for nobody, even when nothing can be written."""
    return engine.execution_options(**{_READING: True})


def reader_engine(path: Path, module: ModuleType | None = None, busy_timeout_s: float = BUSY_TIMEOUT_S) -> Engine:
    """An engine whose connections cannot write and see one moment of the database until they are closed."""
    database = module or driver()
    uri = f"file:{quote(str(path.absolute()))}?mode=ro"
    engine = create_engine(
        "sqlite://",
        module=database,
        poolclass=NullPool,
        creator=lambda: database.connect(uri, uri=True, timeout=busy_timeout_s, check_same_thread=False),
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        connection.isolation_level = None  # we emit BEGIN ourselves
        connection.execute("PRAGMA query_only=1").fetchall()

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN")  # load-bearing: all reads see the same moment, whatever is written beside

    return engine


class RowWriter:
    """Writes whole rows of one table by a statement that was compiled once, because every commit does it.

    By the driver's own connection: SQLAlchemy's part of it would cost more than SQLite's.
    """

    def __init__(self, statement: Insert) -> None:
        compiled = statement.compile(dialect=dialect(paramstyle="qmark"))
        self._text = str(compiled)
        self._values = itemgetter(*(compiled.positiontup or ()))

    def write(self, connection: Connection, rows: Iterable[Mapping[str, object]]) -> None:
        """Write rows, each with a value for every column, within the caller's transaction."""
        _driver_s(connection).executemany(self._text, [self._values(row) for row in rows])


def inserter(table: Table) -> RowWriter:
    """Writes rows that are new."""
    return RowWriter(insert(table))


def upserter(table: Table) -> RowWriter:
    """Writes rows that may be there already, then with every column outside the primary key changed."""
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    return RowWriter(statement.on_conflict_do_update(index_elements=keys, set_=changed))


APPEND_ONLY_TRIGGERS = ("events_append_only_insert", "events_append_only_update", "events_append_only_delete")
"""Made by the first migration. The insert trigger also refuses REPLACE where `recursive_triggers` is off."""


def missing_triggers(connection: Connection) -> list[str]:
    """Names of the append-only triggers that are not there."""
    rows = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger' AND tbl_name = 'events'"))
    present = {row.name for row in rows}
    return [name for name in APPEND_ONLY_TRIGGERS if name not in present]


def objects(connection: Connection) -> dict[str, str]:
    """Tables, indexes, triggers and views by `<type> <name>`, with the SQL that made them; SQLite's own left out."""
    rows = connection.execute(text("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL"))
    return {f"{row.type} {row.name}": row.sql for row in rows if not row.name.startswith("sqlite_")}


def damages(connection: Connection) -> list[str]:
    """What a look at every page of the file finds wrong with its structure. The time grows with the file."""
    return [row[0] for row in connection.execute(text("PRAGMA quick_check(5)")) if row[0] != "ok"]


def checkpoint(engine: Engine, mode: str) -> tuple[int, int]:
    """Move the WAL into the database, `PASSIVE` or `TRUNCATE`; WAL frames there were, frames moved."""
    connection = engine.raw_connection()  # outside of a transaction, where alone a checkpoint can run
    try:
        row = connection.cursor().execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        connection.close()
    return int(row[1]), int(row[2])


_DRIVER_ERRORS: tuple[type[Exception], ...] = (exc.DBAPIError, sqlite3.Error, driver().Error)
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB")
_LOCKED = ("SQLITE_BUSY", "SQLITE_LOCKED")
_TROUBLES = {
    "SQLITE_FULL": "the disk is full",
    "SQLITE_BUSY": "another process holds its write lock",
    "SQLITE_LOCKED": "another connection holds its write lock",
    "SQLITE_READONLY": "it is read-only",
    "SQLITE_CANTOPEN": "it cannot be opened",
    "SQLITE_IOERR": "the disk reports an error",
    "SQLITE_CONSTRAINT": "the log refuses it",
}


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what the database throws into our own errors; nothing of SQLAlchemy or of a driver leaves this package."""
    try:
        yield
    except _DRIVER_ERRORS as error:
        raise _translated(getattr(error, "orig", None) or error) from error


def _translated(error: BaseException) -> StoreCorrupt | StoreUnavailable:
    name = str(getattr(error, "sqlite_errorname", ""))
    # The driver reads bytes that are no UTF-8 where a text was stored, and has no error code for it.
    if name.startswith(_DAMAGED) or "decode to UTF-8" in str(error):
        return StoreCorrupt(f"the database is damaged: {error}", reason=name)
    words = next((words for prefix, words in _TROUBLES.items() if name.startswith(prefix)), None)
    kind = StoreBusy if name.startswith(_LOCKED) else StoreUnavailable
    return kind(f"the database cannot be used: {words or name} ({error})", reason=name)
