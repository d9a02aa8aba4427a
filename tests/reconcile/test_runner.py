from collections.abc import Callable
from datetime import timedelta
from typing import ClassVar

from app.clock import FakeClock
from app.reconcile.scheduler import Runner, Scheduled, Scheduler

SELDOM = timedelta(hours=1)


class Script:
    """A job whose runs are functions, one after the other."""

    name: ClassVar[str] = "script"

    def __init__(self, *steps: Callable[[], None]) -> None:
        self.left = list(steps)

    def run(self) -> None:
        """The next one."""
        self.left.pop(0)()


def _runner(clock: FakeClock, *steps: Callable[[], None]) -> tuple[Runner, list[tuple[str, str, float]]]:
    told: list[tuple[str, str, float]] = []
    return Runner(Script(*steps), clock, lambda *run: told.append(run)), told


def _nothing() -> None:
    """A run."""


def _broken() -> None:
    raise ZeroDivisionError


def test_a_runner_runs_on_while_somebody_wants_it() -> None:
    """Twice wanted during the first run is once more, and then it ends."""
    clock = FakeClock()

    def first() -> None:
        runner.want()
        runner.want()

    runner, told = _runner(clock, first, _nothing)
    runner()
    assert [outcome for _, outcome, _ in told] == ["ok", "ok"]
    assert not runner.is_wanted


def test_a_runner_that_is_stopped_during_a_run_begins_no_other() -> None:
    """Although somebody wants one."""

    def first() -> None:
        runner.want()
        runner.stop()

    runner, told = _runner(FakeClock(), first)
    runner()
    runner()
    assert len(told) == 1
    assert (runner.is_wanted, runner.is_stopping) == (False, True)


def test_a_runner_tells_how_long_a_run_took() -> None:
    """By the clock that never goes back."""
    clock = FakeClock()

    def three_seconds() -> None:
        clock.advance(3)
        clock.step_wall(timedelta(hours=-1))

    runner, told = _runner(clock, three_seconds)
    runner()
    assert told == [("script", "ok", 3.0)]


def test_failing_since_is_the_first_of_several_failures() -> None:
    """Readiness wants to know for how long."""
    clock = FakeClock()
    runner, _ = _runner(clock, _broken, _broken, _nothing)
    first = clock.now()
    seen = []
    for _ in range(3):
        runner()
        seen.append((runner.failing_since, runner.finished_at))
        clock.advance(60)
    minute = timedelta(minutes=1)
    assert seen == [(first, first), (first, first + minute), (None, first + 2 * minute)]


def test_a_run_that_takes_ten_minutes_is_stuck() -> None:
    """F63: every call has a deadline of its own; liveness must not be fooled by a scheduler that still turns."""
    clock = FakeClock()
    seen: list[bool] = []

    def hang() -> None:
        clock.advance(599)
        seen.append(scheduler.is_alive())
        clock.advance(1)
        seen.append(scheduler.is_alive())

    scheduler = Scheduler((Scheduled(job=Script(hang), every=SELDOM),), clock, lambda *_: None)
    assert scheduler.is_alive()
    scheduler.runners["script"]()
    assert seen == [True, False]
    assert scheduler.is_alive()
