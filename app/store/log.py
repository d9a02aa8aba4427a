"""Events as rows: writing them with their hashes, reading them back."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, insert, select

from app.domain.envelope import Cause, Event, Recorded
from app.domain.registry import UnknownEvent, decode
from app.errors import StoreCorrupt
from app.store.chain import link
from app.store.rows import canonical, iso
from app.store.schema import events

_BATCH = 1000


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
    connection.execute(insert(events), rows)


def head(connection: Connection) -> RowMapping | None:
    """Position, time and hash of the last event, None for an empty log."""
    newest = select(events.c.position, events.c.recorded_at, events.c.hash).order_by(events.c.position.desc()).limit(1)
    return connection.execute(newest).mappings().first()


def read(connection: Connection, after: int) -> Iterator[Recorded[Event]]:
    """Every event behind a position, in order, in bounded batches.

    Raises:
        StoreCorrupt: an event was written by a newer version of the program, or its payload is damaged.
    """
    while True:
        batch = select(events).where(events.c.position > after).order_by(events.c.position).limit(_BATCH)
        rows = connection.execute(batch).mappings().all()
        for row in rows:
            yield recorded_of(row)
        if len(rows) < _BATCH:
            return
        after = rows[-1]["position"]


def recorded_of(row: RowMapping) -> Recorded[Event]:
    """The event behind a row."""
    try:
        event = decode(row["type"], row["schema"], row["data"])
    except (UnknownEvent, ValueError) as error:
        raise StoreCorrupt(f"event {row['position']} cannot be read: {error}", position=row["position"]) from error
    return Recorded(
        position=row["position"],
        stream=row["stream"],
        version=row["version"],
        recorded_at=datetime.fromisoformat(row["recorded_at"]),
        cause=Cause(actor=row["actor"], correlation_id=row["correlation_id"]),
        event=event,
    )
