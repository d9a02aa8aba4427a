"""The books as they are or were, for looking at: folded from the log, which is the only truth."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, func, select, true

from app.domain.books import Books, Draft
from app.domain.envelope import Event, Recorded
from app.store import log, schema
from app.store.projections import FOLD_VERSION, mark_of
from app.store.rows import books_of


def books_now(connection: Connection) -> Books:
    """The books with every instance there ever was. From the projections if they are today's, else from the log.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    return _books(connection, true())


def books_open(connection: Connection) -> Books:
    """The same without the instances that have ended, which may be many.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    return _books(connection, schema.instances.c.ended_at.is_(None))


def books_at(connection: Connection, at: datetime | None = None, position: int | None = None) -> Books:
    """The books as they were after the last event up to a time, or up to a position of the log.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    draft = Draft()
    for item in log.read(connection, 0):
        if (at is not None and item.recorded_at > at) or (position is not None and item.position > position):
            break
        draft.take(item)
    return draft.books()


def recorded_at(connection: Connection, position: int) -> datetime | None:
    """When the event at a position was written, None if there is none."""
    events = schema.events.c
    row = connection.execute(select(events.recorded_at).where(events.position == position)).one_or_none()
    return None if row is None else datetime.fromisoformat(row.recorded_at)


def _books(connection: Connection, instances: ColumnElement[bool]) -> Books:
    mark = mark_of(connection)
    if mark is None or mark["version"] != FOLD_VERSION or mark["position"] != log.head(connection).position:
        return books_at(connection)
    rows = {
        table: connection.execute(select(table).where(instances if table is schema.instances else true()))
        .mappings()
        .all()
        for table in schema.PROJECTED
    }
    return books_of(rows, mark["position"])


def told_of(connection: Connection, stream: str) -> Iterator[Recorded[Event]]:
    """Every event of one stream, oldest first.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    return _told(connection, schema.events.c.stream == stream)


def told_with(connection: Connection, correlation_id: str) -> Iterator[Recorded[Event]]:
    """Every event of one call or one job run, oldest first.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    return _told(connection, schema.events.c.correlation_id == correlation_id)


def told_about(connection: Connection, instance: str, types: Sequence[str]) -> Iterator[Recorded[Event]]:
    """Every event of these types that speaks of an instance, in whatever stream, oldest first.

    Raises:
        StoreCorrupt: an event cannot be read.
    """
    events = schema.events.c
    speaks_of_it = func.json_extract(events.data, "$.instance") == instance
    return _told(connection, events.type.in_(types) & speaks_of_it)


def _told(connection: Connection, condition: ColumnElement[bool]) -> Iterator[Recorded[Event]]:
    for row in connection.execute(select(schema.events).where(condition).order_by(schema.events.c.position)):
        yield log.recorded_of(row)
