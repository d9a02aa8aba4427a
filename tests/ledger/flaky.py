"""A store that fails on demand, in every way in which a disk can fail."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime

from app.domain.books import Books
from app.domain.envelope import Event, Recorded
from app.domain.instance.state import Instance
from app.errors import StoreBusy, StoreUnavailable
from app.store.log import Head
from app.store.store import Store


@dataclass(kw_only=True)
class Flaky:
    """Passes everything on to a real store, unless told otherwise.

    `lost`: the next append is not written and fails. `unheard`: the next append is written and fails all the same, as
    when the answer to a COMMIT is an error. `blind`: nothing can be read. `gate`: appends wait for it. `busy`: somebody
    else holds the write lock, which is found out `found_busy` times.
    """

    store: Store
    lost: bool = False
    unheard: bool = False
    blind: bool = False
    busy: bool = False
    found_busy: int = 0
    gate: threading.Event = field(default_factory=threading.Event)
    appending: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        """Nothing waits at first."""
        self.gate.set()

    @property
    def head(self) -> Head:
        """The real one's."""
        return self.store.head

    @head.setter
    def head(self, head: Head) -> None:
        self.store.head = head

    @property
    def once_reached(self) -> int | None:
        """The real one's."""
        return self.store.once_reached

    def open(self, holder: str, ended_since: datetime) -> Books:
        """Open the real one."""
        return self.store.open(holder, ended_since)

    def append(self, recorded: Sequence[Recorded[Event]], books: Books) -> None:
        """Write, or not, and tell the truth, or not."""
        if self.busy:
            self.found_busy += 1
            raise StoreBusy("another process holds its write lock")
        self.appending.set()
        self.gate.wait(20)
        if self.lost:
            self.lost = False
            raise StoreUnavailable("the disk is full")
        if self.unheard:
            self.unheard = False
            head = self.store.head
            self.store.append(recorded, books)
            self.store.head = head  # nobody was told
            raise StoreUnavailable("the disk reports an error")
        self.store.append(recorded, books)

    def events_after(self, position: int) -> Sequence[Recorded[Event]]:
        """Read, unless blind."""
        if self.blind:
            raise StoreUnavailable("the disk cannot be read")
        return self.store.events_after(position)

    def recall(self, names: Sequence[str]) -> Sequence[Instance]:
        """Ask the real one."""
        return self.store.recall(names)

    def find_ended(self, key: str) -> Instance | None:
        """Ask the real one."""
        return self.store.find_ended(key)

    def probe(self) -> None:
        """Ask the real one."""
        self.store.probe()

    def checkpoint(self) -> None:
        """Ask the real one."""
        self.store.checkpoint()

    def close(self) -> None:
        """Close the real one."""
        self.store.close()
