"""Strands: work that runs on threads and yet one at a time, held and let go by whoever directs the story.

A job's run or a create call is a strand. It runs until it holds itself, at a call to the cloud, and goes on when it is
told to. So everything that could happen meanwhile in real life can happen meanwhile here, and always the same.
"""

import threading
from collections.abc import Callable


class Killed(BaseException):
    """The process that this strand belonged to is no more. Not an Exception: nothing may survive it."""


class Strand:
    """One piece of work. Exactly one thread runs at any time: the director's or one strand's."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        self.name = name
        self.failure: BaseException | None = None
        self.is_over = False
        self.worker: _Worker | None = None
        self._work = work
        self._killed = False

    def hold(self) -> None:
        """Give way to the director; called by the strand itself. Raises: Killed."""
        if not self._killed and self.worker is not None:
            self.worker.give_way()
        if self._killed:
            raise Killed

    def doom(self) -> None:
        """Let it end where it holds, when it is resumed the next time."""
        self._killed = True

    def play(self) -> None:
        """Do the work, on a worker's thread."""
        try:
            self._work()
        except BaseException as failure:  # noqa: BLE001 - told to the director
            self.failure = failure
        self.is_over = True


class _Worker:
    """A thread that plays one strand after the other."""

    def __init__(self) -> None:
        self._go = threading.Lock()
        self._back = threading.Lock()
        self._go.acquire()
        self._back.acquire()
        self._strand: Strand | None = None
        self._thread = threading.Thread(target=self._main, name="strand", daemon=True)
        self._thread.start()

    def turn(self, strand: Strand | None) -> None:
        """Let it work on a strand until that holds or ends; None ends the thread."""
        self._strand = strand
        self._go.release()
        if strand is None:
            self._thread.join()
        else:
            self._back.acquire()

    def give_way(self) -> None:
        """Back to the director, until the next turn."""
        self._back.release()
        self._go.acquire()

    def _main(self) -> None:
        self._go.acquire()
        while (strand := self._strand) is not None:
            strand.play()
            self.give_way()


class Crew:
    """The threads that strands run on, hired when needed and kept."""

    def __init__(self) -> None:
        self._idle: list[_Worker] = []

    def resume(self, strand: Strand) -> None:
        """Let a strand run until it holds itself or ends."""
        worker = strand.worker or (self._idle.pop() if self._idle else _Worker())
        strand.worker = worker
        worker.turn(strand)
        if strand.is_over:
            strand.worker = None
            self._idle.append(worker)

    def kill(self, strand: Strand) -> None:
        """Let a strand end where it holds; one that has not begun never does."""
        strand.doom()
        if strand.worker is not None:
            self.resume(strand)

    def dismiss(self) -> None:
        """No more work."""
        while self._idle:
            self._idle.pop().turn(None)
