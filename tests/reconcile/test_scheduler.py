import logging
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import ClassVar

import pytest

from app.clock import FakeClock, SystemClock
from app.domain.cloud import CloudReachable, DuplicateInstanceDetected
from app.domain.envelope import Cause, Event, Recorded
from app.domain.instance.events import (
    CancelReason,
    CreateRuledOut,
    DeleteReason,
    DeleteRequested,
    Found,
    InstanceCancelled,
    InstanceCreated,
    InstanceRequested,
)
from app.domain.service import ConfigurationLoaded
from app.errors import StoreUnavailable
from app.reconcile.scheduler import Runner, Scheduled, Scheduler

SELDOM = timedelta(hours=1)
LONGEST_S = 10.0
"""No wait in here takes a tenth of it, even on a slow machine; it only bounds a test that fails."""


class Counting:
    """A job that counts its runs and can be made to wait or to fail in them."""

    name: ClassVar[str] = "provision"

    def __init__(self) -> None:
        self.runs = 0
        self.at_once = 0
        self.most_at_once = 0
        self.in_run: Callable[[int], None] = lambda _: None
        self._changed = threading.Condition()

    def run(self) -> None:
        """One run."""
        with self._changed:
            self.runs += 1
            number = self.runs
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
            self._changed.notify_all()
        try:
            self.in_run(number)
        finally:
            with self._changed:
                self.at_once -= 1
                self._changed.notify_all()

    def wait_for_runs(self, count: int) -> None:
        """Until so many have begun and none is under way."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.runs >= count and self.at_once == 0, LONGEST_S)

    def wait_for_begin(self, count: int) -> None:
        """Until so many have begun."""
        with self._changed:
            assert self._changed.wait_for(lambda: self.runs >= count, LONGEST_S)


class Other(Counting):
    """Another job beside it."""

    name: ClassVar[str] = "terminate"


class MovedClock(SystemClock):
    """The machine's clock, and how far somebody has set it back."""

    def __init__(self) -> None:
        self.by = timedelta()

    def now(self) -> datetime:
        """Wall time."""
        return super().now() - self.by


@dataclass(kw_only=True)
class Plant:
    """A scheduler with two jobs that hardly ever run by themselves, and what it told of their runs."""

    job: Counting = field(default_factory=Counting)
    other: Other = field(default_factory=Other)
    told: list[tuple[str, str]] = field(default_factory=list)
    every: timedelta = SELDOM
    clock: MovedClock = field(default_factory=MovedClock)
    scheduler: Scheduler = field(init=False)

    def __post_init__(self) -> None:
        """Build, do not start."""
        self.scheduler = Scheduler(
            (Scheduled(job=self.job, every=self.every), Scheduled(job=self.other, every=SELDOM)),
            self.clock,
            lambda name, outcome, _: self.told.append((name, outcome)),
        )

    def start(self) -> "Plant":
        """Start and wait for the first runs."""
        self.scheduler.start()
        self.job.wait_for_begin(1)
        self.other.wait_for_runs(1)
        return self


@pytest.fixture
def plant() -> Iterator[Plant]:
    """A plant, stopped at the end."""
    built = Plant()
    yield built
    built.scheduler.stop()


def recorded(*events: Event) -> list[Recorded[Event]]:
    """A batch as the ledger announces it."""
    clock = FakeClock()
    cause = Cause(actor="x", correlation_id="y")
    return [
        Recorded(position=i, stream=event.stream, version=1, recorded_at=clock.now(), cause=cause, event=event)
        for i, event in enumerate(events, start=1)
    ]


WISH = InstanceRequested(instance="a", node_group="g", provider_id="verda://a")
DELETION = DeleteRequested(instance="a", node_group="g", reason=DeleteReason.SCALE_DOWN)


def test_every_job_runs_at_the_start(plant: Plant) -> None:
    """What a crash left behind is resolved at once."""
    plant.start()
    plant.job.wait_for_runs(1)
    assert (plant.job.runs, plant.other.runs) == (1, 1)


def test_a_job_runs_again_and_again_on_its_interval() -> None:
    """Nothing has to wake it."""
    plant = Plant(every=timedelta(milliseconds=20))
    plant.start()
    plant.job.wait_for_runs(4)
    plant.scheduler.stop()
    assert plant.other.runs == 1


def test_a_wall_clock_that_is_set_back_keeps_no_job_waiting(plant: Plant) -> None:
    """The next runs were meant for times of the old clock, hours ahead by the new one."""
    plant.start()
    plant.job.wait_for_runs(1)
    plant.clock.by = timedelta(hours=3)
    plant.job.wait_for_runs(2)
    plant.other.wait_for_runs(2)


