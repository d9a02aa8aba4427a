"""The store as the ledger sees it: open, append, remember, check."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from types import ModuleType

from sqlalchemy import Connection, Engine, bindparam, or_, select

from app.domain.books import Books
from app.domain.envelope import Event, Recorded
from app.domain.instance.state import Instance
from app.domain.service import BooksReverted
from app.errors import StoreCorrupt, StoreHeld, StoreUnavailable
from app.log import get_logger
from app.store import log, private, projections, schema, sqlite
from app.store.lock import Ending, WriterLock, translated_file_errors
from app.store.log import Head
from app.store.migrate import migrate, revision_of
from app.store.mounts import refuse_network
from app.store.rows import instance_of

_SMALLEST_DATABASE = 512
"""SQLite's smallest page. It takes a file of a few bytes for an empty one and would write over it."""

_LARGEST_ALWAYS_LOOKED_AT = 16_000_000
"""Bytes, some 30,000 events; to look at every page of it takes about 0.1 s."""
_NAMES_AT_ONCE = 500
"""How many names one query may hold; SQLite's own limit is 32,766 values."""
_BY_NAME = select(schema.instances).where(schema.instances.c.name.in_(bindparam("names", expanding=True)))

_log = get_logger()


class Store:
    """One SQLite database with one writing connection. Not thread-safe by itself: the ledger holds the lock.

    `module` is the DB-API driver, by default the best there is; `busy_timeout_s` how long to wait for somebody else's
    write lock at start, and `patience_s` afterwards, when callers wait; `trusted_networks` the types of network file
    systems that the operator answers for; `before_migration` is called before a database of an older version is
    changed, and what it raises leaves the database as it is.
    """

    def __init__(
        self,
        path: Path,
        *,
        module: ModuleType | None = None,
        busy_timeout_s: float = sqlite.BUSY_TIMEOUT_S,
        patience_s: float = sqlite.PATIENCE_S,
        trusted_networks: frozenset[str] = frozenset(),
        before_migration: Callable[[], None] = lambda: None,
    ) -> None:
        self.path = path
        self._before_migration = before_migration
        self.once_reached: int | None = None
        """The position that the log had reached once, if the database that was opened ends before it."""
        self._owes_word = False
        self._trusted_networks = trusted_networks
        self.head = Head()
        self._lock = WriterLock(path)
        self._engine: Engine | None = None
        self._appending: Connection | None = None
        self._file: tuple[int, int] | None = None
        self._module = module
        self._busy_timeout_s = busy_timeout_s
        self._patience_s = patience_s
        self._readers = sqlite.reader_engine(path, module, patience_s)

    def open(self, holder: str, ended_since: datetime) -> Books:
        """Take the writer lock, migrate, and load the books with the instances that ended after `ended_since`.

        The cost does not grow with the log: the projections are loaded, the newest events are held against their
        hashes, and every page is looked at in files of up to 16 MB. In larger ones only if the machine of the last
        writer stopped under it, which the lock file tells: about a second for each 100 MB, once. A mere kill cannot
        spoil a page.

        Raises:
            StoreHeld: another process writes.
            StoreUnavailable: the file or its directory cannot be used.
            StoreCorrupt: the file is damaged, from a newer version, or its log was tampered with at the end.
        """
        refuse_network(self.path, self._trusted_networks)
        self._lock.acquire(holder)
        try:
            with sqlite.translated_errors(), translated_file_errors():
                return self._open(ended_since)
        except BaseException:
            self._disconnect()
            self._lock.release()
            raise

    def _open(self, ended_since: datetime) -> Books:
        is_new = self._is_new()
        if is_new:
            self._lock.note(Ending.CREATING)
            private.create(self.path)
        self._engine = sqlite.writer_engine(self.path, self._module, self._busy_timeout_s)
        if not is_new and self._is_older():
            self._before_migration()
        with self._engine.begin() as connection:
            if not is_new and self._is_to_be_looked_at():
                self._look_at_every_page(connection)
            if not is_new:
                self._lock.note(Ending.RUNNING)
            migrate(connection, is_new=is_new)
            log.check_tail(connection)
            self.head = log.head(connection)
            books = projections.load(connection, ended_since)
        if is_new:
            sqlite.checkpoint(self._engine, "TRUNCATE")  # from here on the file itself has the tables
            self._lock.note(Ending.RUNNING)
        sqlite.set_patience(self._engine, self._patience_s)
        self._file = self._identity()
        self._remember_how_far(is_new=is_new)
        return books

    def _is_older(self) -> bool:
        with sqlite.looking(self._writing()).begin() as connection:
            found = revision_of(connection)
        return found is not None and found != schema.SCHEMA_REVISION

    def _remember_how_far(self, *, is_new: bool) -> None:
        """Compare with the second witness, the lock file, which stays where it is when the database is replaced.

        If the log went farther once, the witness keeps that until the log says so itself: a start may fail before.
        """
        reached = self._lock.last_position
        if is_new and reached:
            _log.warning("there was a database here, and it is gone: a new one begins", path=str(self.path))
        elif reached is not None and reached > self.head.position:
            self.once_reached, self._owes_word = reached, True
            _log.warning("the database is older than it was", position=self.head.position, once_reached=reached)
        self._mark()

    def _mark(self) -> None:
        if self._owes_word:
            return
        with contextlib.suppress(StoreUnavailable):  # a second witness: what it cannot be told, it does not know
            self._lock.mark(self.head.position)

    def _is_new(self) -> bool:
        """There is no database yet. One that lost its content is another matter: nothing is made in its place.

        Raises:
            StoreCorrupt: there was a database here.
        """
        if self._lock.last_ending is Ending.CREATING:
            return True
        if self._lock.last_ending is Ending.RESTORING:
            raise StoreCorrupt(f"a restore of {self.path} was interrupted: run it again")
        wal = _size(self.path.with_name(self.path.name + "-wal"))
        size = _size(self.path)
        if (size is None and wal) or (size is not None and size < _SMALLEST_DATABASE):
            raise StoreCorrupt(
                f"{self.path} is empty or missing beside its write-ahead log: restore a backup, "
                "or move what is left aside to begin anew"
            )
        if size is not None and wal is None and self._lock.last_ending is Ending.RUNNING:
            _log.warning(
                "the database was not closed and its write-ahead log is gone: what was written last may be lost",
                path=str(self.path),
            )
        return size is None

    def _is_to_be_looked_at(self) -> bool:
        may_be_torn = self._lock.last_ending is not Ending.CLEAN and not self._lock.machine_was_up
        return may_be_torn or self.path.stat().st_size <= _LARGEST_ALWAYS_LOOKED_AT

    def _look_at_every_page(self, connection: Connection) -> None:
        findings = sqlite.damages(connection)
        if findings:
            raise StoreCorrupt(f"{self.path} is damaged: {'; '.join(findings)}: keep it and restore a backup")

    def _identity(self) -> tuple[int, int]:
        found = self.path.stat()
        return found.st_dev, found.st_ino

    def _connected(self) -> Engine:
        """The engine, as long as what it writes to is what the next process will find.

        Raises:
            StoreUnavailable: the store is closed, or the file was moved or deleted under us.
            StoreHeld: the lock file was, so that another process may write.
        """
        engine = self._writing()
        if not self._lock.is_ours():
            raise StoreHeld(f"{self._lock.path} was moved or deleted: another process may hold the database; restart")
        with translated_file_errors():
            if self._identity() != self._file:
                raise StoreUnavailable(f"{self.path} was replaced while in use: put it back, or restart")
        return engine

    def _writing(self) -> Engine:
        if self._engine is None:
            raise StoreUnavailable("the database is closed")
        return self._engine

    def append(self, recorded: Sequence[Recorded[Event]], books: Books) -> None:
        """Make events durable together with the projection rows they touch; `books` is the state after them.

        Raises:
            StoreUnavailable: nothing was written, or it is not known whether it was; `events_after` tells.
            StoreBusy: somebody else's transaction holds the write lock; nothing was written.
            StoreHeld: another process may write; nothing was written.
        """
        if not recorded:
            return
        engine = self._connected()
        rows = log.event_rows(recorded, self.head.hash)
        with sqlite.translated_errors(), self._transaction(engine) as connection:
            log.write(connection, rows)
            projections.write(connection, recorded, books)
        last = recorded[-1]
        self.head = Head(position=last.position, recorded_at=last.recorded_at, hash=rows[-1]["hash"])
        if any(isinstance(item.event, BooksReverted) for item in recorded):
            self._owes_word = False
        self._mark()

    @contextlib.contextmanager
    def _transaction(self, engine: Engine) -> Iterator[Connection]:
        """One on the connection that is kept for it, since making one costs as much as writing the rows."""
        connection = self._appending = self._appending or engine.connect()
        try:
            with connection.begin():
                yield connection
        except BaseException:
            self._let_go()  # load-bearing: whatever state it is in, the next one begins outside of a transaction
            raise

    def events_after(self, position: int) -> tuple[Recorded[Event], ...]:
        """The events behind a position as the disk has them; moves `head` to the end. Tells what became of a commit.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        with sqlite.translated_errors(), sqlite.looking(self._connected()).begin() as connection:
            self.head = log.head(connection)
            return tuple(log.read(connection, position))

    def probe(self) -> None:
        """Write for real and change nothing.

        Raises:
            StoreUnavailable: the disk does not take it.
        """
        with sqlite.translated_errors(), self._connected().begin() as connection:
            projections.touch(connection)

    def recall(self, names: Sequence[str]) -> tuple[Instance, ...]:
        """Those of these instances that exist in the books on disk, however long ago they ended.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        found: list[Instance] = []
        with sqlite.translated_errors(), sqlite.looking(self._connected()).begin() as connection:
            for first in range(0, len(names), _NAMES_AT_ONCE):
                some = {"names": names[first : first + _NAMES_AT_ONCE]}
                found.extend(instance_of(row) for row in connection.execute(_BY_NAME, some).mappings())
        return tuple(found)

    def find_ended(self, key: str) -> Instance | None:
        """An instance by name or instance id, however long ago it ended; the newest that had that id. From any thread.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        table = schema.instances
        by_key = select(table).where(or_(table.c.name == key, table.c.instance_id == key))
        newest = by_key.order_by((table.c.name == key).desc(), table.c.position.desc()).limit(1)
        with sqlite.translated_errors(), self._readers.connect() as connection:
            row = connection.execute(newest).mappings().first()
        return None if row is None else instance_of(row)

    def checkpoint(self) -> None:
        """Move the write-ahead log into the database, as far as readers let it.

        Raises:
            StoreUnavailable: it did not work; nothing is lost.
        """
        if self._engine is not None:
            with sqlite.translated_errors():
                sqlite.checkpoint(self._engine, "PASSIVE")

    def close(self) -> None:
        """Empty the write-ahead log, close, note the clean end, let go of the lock. Harmless when closed."""
        engine = self._engine
        try:
            if engine is not None:
                with contextlib.suppress(StoreUnavailable, StoreCorrupt), sqlite.translated_errors():
                    sqlite.checkpoint(engine, "TRUNCATE")
                self._disconnect()
                with contextlib.suppress(StoreUnavailable):
                    self._lock.note(Ending.CLEAN)
        finally:
            self._lock.release()

    def _let_go(self) -> None:
        appending, self._appending = self._appending, None
        if appending is not None:
            appending.close()

    def _disconnect(self) -> None:
        self._let_go()
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()


def _size(file: Path) -> int | None:
    return file.stat().st_size if file.exists() else None
