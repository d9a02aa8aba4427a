"""The ledger: commands in, facts out, and the one place where the two meet.

A reader takes `books`, an immutable value, and needs no lock. A writer calls `execute`, which answers only when the
facts are durable.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import reduce
from pathlib import Path

from app.clock import Clock
from app.domain.books import Books, evolve
from app.domain.decide import Command, decide
from app.domain.envelope import (
    Cause,
    CloudEvent,
    ClusterEvent,
    Decision,
    Event,
    InstanceEvent,
    NodeGroupEvent,
    Recorded,
)
from app.domain.instance.state import Instance
from app.errors import DeadlinePassed, StoreCorrupt, StoreError, StoreHeld, StoreUnavailable
from app.ledger.event_store import Batch, EventStore
from app.store.log import Head
from app.store.store import Store

KEEP_ENDED = timedelta(days=2)
"""How long ended instances stay in memory. Deletes are repeated within minutes; the store answers later ones."""

Listener = Callable[[Batch], None]


class Ledger:
    """The only road into the log."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._lock = threading.Lock()
        self._books = Books()
        self._doubt: Batch = ()
        self._stranger: str | None = None
        self._trouble: str | None = None
        self._listeners: list[Listener] = []
        self._unannounced: deque[Batch] = deque()
        self._announcing = threading.RLock()
        self._is_announcing = False

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
    def fenced(self) -> str | None:
        """Why this process must end: another one writes the log. None while we are its only writer."""
        return self._stranger

    @property
    def trouble(self) -> str | None:
        """Why the last write failed, None while writing works."""
        return self._trouble

    def subscribe(self, listener: Listener) -> None:
        """Be told every batch of facts after its commit, in the order of the log, on the thread of some writer.

        Be quick and do not raise: the writers of later batches wait meanwhile.
        """
        self._listeners.append(listener)

    def execute(self, command: Command, cause: Cause, not_after: float | None = None) -> Batch:
        """Decide on the current books, make the facts durable, fold them, publish the new books.

        `not_after` is a reading of the clock's `monotonic()`: once it has passed nothing is written any more.

        Raises:
            ProviderError: whatever the decider refuses with. A refusal that is a fact has been recorded; otherwise
                nothing has changed.
            DeadlinePassed: nothing has changed.
            StoreHeld: another process writes the log; nothing has changed, and this process must not write any more.
            StoreUnavailable: the commit failed and nothing has changed. Should the disk not even tell whether it
                failed, the next command asks again before it decides.
        """
        try:
            with self._turn(not_after), self._noting_trouble():
                self._settle_doubt()
                decision, recorded = self._decide_and_record(command, cause, not_after)
        finally:
            self._announce()
        if decision.refusal is not None:
            raise decision.refusal
        return recorded

    @contextmanager
    def _turn(self, not_after: float | None) -> Iterator[None]:
        """One command at a time. A caller with a deadline waits for its turn no longer than that."""
        patience = -1.0
        if not_after is not None:
            patience = min(max(not_after - self._clock.monotonic(), 0.0), threading.TIMEOUT_MAX)
        if not self._lock.acquire(timeout=patience):
            raise DeadlinePassed("the caller's deadline passed while earlier commands were being written")
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _noting_trouble(self) -> Iterator[None]:
        try:
            yield
        except StoreError as error:
            self._trouble = error.message
            raise

    def _decide_and_record(self, command: Command, cause: Cause, not_after: float | None) -> tuple[Decision, Batch]:
        """Decide and record; and again if the log refused a second beginning of a story that is only out of memory."""
        while True:
            decision = decide(command, self._books, self._clock.now())
            if not_after is not None and self._clock.monotonic() >= not_after:
                raise DeadlinePassed("the caller's deadline had passed before anything was written")
            try:
                return decision, self._record(decision.events, cause)
            except StoreUnavailable:
                if not self._remembered(decision.events):
                    raise

    def _remembered(self, events: Sequence[Event]) -> bool:
        """Bring back into the books what these events would begin anew; whether there was anything.

        Names are never used again, and a machine may come back long after its instance was forgotten.
        """
        if self._doubt:
            return False
        named = {event.instance for event in events if isinstance(event, InstanceEvent)}
        unknown = [name for name in named if name not in self._books.instances]
        forgotten = self._store.recall(unknown) if unknown else ()
        self._books = reduce(Books.with_instance, forgotten, self._books)
        return bool(forgotten)

    def _record(self, events: Sequence[Event], cause: Cause) -> Batch:
        if not events:
            return ()
        recorded = self._place(events, cause)
        books = reduce(evolve, recorded, self._books)
        self._doubt = recorded  # load-bearing: until the outcome is known, nothing else is decided
        try:
            self._store.append(recorded, books)
        except StoreError:
            if not self._is_in_the_log():
                raise
        else:
            self._publish(recorded, books)
        return recorded

    def _is_in_the_log(self) -> bool:
        try:
            return self._settle_doubt()
        except (StoreUnavailable, StoreCorrupt):
            return False  # still in doubt

    def _settle_doubt(self) -> bool:
        """After a commit of unknown outcome the disk has the last word on whether it happened. Whether it did.

        Raises:
            StoreHeld: the log goes on with something that this process did not write.
            StoreError: the disk does not tell.
        """
        if self._stranger is not None:
            raise StoreHeld(self._stranger)
        tried = tuple(self._doubt)
        if not tried:
            return False
        found = tuple(self._store.events_after(self._books.position))
        if found and found != tried:
            self._stranger = f"another process wrote position {found[0].position} of the log; this one must end"
            raise StoreHeld(self._stranger)
        self._doubt = ()
        if found:
            self._publish(found, reduce(evolve, found, self._books))
        return bool(found)

    def _publish(self, recorded: Batch, books: Books) -> None:
        self._doubt = ()
        self._trouble = None
        self._books = books
        self._unannounced.append(recorded)

    def _announce(self) -> None:
        """Tell the listeners what was published, in the order of the log, perhaps also what other threads published."""
        with self._announcing:
            if self._is_announcing:  # a listener has executed a command: its facts come after those it is being told
                return
            self._is_announcing = True
            try:
                while self._unannounced:
                    recorded = self._unannounced.popleft()
                    for listener in self._listeners:
                        listener(recorded)
            finally:
                self._is_announcing = False

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
        if isinstance(event, ClusterEvent):
            return books.cluster.version
        return books.cloud.version if isinstance(event, CloudEvent) else books.installation.version

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
            StoreHeld: another process writes the log.
            StoreUnavailable: it still cannot.
        """
        try:
            with self._lock, self._noting_trouble():
                self._settle_doubt()
                self._store.probe()
                self._trouble = None
        finally:
            self._announce()

    def close(self) -> None:
        """Wait for the command under way, then close the store; later commands fail with StoreUnavailable."""
        with self._lock:
            self._store.close()


def open_ledger(path: Path, clock: Clock, holder: str, trusted_networks: frozenset[str] = frozenset()) -> Ledger:
    """The ledger over a SQLite database; `trusted_networks` are network file systems that the operator answers for.

    Raises:
        StoreError: see `Store.open`.
    """
    ledger = Ledger(Store(path, trusted_networks=trusted_networks), clock)
    ledger.open(holder)
    return ledger
