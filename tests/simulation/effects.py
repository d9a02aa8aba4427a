"""Every effect is a place where the process can die: around commits, around calls, before an answer."""

from collections import deque
from enum import StrEnum
from pathlib import Path

from app.domain.books import Books
from app.domain.envelope import Event, Recorded
from app.errors import StoreUnavailable
from app.ledger.event_store import Batch
from app.store.store import Store


class Crash(BaseException):
    """The process dies here. Not an Exception: no code of ours may survive it."""


class Effects:
    """Counts effects, and lets the process die at the one it was told."""

    def __init__(self) -> None:
        self.count = 0
        self._fatal: int | None = None

    def arm(self, after: int) -> None:
        """Let the process die at the effect after so many others."""
        self._fatal = self.count + after + 1

    def disarm(self) -> None:
        """Let it live."""
        self._fatal = None

    def at(self, place: str) -> None:
        """An effect is about to happen or has just happened. Raises: Crash."""
        self.count += 1
        if self._fatal is not None and self.count >= self._fatal:
            self._fatal = None
            raise Crash(place)


class DiskTrouble(StrEnum):
    """What becomes of a commit on a bad disk."""

    REFUSED = "refused"
    ANSWER_LOST = "written, but reported as failed"


class Disk:
    """The disk under the database. It outlives every process."""

    def __init__(self) -> None:
        self.troubles: deque[DiskTrouble] = deque()
        self.blind_reads = 0
        self.strikes = 0

    @property
    def is_well(self) -> bool:
        """Nothing is going to go wrong."""
        return not self.troubles and not self.blind_reads

    def strike(self) -> DiskTrouble | None:
        """What happens to the commit that begins now."""
        if not self.troubles:
            return None
        self.strikes += 1
        return self.troubles.popleft()

    def is_blind(self) -> bool:
        """Whether the look that begins now fails."""
        if not self.blind_reads:
            return False
        self.strikes += 1
        self.blind_reads -= 1
        return True

    def mend(self) -> None:
        """Nothing goes wrong any more."""
        self.troubles.clear()
        self.blind_reads = 0


class FragileStore(Store):
    """The real store on a disk that can fail, in a process that can die around every commit."""

    def __init__(self, path: Path, effects: Effects, disk: Disk) -> None:
        super().__init__(path)
        self._effects = effects
        self._disk = disk

    def append(self, recorded: Batch, books: Books) -> None:
        """Make events durable, unless something comes between."""
        self._effects.at("before a commit")
        trouble = self._disk.strike()
        if trouble is DiskTrouble.REFUSED:
            raise StoreUnavailable("the database cannot be used: the disk is full")
        head = self.head
        super().append(recorded, books)
        if trouble is DiskTrouble.ANSWER_LOST:
            self.head = head
            raise StoreUnavailable("the database cannot be used: the disk reports an error")
        self._effects.at("after a commit")

    def events_after(self, position: int) -> tuple[Recorded[Event], ...]:
        """What the disk has, if it tells."""
        if self._disk.is_blind():
            raise StoreUnavailable("the database cannot be used: the disk reports an error")
        return super().events_after(position)

    def die(self) -> None:
        """Go as a killed process goes: nothing is noted, the operating system closes the files."""
        self._disconnect()
        self._lock.release()
