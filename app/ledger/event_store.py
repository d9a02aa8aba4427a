"""The ledger's port to the disk. `app.store.store.Store` is the one that ships; tests put failing ones around it."""

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from app.domain.books import Books
from app.domain.envelope import Event, Recorded
from app.domain.instance.state import Instance
from app.store.log import Head

Batch = Sequence[Recorded[Event]]
"""Events that became durable together."""


class EventStore(Protocol):
    """What the ledger needs of a store."""

    head: Head

    @property
    def once_reached(self) -> int | None:
        """How far the log is known to have gone, if that is farther than it went when it was opened."""
        ...

    def open(self, holder: str, ended_since: datetime) -> Books:
        """Load the books."""
        ...

    def append(self, recorded: Batch, books: Books) -> None:
        """Make events durable; refuse versions that do not follow. A StoreError leaves open what happened."""
        ...

    def events_after(self, position: int) -> Batch:
        """The events behind a position; moves `head` to the end."""
        ...

    def recall(self, names: Sequence[str]) -> Sequence[Instance]:
        """Those of these instances that were ever in the books."""
        ...

    def find_ended(self, key: str) -> Instance | None:
        """An instance by name or id, however long ago it ended."""
        ...

    def probe(self) -> None:
        """Write for real and change nothing."""
        ...

    def checkpoint(self) -> None:
        """Keep the write-ahead log short."""
        ...

    def close(self) -> None:
        """Close and unlock."""
        ...
