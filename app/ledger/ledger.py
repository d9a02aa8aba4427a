"""The ledger: commands in, facts out, and the one place where the two meet.

A reader takes `books`, an immutable value, and needs no lock. A writer calls `execute`, which answers only when the
facts are durable.
"""

import threading
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path
from typing import Protocol

from app.clock import Clock
from app.domain.books import Books, evolve
from app.domain.decide import Command, decide
from app.domain.envelope import Cause, CloudEvent, Event, InstanceEvent, NodeGroupEvent, Recorded
from app.domain.instance.state import Instance
from app.errors import DeadlinePassed, StoreError
from app.store.store import Head, Store

KEEP_ENDED = timedelta(days=2)
"""How long ended instances stay in memory. Deletes are repeated within minutes; the store answers later ones."""

Listener = Callable[[Sequence[Recorded[Event]]], None]


class EventStore(Protocol):
    """What the ledger needs of a store."""

    head: Head

    def open(self, holder: str, ended_since: datetime) -> Books:
        """Load the books."""
        ...

    def append(self, recorded: Sequence[Recorded[Event]], books: Books) -> None:
        """Make events durable, or raise StoreUnavailable with nothing written."""
        ...

    def head_on_disk(self) -> Head:
        """The end of the log as the disk has it."""
        ...

    def events_after(self, position: int) -> tuple[Recorded[Event], ...]:
        """The events behind a position; moves `head` to the end."""
        ...

    def find_ended(self, key: str) -> Instance | None:
        """An instance by name or id, however long ago it ended."""
        ...

    def checkpoint(self) -> None:
        """Keep the write-ahead log short."""
        ...

    def close(self) -> None:
        """Close and unlock."""
        ...


class Ledger:
    """The only road into the log."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._books = Books()
        self._listeners: list[Listener] = []
        self._in_doubt = False
        self._trouble: str | None = None

    def open(self, holder: str) -> None:
        """Take the store over and read the books.

        Raises:
            StoreError: see `Store.open`.
        """
        self._books = self._store.open(holder, self._clock.now() - KEEP_ENDED)

    @property
    def books(self) -> Books:
        """The current state, immutable; taking it costs nothing and never waits."""
        return self._books

    @property
    def head(self) -> Head:
        """The end of the log."""
        return self._store.head

    @property
    def trouble(self) -> str | None:
        """Why the last write failed, None while writing works."""
        return self._trouble

    def subscribe(self, listener: Listener) -> None:
        """Be told every batch of facts after its commit, on the writer's thread; be quick and do not raise."""
        self._listeners.append(listener)

    def execute(self, command: Command, cause: Cause, not_after: float | None = None) -> Sequence[Recorded[Event]]:
        """Decide on the current books, make the facts durable, fold them, publish the new books.

        `not_after` is a reading of the clock's `monotonic()`: once it has passed nothing is written any more.

        Raises:
            ProviderError: whatever the decider refuses with. A refusal that is a fact has been recorded; otherwise
                nothing has changed.
            DeadlinePassed: nothing has changed.
            StoreUnavailable: the commit failed, nothing has changed.
        """
        with self._lock:
            self._settle_doubt()
            decision = decide(command, self._books, self._clock.now())
            if not_after is not None and self._clock.monotonic() >= not_after:
                raise DeadlinePassed("the caller's deadline had passed before anything was written")
            recorded = self._record(decision.events, cause)
        if recorded:
            for listener in self._listeners:
                listener(recorded)
        if decision.refusal is not None:
            raise decision.refusal
        return recorded

    def _record(self, events: Sequence[Event], cause: Cause) -> Sequence[Recorded[Event]]:
        if not events:
            return ()
        recorded = self._place(events, cause)
        books = reduce(evolve, recorded, self._books)
        try:
            self._store.append(recorded, books)
        except StoreError as error:
            self._in_doubt = True
            self._trouble = error.message
            raise
        self._trouble = None
        self._books = books
        return recorded

    def _place(self, events: Sequence[Event], cause: Cause) -> Sequence[Recorded[Event]]:
        """Positions, versions and times; the log's time never goes back, whatever the clock does."""
        at = max(self._clock.now(), self._store.head.recorded_at or self._clock.now())
        versions: dict[str, int] = {}
        recorded: list[Recorded[Event]] = []
        for offset, event in enumerate(events, start=1):
            stream = event.stream
            versions[stream] = versions.get(stream, self._version_of(event)) + 1
            recorded.append(
                Recorded(
                    position=self._books.position + offset,
                    stream=stream,
                    version=versions[stream],
                    recorded_at=at,
                    cause=cause,
                    event=event,
                )
            )
        return recorded

    def _version_of(self, event: Event) -> int:
        books = self._books
        if isinstance(event, InstanceEvent):
            instance = books.instances.get(event.instance)
            return instance.version if instance else 0
        if isinstance(event, NodeGroupEvent):
            group = books.groups.get(event.node_group)
            return group.version if group else 0
        return books.cloud.version if isinstance(event, CloudEvent) else books.installation.version

    def _settle_doubt(self) -> None:
        """After a failed commit the disk has the last word on whether it happened."""
        if not self._in_doubt:
            return
        on_disk = self._store.head_on_disk()
        if on_disk.position != self._books.position:
            self._books = reduce(evolve, self._store.events_after(self._books.position), self._books)
        self._in_doubt = False

    def find_ended(self, key: str) -> Instance | None:
        """An instance that ended long ago, by name or instance id.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        return self._store.find_ended(key)

    def forget_ended(self) -> int:
        """Drop instances from memory that ended long enough ago; the store still knows them. How many were dropped."""
        with self._lock:
            before = self._clock.now() - KEEP_ENDED
            old = [
                instance.name
                for instance in self._books.instances.values()
                if instance.ended_at is not None and instance.ended_at < before
            ]
            self._books = reduce(Books.without_instance, old, self._books)
        return len(old)

    def checkpoint(self) -> None:
        """Keep the write-ahead log short.

        Raises:
            StoreUnavailable: it did not work; nothing is lost.
        """
        with self._lock:
            self._store.checkpoint()

    def probe(self) -> None:
        """See whether the disk can be written again after a failure, so that readiness recovers by itself.

        Raises:
            StoreUnavailable: it still cannot.
        """
        with self._lock:
            self._settle_doubt()
            self._trouble = None

    def close(self) -> None:
        """Wait for the command under way, then close the store; later commands fail with StoreUnavailable."""
        with self._lock:
            self._store.close()


def open_ledger(path: Path, clock: Clock, holder: str) -> Ledger:
    """The ledger over a SQLite database.

    Raises:
        StoreError: see `Store.open`.
    """
    ledger = Ledger(Store(path), clock)
    ledger.open(holder)
    return ledger
