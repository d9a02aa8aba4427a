"""Everything that is SQLite's own: driver, pragmas, lock file, triggers, checkpoints. Nothing else may assume it."""

import contextlib
import fcntl
import importlib
import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from sqlalchemy import Connection, Engine, Table, create_engine, event, exc, text
from sqlalchemy.dialects.sqlite import Insert, insert
from sqlalchemy.pool import NullPool, StaticPool

from app.errors import StoreCorrupt, StoreHeld, StoreUnavailable

FIXED_SQLITE = (3, 51, 3)
"""From here on SQLite no longer loses a commit when a checkpoint on another connection races it."""

_WRITER_PRAGMAS = {
    "journal_mode": "wal",
    # In WAL mode NORMAL survives a crash of the process but may lose commits when the power fails; an intent must not.
    "synchronous": 2,
    "foreign_keys": 1,
    # Without it REPLACE slips past the triggers that keep the log append-only.
    "recursive_triggers": 1,
    "trusted_schema": 0,
    "cell_size_check": 1,
    "busy_timeout": 5000,
    "mmap_size": 0,
}


def driver() -> ModuleType:
    """The DB-API module: `pysqlite3`, which bundles a current SQLite, where it has a wheel, else `sqlite3`."""
    try:
        return importlib.import_module("pysqlite3.dbapi2")
    except ImportError:
        return importlib.import_module("sqlite3")


def sqlite_version() -> str:
    """Version of the SQLite library in use."""
    return str(driver().sqlite_version)


def writer_engine(path: Path) -> Engine:
    """An engine with the one connection that writes and checkpoints, usable from any thread, one at a time."""
    engine = create_engine(
        f"sqlite:///{path}",
        module=driver(),
        poolclass=StaticPool,
        connect_args={"check_same_thread": False},
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
        connection.exec_driver_sql("BEGIN IMMEDIATE")  # load-bearing: fail or own the write lock now

    return engine


def reader_engine(path: Path) -> Engine:
    """An engine whose connections cannot write, for short reads beside the writer and for other processes."""
    engine = create_engine(
        f"sqlite:///file:{path}?mode=ro&uri=true",
        module=driver(),
        poolclass=NullPool,
        connect_args={"check_same_thread": False},
    )

    @event.listens_for(engine, "connect")
    def _connect(connection: Any, _record: object) -> None:
        connection.execute("PRAGMA query_only=1")
        connection.execute("PRAGMA busy_timeout=5000").fetchall()

    return engine


def upsert(table: Table) -> Insert:
    """`INSERT … ON CONFLICT DO UPDATE` of every column that is not part of the primary key."""
    statement = insert(table)
    keys = [column.name for column in table.primary_key]
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in keys}
    return statement.on_conflict_do_update(index_elements=keys, set_=changed)


APPEND_ONLY_TRIGGERS = ("events_append_only_insert", "events_append_only_update", "events_append_only_delete")
"""Made by the first migration. The insert trigger also refuses REPLACE where `recursive_triggers` is off."""


def missing_triggers(connection: Connection) -> list[str]:
    """Names of the append-only triggers that are not there."""
    rows = connection.execute(text("SELECT name FROM sqlite_master WHERE type = 'trigger'"))
    present = {row.name for row in rows}
    return [name for name in APPEND_ONLY_TRIGGERS if name not in present]


def quick_check(connection: Connection) -> None:
    """Check the file's structure.

    Raises:
        StoreCorrupt: the file is damaged.
    """
    findings = [row[0] for row in connection.execute(text("PRAGMA quick_check(5)"))]
    if findings != ["ok"]:
        raise StoreCorrupt(f"the database is damaged: {'; '.join(findings)}")


def checkpoint(engine: Engine, mode: str) -> tuple[int, int]:
    """Move the WAL into the database, `PASSIVE` or `TRUNCATE`; WAL frames there were, frames moved."""
    connection = engine.raw_connection()
    try:
        row = connection.cursor().execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    finally:
        connection.close()
    return int(row[1]), int(row[2])


@contextlib.contextmanager
def translated_errors() -> Iterator[None]:
    """Turn what the database throws into our own errors; nothing of SQLAlchemy leaves this package."""
    try:
        yield
    except exc.DatabaseError as error:
        name = str(getattr(error.orig, "sqlite_errorname", "") or error.orig)
        if "CORRUPT" in name or "NOTADB" in name:
            raise StoreCorrupt(f"the database is damaged: {error.orig}", reason=name) from error
        raise StoreUnavailable(f"the database cannot be written: {error.orig}", reason=name) from error
    except OSError as error:
        raise StoreUnavailable(f"the database cannot be used: {error}", reason=error.strerror or "") from error


class WriterLock:
    """An operating-system lock on a file beside the database: one writer, whatever happens to the processes.

    The lock is the flock; the file's text is for people. The database file itself is never opened for this, because
    closing any descriptor of it would drop SQLite's own locks.
    """

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self._descriptor: int | None = None

    def acquire(self, holder: str) -> None:
        """Take the lock or say who has it.

        Raises:
            StoreHeld: another process has the lock.
            StoreUnavailable: the directory cannot be written.
        """
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot write beside the database: {self.path}: {error.strerror} (running as uid {os.getuid()})"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            other = os.read(descriptor, 500).decode(errors="replace").strip() or "an unknown process"
            os.close(descriptor)
            raise StoreHeld(
                f"the database is in use by {other}; stop that process first (lock file {self.path})"
            ) from error
        os.ftruncate(descriptor, 0)
        os.write(descriptor, holder.encode())
        self._descriptor = descriptor

    def release(self) -> None:
        """Let go; harmless when not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
