"""The ledger: commands in, facts out, and the one place where the two meet.

A reader takes `books`, an immutable value, and needs no lock. A writer calls `execute`, which answers only when the
facts are durable. Writers that come while another one writes wait in line and are then served together, so that many at
a time wait for the disk once.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import reduce
from pathlib import Path

from app.clock import Clock
from app.domain.books import Books, evolve
from app.domain.cloud import OrphanDetected
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
from app.domain.nodegroup.commands import DeleteNodes
from app.errors import DeadlinePassed, StoreBusy, StoreCorrupt, StoreError, StoreHeld, StoreUnavailable
from app.ledger.backups import BackupPlan
from app.ledger.event_store import Batch, EventStore
from app.ledger.line import Entry, Line
from app.store.log import Head
from app.store.store import Store

KEEP_ENDED = timedelta(days=2)
MOST_ENDED = 1_000
"""How long ended instances stay in memory, and how many: so that it does not grow with what comes and goes.

Deletes are repeated within minutes; the store answers later ones.
"""

Listener = Callable[[Batch], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plan:
    """What an entry is going to record, and how it is going to end. Void if the commit fails."""

    entry: Entry
    recorded: Batch
    refusal: Exception | None


def _forgettable(books: Books, now: datetime) -> Sequence[str]:
    """Names of what ended too long ago to stay in memory, or before the newest `MOST_ENDED`."""
    ended = sorted((one.ended_at, one.name) for one in books.instances.values() if one.ended_at is not None)
    over = max(len(ended) - MOST_ENDED, 0)
    return [name for turn, (at, name) in enumerate(ended) if turn < over or at < now - KEEP_ENDED]


class Ledger:
    """The only road into the log."""

    def __init__(self, store: EventStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._line = Line(clock)
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
        books = self._store.open(holder, self._clock.now() - KEEP_ENDED)
        self._books = reduce(Books.without_instance, _forgettable(books, self._clock.now()), books)

    @property
    def books(self) -> Books:
        """The current state, immutable; taking it costs nothing and never waits."""
        return self._books

    @property
    def head(self) -> Head:
        """The end of the log."""
        return self._store.head

    @property
    def once_reached(self) -> int | None:
        """How far the log is known to have gone, if that is farther than it went when it was opened."""
        return self._store.once_reached

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
        entry = Entry(command, cause, not_after)
        try:
            self._line.serve(entry, self._carry_out)
        finally:
            self._announce()
        if entry.error is not None:
            raise entry.error
        return entry.recorded

    def _carry_out(self, entries: Sequence[Entry]) -> None:
        """Have every entry done: decided one after the other, durable together, or failed for the same reason."""
        try:
            self._settle_doubt()
            self._carry_out_together(entries)
        except StoreError as error:
            self._trouble = error.message
            for entry in entries:
                entry.fail(error)

    def _carry_out_together(self, entries: Sequence[Entry]) -> None:
        """Decide and record; one by one if together they cannot be.

        And again if the log refused a second beginning of a story that is only out of memory.
        """
        self._bring_back(entries)
        plans, books = self._plan(entries)
        recorded = tuple(item for plan in plans for item in plan.recorded)
        try:
            self._record(recorded, books)
        except StoreBusy:
            raise  # load-bearing: each on its own would wait as long again, and the last one for all of them
        except StoreUnavailable:
            if len(entries) > 1 and not self._doubt:
                for entry in entries:
                    self._carry_out((entry,))
                return
            if not self._remembered(recorded):
                raise
            self._carry_out_together(entries)
            return
        for plan in plans:
            plan.entry.succeed(plan.recorded, plan.refusal)

    def _plan(self, entries: Sequence[Entry]) -> tuple[Sequence[_Plan], Books]:
        """What each entry is going to record, each decided on the books as the ones before it leave them."""
        books = self._books
        at = max(self._clock.now(), self._store.head.recorded_at or self._clock.now())
        plans: list[_Plan] = []
        for entry in entries:
            try:
                decision = self._decide(entry, books)
                recorded = self._place(decision.events, entry.cause, books, at)
                books = reduce(evolve, recorded, books)
            except Exception as error:  # noqa: BLE001 - it is the caller's, who waits for it on another thread
                plans.append(_Plan(entry=entry, recorded=(), refusal=error))
            else:
                plans.append(_Plan(entry=entry, recorded=recorded, refusal=decision.refusal))
        return plans, books

    def _decide(self, entry: Entry, books: Books) -> Decision:
        decision = decide(entry.command, books, self._clock.now())
        if entry.not_after is not None and self._clock.monotonic() >= entry.not_after:
            raise DeadlinePassed("the caller's deadline had passed before anything was written")
        return decision

    def _bring_back(self, entries: Sequence[Entry]) -> None:
        """What is given back must be known, however long ago it ended: one that was lost may return."""
        deletions = (entry.command for entry in entries if isinstance(entry.command, DeleteNodes))
        self._recall({name for command in deletions for name in command.instances})

    def _remembered(self, recorded: Batch) -> bool:
        """Bring back into the books what these events would begin anew; whether there was anything.

        Names are never used again, and a machine may come back long after its instance was forgotten.
        """
        if self._doubt:
            return False
        named = {item.event.instance for item in recorded if isinstance(item.event, InstanceEvent)}
        named |= {item.event.hostname for item in recorded if isinstance(item.event, OrphanDetected)}
        return self._recall(named)

    def _recall(self, named: Iterable[str]) -> bool:
        """Take those into memory that have left it; whether there were any."""
        unknown = [name for name in named if name not in self._books.instances]
        forgotten = self._store.recall(unknown) if unknown else ()
        self._books = reduce(Books.with_instance, forgotten, self._books)
        return bool(forgotten)

    def _record(self, recorded: Batch, books: Books) -> None:
        if not recorded:
            return
        self._doubt = recorded  # load-bearing: until the outcome is known, nothing else is decided
        try:
            self._store.append(recorded, books)
        except StoreError:
            if not self._is_in_the_log():
                raise
        else:
            self._publish(recorded, books)

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

    def _place(self, events: Sequence[Event], cause: Cause, books: Books, at: datetime) -> Batch:
        """Positions and versions behind those of the books; the log's time never goes back, whatever the clock does."""
        versions: dict[str, int] = {}
        recorded: list[Recorded[Event]] = []
        for offset, event in enumerate(events, start=1):
            stream = event.stream
            versions[stream] = versions.get(stream, _version_of(event, books)) + 1
            recorded.append(
                Recorded(
                    position=books.position + offset,
                    stream=stream,
                    version=versions[stream],
                    recorded_at=at,
                    cause=cause,
                    event=event,
                )
            )
        return tuple(recorded)

    def find_ended(self, key: str) -> Instance | None:
        """An instance that ended long ago, by name or instance id.

        Raises:
            StoreUnavailable: the database cannot be read.
        """
        return self._store.find_ended(key)

    def forget_ended(self) -> int:
        """Drop the longest ended instances from memory; the store still knows them. How many were dropped."""
        with self._line.alone():
            old = _forgettable(self._books, self._clock.now())
            self._books = reduce(Books.without_instance, old, self._books)
        return len(old)

    def checkpoint(self) -> None:
        """Keep the write-ahead log short.

        Raises:
            StoreUnavailable: it did not work; nothing is lost.
        """
        with self._line.alone():
            self._store.checkpoint()

    def probe(self) -> None:
        """See whether the disk can be written again after a failure, so that readiness recovers by itself.

        Raises:
            StoreHeld: another process writes the log.
            StoreUnavailable: it still cannot.
        """
        try:
            with self._line.alone():
                self._settle_doubt()
                self._store.probe()
                self._trouble = None
        except StoreError as error:
            self._trouble = error.message
            raise
        finally:
            self._announce()

    def close(self) -> None:
        """Wait for the command under way, then close the store; later commands fail with StoreUnavailable."""
        with self._line.alone():
            self._store.close()


