"""The store as the ledger sees it: open, append, remember, check."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sqlalchemy import Connection, Engine, delete, or_, select
from sqlalchemy.engine import RowMapping

from app.domain.books import Books, evolve
from app.domain.envelope import Event, Recorded
from app.domain.instance.state import Instance
from app.errors import StoreCorrupt, StoreUnavailable
from app.store import log, schema, sqlite
from app.store.chain import GENESIS
from app.store.migrate import migrate
from app.store.rows import Changes, books_of, instance_of, iso

FOLD_VERSION = 1
"""Raise it when the fold or the projection rows change meaning: the projections are then rebuilt at the next start."""

_BOOKS = "books"


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of the log. Its hash vouches for everything before it."""

    position: int = 0
    recorded_at: datetime | None = None
    hash: str = GENESIS


class Store:
    """One SQLite database with one writing connection. Not thread-safe by itself: the ledger holds the lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.head = Head()
        self._lock = sqlite.WriterLock(path)
        self._engine: Engine | None = None
        self._readers = sqlite.reader_engine(path)

    def open(self, holder: str, ended_since: datetime) -> Books:
        """Take the writer lock, migrate, and load the books with the instances that ended after `ended_since`.

        The projections are loaded and caught up with the log; the cost does not grow with its length.

        Raises:
            StoreHeld: another process writes.
            StoreUnavailable: the file or its directory cannot be used.
            StoreCorrupt: the file is damaged, from a newer version, or its log was tampered with at the end.
        """
        self._lock.acquire(holder)
        try:
            with sqlite.translated_errors():
                self._refuse_leftovers()
                self._engine = sqlite.writer_engine(self.path)
                with self._engine.begin() as connection:
                    migrate(connection)
                    return self._load(connection, ended_since)
        except BaseException:
            self.close()
            raise

    def _refuse_leftovers(self) -> None:
        """A database of zero bytes is one that lost its content: never make a new one in its place silently."""
        wal = self.path.with_name(self.path.name + "-wal")
        if (self.path.exists() and self.path.stat().st_size == 0) or (wal.exists() and not self.path.exists()):
            raise StoreCorrupt(
                f"{self.path} is empty or missing beside its write-ahead log: restore a backup, "
                "or move what is left aside to begin anew"
            )

    def _load(self, connection: Connection, ended_since: datetime) -> Books:
        self.head = self._read_head(connection)
        mark = connection.execute(select(schema.projections).where(schema.projections.c.name == _BOOKS)).first()
        if mark is None or mark.version != FOLD_VERSION or mark.position > self.head.position:
            return self._rebuild(connection)
        recent = schema.instances.c.ended_at.is_(None) | (schema.instances.c.ended_at > iso(ended_since))
        rows: dict[object, Sequence[RowMapping]] = {}
        for table in schema.PROJECTED:
            wanted = select(table).where(recent) if table is schema.instances else select(table)
            rows[table] = connection.execute(wanted).mappings().all()
        books = books_of(rows, mark.position)  # type: ignore[arg-type] # tables are their own keys
        late = tuple(log.read(connection, mark.position))
        for item in late:
            books = evolve(books, item)
        if late:
            self._write_projections(connection, late, books)
        return books

    def _read_head(self, connection: Connection) -> Head:
        row = log.head(connection)
        if row is None:
            return Head()
        return Head(position=row["position"], recorded_at=datetime.fromisoformat(row["recorded_at"]), hash=row["hash"])

    def append(self, recorded: Sequence[Recorded[Event]], books: Books) -> None:
        """Make events durable together with the projection rows they touch; `books` is the state after them.

        Raises:
            StoreUnavailable: nothing was written.
        """
        if self._engine is None:
            raise StoreUnavailable("the database is closed")
        rows = log.event_rows(recorded, self.head.hash)
        with sqlite.translated_errors(), self._engine.begin() as connection:
            log.write(connection, rows)
            self._write_projections(connection, recorded, books)
        last = recorded[-1]
        self.head = Head(position=last.position, recorded_at=last.recorded_at, hash=rows[-1]["hash"])

    def _write_projections(self, connection: Connection, recorded: Sequence[Recorded[Event]], books: Books) -> None:
        changes = Changes()
        changes.note(recorded, books)
        self._write(connection, changes, recorded[-1].position)

    def _write(self, connection: Connection, changes: Changes, position: int) -> None:
        if changes.deletes:
            gone = schema.surplus_instances.c.instance_id.in_(changes.deletes)
            connection.execute(delete(schema.surplus_instances).where(gone))
        for table, by_key in changes.upserts.items():
            if by_key:
                connection.execute(sqlite.upsert(table), list(by_key.values()))
        mark = {"name": _BOOKS, "version": FOLD_VERSION, "position": position}
        connection.execute(sqlite.upsert(schema.projections), mark)

    def _rebuild(self, connection: Connection) -> Books:
        books, changes = fold_log(connection)
        for table in schema.PROJECTED:
            connection.execute(delete(table))
        self._write(connection, changes, books.position)
        return books

    def head_on_disk(self) -> Head:
        """The end of the log as the file has it, to find out what became of a commit that failed."""
        if self._engine is None:
            raise StoreUnavailable("the database is closed")
        with sqlite.translated_errors(), self._engine.begin() as connection:
            return self._read_head(connection)

    def events_after(self, position: int) -> tuple[Recorded[Event], ...]:
        """The events behind a position, read through the writing connection."""
        if self._engine is None:
            raise StoreUnavailable("the database is closed")
        with sqlite.translated_errors(), self._engine.begin() as connection:
            self.head = self._read_head(connection)
            return tuple(log.read(connection, position))

    def find_ended(self, key: str) -> Instance | None:
        """An instance by name or instance id, however long ago it ended."""
        table = schema.instances
        wanted = select(table).where(or_(table.c.name == key, table.c.instance_id == key)).limit(1)
        with sqlite.translated_errors(), self._readers.connect() as connection:
            row = connection.execute(wanted).mappings().first()
        return None if row is None else instance_of(row)

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database, as far as readers let it."""
        if self._engine is not None:
            with sqlite.translated_errors():
                sqlite.checkpoint(self._engine, "PASSIVE")

    def close(self) -> None:
        """Empty the write-ahead log, close, let go of the lock."""
        engine, self._engine = self._engine, None
        with contextlib.ExitStack() as stack:
            stack.callback(self._lock.release)
            if engine is not None:
                stack.callback(engine.dispose)
                with contextlib.suppress(StoreUnavailable, StoreCorrupt), sqlite.translated_errors():
                    sqlite.checkpoint(engine, "TRUNCATE")


def fold_log(connection: Connection) -> tuple[Books, Changes]:
    """The books and every projection row, folded from the first event on."""
    books = Books()
    touched: dict[str, Recorded[Event]] = {}
    cloud: list[Recorded[Event]] = []
    for item in log.read(connection, 0):
        books = evolve(books, item)
        if item.stream == "cloud":
            cloud.append(item)
        else:
            touched[item.stream] = item
    changes = Changes()
    changes.note(cloud, books)
    changes.note(touched.values(), books)
    return books, changes


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """A short read-only look at a database, also while a server writes it.

    Raises:
        StoreUnavailable: there is no database, or it cannot be read.
    """
    if not path.exists():
        raise StoreUnavailable(f"there is no database at {path}", path=str(path))
    engine = sqlite.reader_engine(path)
    try:
        with sqlite.translated_errors(), engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
