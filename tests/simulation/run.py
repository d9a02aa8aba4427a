"""Running one story from a seed, whole or in part."""

import shutil
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Self

import structlog
from structlog.typing import EventDict, WrappedLogger

from tests.simulation.agenda import BusyLoop
from tests.simulation.engines import Engines
from tests.simulation.inspector import Inspector
from tests.simulation.plan import Planned, steps
from tests.simulation.settle import settle
from tests.simulation.stage import Facts, Stage, make_template
from tests.simulation.strands import Crew
from tests.simulation.violation import Violated

STEPS = 120
_SAMPLED_STEP = 70
_SAMPLED_SEEDS = 4
"""One story in so many is also sampled in the middle; all are at their end, where what was wrong before still is."""
_MEMORY = Path("/dev/shm")
_SETTLING = 1_000_000_007


@dataclass(slots=True, kw_only=True)
class Verdict:
    """What became of a story. `step` None with an invariant means that it broke when everything should have settled."""

    seed: int
    invariant: str = ""
    words: str = ""
    step: int | None = None
    simulated_s: float = 0.0
    events: int = 0
    lives: int = 0
    effects: int = 0
    machines: int = 0
    head: str = ""
    wasted_s: float = 0.0
    longest: dict[str, float] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """Every invariant held to the end."""
        return not self.invariant


Told = Callable[[str, Facts], None]
"""Told every step in words, with the facts published in it."""


class Theatre:
    """A place to run stories in: a directory in memory and a database to begin with. Close it, or use `with`."""

    def __init__(self) -> None:
        self._directory = Path(tempfile.mkdtemp(prefix="simulation-", dir=_MEMORY if _MEMORY.is_dir() else None))
        self._template = make_template(self._directory)
        self._crew = Crew()
        self._engines = Engines()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._crew.dismiss()
        shutil.rmtree(self._directory, ignore_errors=True)

    def run(
        self, seed: int, length: int = STEPS, *, only: Collection[int] | None = None, tell: Told = lambda *_: None
    ) -> Verdict:
        """Run the first steps of a seed's story, of which `only` those of these numbers."""
        planned = [step for step in islice(steps(seed), length) if only is None or step.number in only]
        return self.play(seed, planned, tell)

    def play(self, seed: int, planned: Sequence[Planned], tell: Told = lambda *_: None) -> Verdict:
        """Run a story on the stage of a seed."""
        directory = self._directory / "story"  # the same for all: engines are known by their paths
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir()
        with _overhearing() as ear, naming(f"in the story of seed {seed}"), self._engines.kept():
            return _play(Stage(seed, directory, self._template, self._crew), planned, tell, ear)


class _Ear:
    """Hears what is logged with a traceback: exceptions that an edge of the program kept to itself."""

    def __init__(self) -> None:
        self.listener: Callable[[str], None] = lambda _: None

    def __call__(self, _logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
        if event.get("exc_info"):
            failure = event["exc_info"] if isinstance(event["exc_info"], BaseException) else sys.exc_info()[1]
            self.listener(f"{event.get('event')}: {type(failure).__name__}: {failure}")
        raise structlog.DropEvent


@contextmanager
def _overhearing() -> Iterator[_Ear]:
    before, ear = structlog.get_config(), _Ear()
    structlog.configure(
        processors=[ear],
        wrapper_class=structlog.make_filtering_bound_logger(40),
        cache_logger_on_first_use=False,
    )
    try:
        yield ear
    finally:
        structlog.configure(**before)


@contextmanager
def naming(place: str) -> Iterator[None]:
    """A mistake in the simulation itself says where it was made."""
    try:
        yield
    except Exception as error:
        error.add_note(place)
        raise


def _play(stage: Stage, planned: Sequence[Planned], tell: Told, ear: _Ear) -> Verdict:
    inspector = Inspector(stage)
    ear.listener = inspector.overheard
    verdict = Verdict(seed=stage.seed)
    at: int | None = 0
    try:
        stage.start()
        for item in planned:
            at = item.number
            _take(stage, inspector, item, tell)
        at = None
        stage.chance.turn(_SETTLING)
        before = stage.witness.position
        minutes = settle(stage, inspector)
        tell(f"everything calms down, and settles in {minutes} min", stage.witness.log[before:])
    except Violated as violated:
        verdict.invariant, verdict.words, verdict.step = violated.invariant, violated.words, at
    except BusyLoop as loop:
        verdict.invariant, verdict.words, verdict.step = "work_waits_for_something", str(loop), at
    finally:
        stage.life.die()
    verdict.simulated_s = stage.agenda.now_ms / 1000
    verdict.events, verdict.lives, verdict.effects = stage.witness.position, stage.lives, stage.effects.count
    verdict.head = stage.life.ledger.head.hash
    verdict.machines = stage.world.state.counters.creates_committed
    verdict.wasted_s = sum(inspector.accounts.wasted_s.values())
    verdict.longest = inspector.bounds.longest
    return verdict


def _take(stage: Stage, inspector: Inspector, item: Planned, tell: Told) -> None:
    stage.chance.turn(item.salt)
    before = stage.witness.position
    try:
        item.step.act(stage)
        inspector.check()
        if item.number == _SAMPLED_STEP and stage.seed % _SAMPLED_SEEDS == 0:
            inspector.sample()
    finally:
        tell(f"{item.number}: {item.step}", stage.witness.log[before:])