def test_a_wake_runs_the_job_now(plant: Plant) -> None:
    """An order does not wait for the interval."""
    plant.start()
    plant.job.wait_for_runs(1)
    plant.scheduler.wake("provision")
    plant.job.wait_for_runs(2)
    assert (plant.job.runs, plant.other.runs) == (2, 1)


def test_wakes_during_a_run_make_it_run_once_more(plant: Plant) -> None:
    """F63: the facts may have come too late for the run under way; the next run sees all of them, and is one."""
    go_on = threading.Event()

    def wait_in_the_first(number: int) -> None:
        if number == 1:
            go_on.wait(LONGEST_S)

    plant.job.in_run = wait_in_the_first
    plant.start()
    for _ in range(50):
        plant.scheduler.wake("provision")
    assert plant.job.runs == 1
    go_on.set()
    plant.job.wait_for_runs(2)
    plant.scheduler.stop()
    assert plant.job.most_at_once == 1
    assert plant.job.runs < 10


def test_no_wake_is_ever_lost_and_no_job_runs_twice_at_once(plant: Plant) -> None:
    """After the last of many wakes, wherever it fell, a run begins that sees what it was for."""
    written, seen = 0, [-1]

    def look(_: int) -> None:
        seen.append(written)

    plant.job.in_run = look
    plant.start()
    for number in range(300):
        written = number
        plant.scheduler.wake("provision")
    _until(lambda: seen[-1] == 299)
    assert plant.job.most_at_once == 1


class Lingering(Runner):
    """A runner that is done and has not returned yet: the moment in which a wake meets nobody."""

    linger_s = 0.3

    def __call__(self) -> None:
        """Run, then take a moment."""
        super().__call__()
        self.is_lingering.set()
        threading.Event().wait(self.linger_s)

    is_lingering = threading.Event()


def test_a_wake_in_the_moment_in_which_a_run_ends_is_not_lost(plant: Plant) -> None:
    """The run under way has looked for the last time, and a second one may not begin beside it: it begins after it."""
    runner = Lingering(plant.job, SystemClock(), lambda *_: None)
    plant.scheduler.runners["provision"] = runner
    plant.start()
    assert runner.is_lingering.wait(LONGEST_S)
    plant.scheduler.wake("provision")
    plant.job.wait_for_runs(2)
    assert plant.job.most_at_once == 1


def test_wakes_from_many_threads_are_safe(plant: Plant) -> None:
    """Ledger listeners run on the threads of RPCs and pools."""
    plant.start()

    def wake_both() -> None:
        for _ in range(20):
            plant.scheduler.wake("provision")
            plant.scheduler.wake("terminate")

    threads = [threading.Thread(target=wake_both) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONGEST_S)
    plant.job.wait_for_runs(2)
    plant.other.wait_for_runs(2)
    assert (plant.job.most_at_once, plant.other.most_at_once) == (1, 1)


def test_a_job_that_fails_is_told_tried_again_and_stops_nobody(plant: Plant) -> None:
    """An error of one job must not keep deletions from happening."""

    def fail(number: int) -> None:
        if number < 3:
            raise ZeroDivisionError

    plant.job.in_run = fail
    plant.start()
    plant.scheduler.wake("terminate")
    plant.other.wait_for_runs(2)
    while plant.job.runs < 3:
        plant.scheduler.wake("provision")
        plant.job.wait_for_runs(plant.job.runs)
    _until(lambda: ("provision", "ok") in plant.told)
    outcomes = [outcome for name, outcome in plant.told if name == "provision"]
    assert (outcomes[:2], set(outcomes[2:])) == (["error", "error"], {"ok"})
    assert {outcome for name, outcome in plant.told if name == "terminate"} == {"ok"}


def test_a_job_that_cannot_write_is_told_as_that(plant: Plant) -> None:
    """A full disk is no bug of the job."""

    def fail(_: int) -> None:
        raise StoreUnavailable("the disk is full")

    plant.job.in_run = fail
    plant.start()
    _until(lambda: ("provision", "store") in plant.told)
    assert plant.scheduler.runners["provision"].failing_since is not None