def _version_of(event: Event, books: Books) -> int:
    """How far the event's stream has come."""
    if isinstance(event, InstanceEvent):
        instance = books.instances.get(event.instance)
        return instance.version if instance else 0
    if isinstance(event, NodeGroupEvent):
        group = books.groups.get(event.node_group)
        return group.version if group else 0
    if isinstance(event, ClusterEvent):
        return books.cluster.version
    return books.cloud.version if isinstance(event, CloudEvent) else books.installation.version


def open_ledger(
    path: Path,
    clock: Clock,
    holder: str,
    trusted_networks: frozenset[str] = frozenset(),
    plan: BackupPlan | None = None,
) -> Ledger:
    """The ledger over a SQLite database; `trusted_networks` are network file systems that the operator answers for.

    With a plan a copy is made before a database of an older version is changed, and damage is told with its remedy.

    Raises:
        StoreError: see `Store.open`.
    """
    before_migration = plan.before_migration if plan is not None else lambda: None
    ledger = Ledger(Store(path, trusted_networks=trusted_networks, before_migration=before_migration), clock)
    try:
        ledger.open(holder)
    except StoreCorrupt as error:
        if plan is None:
            raise
        raise StoreCorrupt(f"{error.message}. As for restoring, {plan.advice()}", **error.context) from error
    return ledger
