"""What the dashboard shows of the past: who can tell it, and in which form. Times are UTC, money is a Decimal."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLine:
    """One event in words."""

    position: int
    at: datetime
    actor: str
    what: str
    node_group: str | None
    instance: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeChange:
    """A group's target size became `target_size`; it was `before`."""

    at: datetime
    node_group: str
    before: int
    target_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DayCost:
    """What the machines of a group cost on one day."""

    day: date
    node_group: str
    cost: Decimal
    currency: str


class Archive(Protocol):
    """Answers from the audit views; all three raise StoreError when the database cannot be read."""

    def events(self, limit: int) -> Sequence[EventLine]:
        """The newest events, newest first."""
        ...

    def size_changes(self, since: datetime) -> Sequence[SizeChange]:
        """Changes of target sizes since then, oldest first."""
        ...

    def costs(self, since: date) -> Sequence[DayCost]:
        """Costs from that day on, by day and group."""
        ...
