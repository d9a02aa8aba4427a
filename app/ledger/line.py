"""The line in front of the writer: whose turn it is takes along everybody who waits, so that one sync serves all."""

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from app.clock import Clock
from app.domain.decide import Command
from app.domain.envelope import Cause
from app.errors import DeadlinePassed
from app.ledger.event_store import Batch


@dataclass(slots=True, eq=False)
class Entry:
    """A command in the line, and in the end what came of it: facts that are durable, an error, or both.

    `not_after` is a reading of the clock's `monotonic()`.
    """

    command: Command
    cause: Cause
    not_after: float | None = None
    recorded: Batch = ()
    error: BaseException | None = None
    is_done: bool = False

    def succeed(self, recorded: Batch, refusal: BaseException | None) -> None:
        """These facts are durable; a refusal may be among them."""
        self.recorded, self.error, self.is_done = recorded, refusal, True

    def fail(self, error: BaseException) -> None:
        """Nothing has been changed by it, unless that is known already."""
        if not self.is_done:
            self.error, self.is_done = error, True


class Line:
    """Threads come with an entry; one at a time carries out all entries that are there when its turn comes."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turn = threading.Lock()
        self._guard = threading.Lock()
        self._waiting: deque[Entry] = deque()

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Nothing is carried out while the block lasts."""
        with self._turn:
            yield

    def serve(self, entry: Entry, carry_out: Callable[[Sequence[Entry]], None]) -> None:
        """Return when the entry is done, by this thread or another; `carry_out` must have all its entries done.

        Raises:
            DeadlinePassed: the entry's time came before its turn, and nothing was done about it.
        """
        with self._guard:
            self._waiting.append(entry)
        self._await_turn(entry)
        try:
            if not entry.is_done:
                self._lead(carry_out)
        finally:
            self._turn.release()

    def _lead(self, carry_out: Callable[[Sequence[Entry]], None]) -> None:
        with self._guard:
            entries = tuple(self._waiting)
            self._waiting.clear()
        try:
            carry_out(entries)
        except BaseException as error:
            for entry in entries:  # nobody else will do them
                entry.fail(error)
            raise

    def _await_turn(self, entry: Entry) -> None:
        patience = -1.0
        if entry.not_after is not None:
            patience = min(max(entry.not_after - self._clock.monotonic(), 0.0), threading.TIMEOUT_MAX)
        if self._turn.acquire(timeout=patience):
            return
        with self._guard:
            if entry in self._waiting:
                self._waiting.remove(entry)
                raise DeadlinePassed("the caller's deadline passed while earlier commands were being written")
        self._turn.acquire()  # somebody is at it: what becomes of it is known in a moment