@pytest.mark.parametrize(
    ("event", "woken"),
    [
        (WISH, "provision"),
        (
            CreateRuledOut(instance="a", node_group="g", attempt=1, looked_since=SystemClock().now()),
            "provision",
        ),
        (DELETION, "terminate"),
        (
            InstanceCreated(
                instance="a", node_group="g", instance_id="i", provider_id="verda://a", found=Found.ANSWERED
            ),
            "terminate",
        ),
        (DuplicateInstanceDetected(instance_id="i", instance="a", reason="duplicate"), "terminate"),
        (InstanceCancelled(instance="a", node_group="g", reason=CancelReason.DELETED), None),
        (CloudReachable(backend="verda"), None),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_facts_wake_the_job_that_they_give_something_to_do(plant: Plant, event: Event, woken: str | None) -> None:
    """And no other."""
    plant.start()
    plant.job.wait_for_runs(1)
    plant.scheduler.on_recorded(recorded(event))
    jobs: dict[str, Counting] = {"provision": plant.job, "terminate": plant.other}
    if woken is not None:
        jobs.pop(woken).wait_for_runs(2)
    plant.scheduler.stop()
    assert {job.runs for job in jobs.values()} == {1}


class Accountant(Other):
    """The job that reads the balance."""

    name: ClassVar[str] = "balance"


def test_new_settings_have_the_balance_read_at_once() -> None:
    """With a runway to keep, growth is refused until it is known."""
    plant = Plant(other=Accountant()).start()
    plant.scheduler.on_recorded(recorded(ConfigurationLoaded(sha256="5a", cluster_name="c1", node_groups=0)))
    plant.other.wait_for_runs(2)
    plant.scheduler.stop()


def test_a_batch_of_facts_is_one_wake_for_each_job(plant: Plant) -> None:
    """A scale-up of a thousand is not a thousand runs."""
    plant.start()
    plant.job.wait_for_runs(1)
    plant.scheduler.on_recorded(recorded(*[WISH] * 1000, DELETION))
    plant.job.wait_for_runs(2)
    plant.other.wait_for_runs(2)
    plant.scheduler.stop()
    assert plant.job.runs < 10
    assert plant.other.runs < 10


def test_stop_does_not_wait_for_a_run_that_hangs(plant: Plant) -> None:
    """F63: a hanging call must not delay the end of the process."""
    go_on = threading.Event()

    def hang(_: int) -> None:
        go_on.wait(LONGEST_S)

    plant.job.in_run = hang
    plant.start()
    plant.scheduler.wake("provision")
    began = time.monotonic()
    plant.scheduler.stop()
    assert time.monotonic() - began < 1
    go_on.set()
    plant.job.wait_for_runs(1)
    assert plant.job.runs == 1


def test_a_run_that_hangs_holds_up_no_other_job(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    """F63: the others go on, and the runs that it misses meanwhile are no flood of lines."""
    caplog.set_level(logging.ERROR, "apscheduler")  # as the program sets it
    go_on = threading.Event()

    def hang(_: int) -> None:
        go_on.wait(LONGEST_S)

    plant.job.in_run = hang
    plant.start()
    for number in range(2, 12):
        plant.scheduler.wake("provision")
        plant.scheduler.wake("terminate")
        plant.other.wait_for_runs(number)
    assert plant.job.runs == 1
    go_on.set()
    plant.job.wait_for_runs(2)
    assert caplog.records == []


def test_nothing_runs_after_a_stop(plant: Plant) -> None:
    """Neither by interval nor by wake, and stopping twice is fine."""
    plant.start()
    plant.job.wait_for_runs(1)
    plant.scheduler.stop()
    plant.scheduler.wake("provision")
    plant.scheduler.on_recorded(recorded(WISH, DELETION))
    plant.scheduler.stop()
    assert (plant.job.runs, plant.other.runs) == (1, 1)


def test_wakes_that_meet_the_stop_are_no_errors() -> None:
    """The last RPC commits while the process ends: it succeeded, and must not be told otherwise."""
    problems: list[Exception] = []

    def wake(plant: Plant, stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                plant.scheduler.wake("provision")
            except Exception as problem:  # noqa: BLE001 - any would be told to the autoscaler
                problems.append(problem)

    for _ in range(10):
        plant, stop = Plant(), threading.Event()
        plant.scheduler.start()
        threads = [threading.Thread(target=wake, args=(plant, stop)) for _ in range(3)]
        for thread in threads:
            thread.start()
        plant.job.wait_for_begin(2)
        plant.scheduler.stop()
        stop.set()
        for thread in threads:
            thread.join(LONGEST_S)
    assert problems == []


def test_a_wake_before_the_start_is_no_error(plant: Plant) -> None:
    """The first command may come while the process is being built; every job runs at the start anyway."""
    plant.scheduler.wake("provision")
    plant.start()
    plant.job.wait_for_runs(1)


def _until(condition: Callable[[], bool]) -> None:
    """Wait, with a bound, for something that has no event of its own."""
    pause = threading.Event()
    deadline = time.monotonic() + LONGEST_S
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.002)
