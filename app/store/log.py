"""Events as rows: writing them with their hashes, reading them back."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, Row, select

from app.domain.envelope import Cause, Event, Recorded
from app.domain.registry import UnknownEvent, decode
from app.errors import StoreCorrupt
from app.store.chain import GENESIS, broken_links, link
from app.store.columns import canonical, iso
from app.store.rows import brief
from app.store.schema import events
from app.store.sqlite import inserter

_BATCH = 1000
_TAIL = 100
"""How many of the newest events are checked at start: what was written last is what a bad end may have spoiled."""
_INSERTER = inserter(events)


def event_rows(recorded: Iterable[Recorded[Event]], head_hash: str) -> Sequence[dict[str, Any]]:
    """Rows for these events, chained to the row whose hash is `head_hash`."""
    rows: list[dict[str, Any]] = []
    for item in recorded:
        row: dict[str, Any] = {
            "position": item.position,
            "stream": item.stream,
            "version": item.version,
            "type": item.event.type,
            "schema": item.event.schema_version,
            "recorded_at": iso(item.recorded_at),
            "actor": item.cause.actor,
            "correlation_id": item.cause.correlation_id,
            "data": canonical(item.event.model_dump(mode="json")),
        }
        head_hash = row["hash"] = link(head_hash, (str(part) for part in row.values()))
        rows.append(row)
    return rows


def write(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Append rows within the caller's transaction."""
    _INSERTER.write(connection, rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Head:
    """The end of the log. Its hash vouches for everything before it."""

    position: int = 0
    recorded_at: datetime | None = None
    hash: str = GENESIS


def head(connection: Connection) -> Head:
    """The end of the log as the database has it.

    Raises:
        StoreCorrupt: the last event is damaged.
    """
    newest = select(events.c.position, events.c.recorded_at, events.c.hash).order_by(events.c.position.desc()).limit(1)
    row = connection.execute(newest).first()
    if row is None:
        return Head()
    try:
        recorded_at = datetime.fromisoformat(row.recorded_at)
    except ValueError as error:
        raise StoreCorrupt(f"event {row.position} cannot be read: {brief(error)}", position=row.position) from error
    return Head(position=row.position, recorded_at=recorded_at, hash=row.hash)


def rows_after(connection: Connection, after: int) -> Iterator[Row[Any]]:
    """Every row behind a position, in order, in bounded batches."""
    while True:
        batch = select(events).where(events.c.position > after).order_by(events.c.position).limit(_BATCH)
        rows = connection.execute(batch).all()
        yield from rows
        if len(rows) < _BATCH:
            return
        after = rows[-1].position


def read(connection: Connection, after: int) -> Iterator[Recorded[Event]]:
    """Every event behind a position, in order.

    Raises:
        StoreCorrupt: an event was written by a newer version of the program, or its payload is damaged.
    """
    previous: Recorded[Event] | None = None
    for row in rows_after(connection, after):
        previous = recorded_of(row, previous)
        yield previous


def check_tail(connection: Connection, length: int = _TAIL) -> None:
    """Hold the newest events against their hashes. The cost does not grow with the log.

    Raises:
        StoreCorrupt: one of them is not what was written.
    """
    newest = select(events).order_by(events.c.position.desc()).limit(length + 1)
    rows = connection.execute(newest).all()[::-1]
    if len(rows) > length:
        findings = list(broken_links(rows[1:], rows[0].position, rows[0].hash))
    else:
        findings = list(broken_links(rows, 0, GENESIS))
    if findings:
        raise StoreCorrupt(f"the log is not what was written: {'; '.join(findings)}: restore a backup")


def recorded_of(row: Row[Any], previous: Recorded[Event] | None = None) -> Recorded[Event]:
    """The event behind a row. Events of one call share its cause with the one before."""
    position, stream, version, name, schema_version, written_at, actor, correlation_id, data, _ = tuple(row)
    try:
        event = decode(name, schema_version, data)
        recorded_at = datetime.fromisoformat(written_at)
    except (UnknownEvent, ValueError) as error:
        raise StoreCorrupt(f"event {position} cannot be read: {brief(error)}", position=position) from error
    if previous and previous.cause.correlation_id == correlation_id and previous.cause.actor == actor:
        cause = previous.cause
    else:
        cause = Cause(actor=actor, correlation_id=correlation_id)
    return Recorded(
        position=position, stream=stream, version=version, recorded_at=recorded_at, cause=cause, event=event
    )
