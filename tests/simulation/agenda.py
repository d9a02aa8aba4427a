"""The agenda: what is due when. Jobs on their intervals, calls that take their time, and chance between what is due."""

from collections.abc import Callable
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from app.clock import FakeClock
from app.reconcile.jobs.job import Job
from tests.simulation.chance import Chance
from tests.simulation.strands import Crew, Strand

_TOO_MANY = 2000
"""So many pieces of work at one instant are a loop that waits for nothing."""


class BusyLoop(Exception):
    """Work wakes work at one and the same instant without end."""


@dataclass(slots=True, kw_only=True)
class Slot:
    """A job, how often it runs by itself, and the run under way."""

    job: Job
    every_ms: int
    due_ms: int = 0
    wanted: bool = False
    run: Strand | None = None


@dataclass(slots=True, kw_only=True)
class _Held:
    at_ms: int
    strand: Strand


class Agenda:
    """Time passes here and nowhere else. `on_pause` is called whenever a piece of work has been held or has ended."""

    def __init__(self, clock: FakeClock, chance: Chance, crew: Crew) -> None:
        self.clock = clock
        self.slots: dict[str, Slot] = {}
        self.pace = 1
        self.on_pause: Callable[[Strand], None] = lambda _: None
        self.on_advance: Callable[[float], None] = lambda _: None
        self._chance = chance
        self._crew = crew
        self._held: list[_Held] = []
        self._current: Strand | None = None

    @property
    def now_ms(self) -> int:
        """Milliseconds since the story began."""
        return round(self.clock.monotonic() * 1000)

    @property
    def under_way(self) -> tuple[str, ...]:
        """Names of what is being held."""
        return tuple(held.strand.name for held in self._held)

    def spawn(self, name: str, work: Callable[[], None]) -> Strand:
        """Have something done as soon as time passes."""
        strand = Strand(name, work)
        self._held.append(_Held(at_ms=self.now_ms, strand=strand))
        return strand

    def hold(self, seconds: float) -> None:
        """Let the calling strand wait so long, and others go first. Outside of a strand nothing waits."""
        if self._current is not None:
            self._held.append(_Held(at_ms=self.now_ms + round(seconds * 1000), strand=self._current))
            self._current.hold()

    def want(self, job: str) -> None:
        """Have a job run at once, or once more if it is running."""
        if job in self.slots:
            self.slots[job].wanted = True

    def set_pace(self, pace: int) -> None:
        """Let jobs come round so many times less often from now on."""
        self.pace = pace
        for slot in self.slots.values():
            slot.due_ms = min(slot.due_ms, self.now_ms + slot.every_ms * pace)

    def pass_time(self, seconds: float) -> None:
        """Do everything that becomes due within so many seconds.

        Raises:
            BusyLoop: it does not end.
            Crash: the process dies in a piece of work.
        """
        end_ms = self.now_ms + round(seconds * 1000)
        self._do_due()
        while (at_ms := self._next_ms()) <= end_ms:
            self._advance(at_ms - self.now_ms)
            self._do_due()
        self._advance(end_ms - self.now_ms)

    def drop(self) -> None:
        """The process is no more: whatever was under way ends where it is."""
        held, self._held = self._held, []
        self.slots = {}
        for item in held:
            self._current = item.strand
            self._crew.kill(item.strand)
        self._current = None

    def _advance(self, by_ms: int) -> None:
        if by_ms > 0:
            self.clock.advance(timedelta(milliseconds=by_ms))
            self.on_advance(by_ms / 1000)

    def _next_ms(self) -> int:
        now_ms = self.now_ms
        held = (item.at_ms for item in self._held)
        slots = (now_ms if slot.wanted else slot.due_ms for slot in self.slots.values() if slot.run is None)
        return min((*held, *slots), default=now_ms + 10**12)

    def _do_due(self) -> None:
        now_ms = self.now_ms  # time passes between pieces of work, never in one
        for _ in range(_TOO_MANY):
            held = [item for item in self._held if item.at_ms <= now_ms]
            idle = [slot for slot in self.slots.values() if slot.run is None]
            slots = [slot for slot in idle if slot.wanted or slot.due_ms <= now_ms]
            if not held and not slots:
                return
            due: list[_Held | Slot] = [*held, *slots]
            chosen = self._chance.random.choice(due)
            if isinstance(chosen, Slot):
                self._begin(chosen)
            else:
                self._held.remove(chosen)
                self._let_go(chosen.strand)
        raise BusyLoop(f"more than {_TOO_MANY} pieces of work at one instant, the last of {list(self.slots)}")

    def _begin(self, slot: Slot) -> None:
        slot.wanted = False
        slot.due_ms = self.now_ms + slot.every_ms * self.pace
        slot.run = Strand(slot.job.name, slot.job.run)
        self._let_go(slot.run)

    def _let_go(self, strand: Strand) -> None:
        self._current = strand
        self._crew.resume(strand)
        self._current = None
        if strand.is_over:
            for slot in self.slots.values():
                if slot.run is strand:
                    slot.run = None
        self.on_pause(strand)
        if strand.failure is not None and not isinstance(strand.failure, Exception):
            raise strand.failure


class StrandPool(Executor):
    """A pool whose work is strands of one name, begun when time passes."""

    def __init__(self, agenda: Agenda, name: str) -> None:
        self._agenda = agenda
        self._name = name

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have something done; nobody waits for the future."""
        self._agenda.spawn(self._name, lambda: fn(*args, **kwargs))
        return Future()
