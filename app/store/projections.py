"""The projection tables: written beside the events, loaded at start, folded anew when the fold has changed."""

from collections.abc import Callable, Sequence
from datetime import datetime
from functools import reduce

from sqlalchemy import Connection, RowMapping, Table, delete, select, update

from app.domain.books import Books, Draft, evolve
from app.domain.envelope import Event, InstanceEvent, Recorded
from app.errors import StoreCorrupt
from app.store import log, schema, sqlite
from app.store.columns import iso
from app.store.rows import Changes, books_of, brief

FOLD_VERSION = 9
"""Raise it when the fold or the projection rows change meaning: the projections are then rebuilt at the next start."""

Progress = Callable[[int, int], None]
"""Told again and again which position has been reached, and which is the last."""

_STRIDE = 100
_BOOKS = "books"
_UPSERTERS = {table: sqlite.upserter(table) for table in (*schema.PROJECTED, schema.projections)}
_MARK = schema.projections.c.name == _BOOKS


def ignore(_position: int, _last: int) -> None:
    """Nobody wants to know how far it is."""


def write(connection: Connection, recorded: Sequence[Recorded[Event]], books: Books) -> None:
    """Write the rows that these events touch; `books` is the state after them."""
    changes = Changes()
    changes.note(recorded, books)
    _write(connection, changes, recorded[-1].position)


def _write(connection: Connection, changes: Changes, position: int) -> None:
    for table, keys in changes.deletes.items():
        if keys:
            (key,) = table.primary_key.columns
            connection.execute(delete(table).where(key.in_(keys)))
    for table, by_key in changes.upserts.items():
        if by_key:
            _UPSERTERS[table].write(connection, by_key.values())
    mark = {"name": _BOOKS, "version": FOLD_VERSION, "position": position}
    _UPSERTERS[schema.projections].write(connection, [mark])


def touch(connection: Connection) -> None:
    """Write a page and change nothing, to learn whether the disk takes it."""
    connection.execute(update(schema.projections).where(_MARK).values(name=_BOOKS))


def mark_of(connection: Connection) -> RowMapping | None:
    """Version of the fold and position that the projections stand for, None if they were never written."""
    return connection.execute(select(schema.projections).where(_MARK)).mappings().first()


def load(connection: Connection, ended_since: datetime) -> Books:
    """The books without the instances that ended before `ended_since`, caught up with the log.

    Raises:
        StoreCorrupt: a row cannot be read.
    """
    head = log.head(connection)
    mark = mark_of(connection)
    if mark is None or mark["version"] != FOLD_VERSION or mark["position"] > head.position:
        position = rebuild(connection)
    else:
        position = mark["position"]
    late = tuple(log.read(connection, position))
    named = {item.event.instance for item in late if isinstance(item.event, InstanceEvent)}
    try:
        books = books_of(_rows(connection, ended_since, named), position)
    except ValueError as error:
        raise StoreCorrupt(f"a projection cannot be read: {brief(error)}: rebuild them from the log") from error
    if late:
        books = reduce(evolve, late, books)
        write(connection, late, books)
    return books


def _rows(connection: Connection, ended_since: datetime, named: set[str]) -> dict[Table, Sequence[RowMapping]]:
    table = schema.instances
    wanted = table.c.ended_at.is_(None) | (table.c.ended_at > iso(ended_since))
    if named:
        wanted |= table.c.name.in_(named)
    rows: dict[Table, Sequence[RowMapping]] = {}
    for projected in schema.PROJECTED:
        query = select(projected).where(wanted) if projected is table else select(projected)
        rows[projected] = connection.execute(query).mappings().all()
    return rows


def rebuild(connection: Connection, progress: Progress = ignore) -> int:
    """Empty the projections and fold the whole log into them; the position they stand for then.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    draft, changes = fold_log(connection, progress)
    for table in schema.PROJECTED:
        connection.execute(delete(table))
    _write(connection, changes, draft.position)
    return draft.position


def fold_log(connection: Connection, progress: Progress = ignore) -> tuple[Draft, Changes]:
    """The books and every projection row, folded from the first event on.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    draft, last = Draft(), log.head(connection).position
    touched: dict[str, Recorded[Event]] = {}
    around: list[Recorded[Event]] = []
    for item in log.read(connection, 0):
        draft.take(item)
        if item.position % _STRIDE == 0:
            progress(item.position, last)
        if item.stream in {"cloud", "cluster"}:  # streams whose single events have rows of their own
            around.append(item)
        else:
            touched[item.stream] = item
    changes = Changes()
    changes.note(around, draft)
    changes.note(touched.values(), draft)
    return draft, changes
