"""The past for the dashboard, read from the audit views and kept for a while: a browser must not slow the log."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar, cast

from app.clock import Clock
from app.store import queries
from app.store.reading import reading
from app.web.archive import DayCost, EventLine, SizeChange

KEPT_FOR = timedelta(seconds=30)
"""The views behind target sizes and costs look at the whole log; nobody needs a new answer more often than this."""

_Answer = TypeVar("_Answer")


@dataclass(slots=True, kw_only=True)
class StoredPast:
    """An `Archive` over a database file, also while it is written."""

    database: Path
    clock: Clock
    _kept: dict[str, tuple[datetime, Sequence[object]]] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def events(self, limit: int) -> Sequence[EventLine]:
        """The newest events, newest first. Read every time: they are at the end of the log."""
        with reading(self.database) as connection:
            rows = queries.events(connection, limit=limit)
        return [_event(row) for row in reversed(rows)]

    def size_changes(self, since: datetime) -> Sequence[SizeChange]:
        """Changes of target sizes since then, oldest first."""
        return self._read("sizes", lambda: self._size_changes(since))

    def costs(self, since: date) -> Sequence[DayCost]:
        """Costs from that day on, by day and group."""
        return self._read("costs", lambda: self._costs(since))

    def _read(self, what: str, read: Callable[[], Sequence[_Answer]]) -> Sequence[_Answer]:
        """One thread reads at a time; those who wait take what it found."""
        with self._lock:
            now = self.clock.now()
            kept = self._kept.get(what)
            if kept is None or now - kept[0] >= KEPT_FOR:
                kept = (now, read())
                self._kept[what] = kept
        return cast("Sequence[_Answer]", kept[1])

    def _size_changes(self, since: datetime) -> Sequence[SizeChange]:
        with reading(self.database) as connection:
            rows = queries.size_changes(connection, f"{since:%Y-%m-%dT%H:%M:%S}")
        return [
            SizeChange(
                at=_time(row["recorded_at"]),
                node_group=row["node_group"],
                before=row["target_size"] - row["change"],
                target_size=row["target_size"],
            )
            for row in rows
        ]

    def _costs(self, since: date) -> Sequence[DayCost]:
        with reading(self.database) as connection:
            rows = queries.daily_costs(connection, since.isoformat())
        return [
            DayCost(
                day=date.fromisoformat(row["day"]),
                node_group=row["node_group"],
                cost=Decimal(row["cost"]),
                currency=row["currency"],
            )
            for row in rows
        ]


def _event(row: dict[str, Any]) -> EventLine:
    return EventLine(
        position=row["position"],
        at=_time(row["recorded_at"]),
        actor=row["actor"],
        what=row["what"],
        node_group=row["node_group"],
        instance=row["instance"],
    )


def _time(stored: str) -> datetime:
    return datetime.fromisoformat(stored).astimezone(UTC)
