"""APScheduler wiring: when jobs run, how they are woken, what is known of their runs."""

import contextlib
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.base import JobLookupError
from apscheduler.schedulers.background import BackgroundScheduler

from app.clock import Clock
from app.domain.cloud import DuplicateInstanceDetected
from app.domain.envelope import Event, Recorded
from app.domain.instance.events import (
    CreateRefused,
    CreateRuledOut,
    DeleteRequested,
    InstanceCreated,
    InstanceRequested,
    InstanceStateObserved,
)
from app.domain.service import ConfigurationLoaded
from app.errors import StoreError
from app.log import DURATION, JOB, get_logger
from app.reconcile.jobs.job import Job

_WAKES: Mapping[type[Event], str] = {
    InstanceRequested: "provision",
    CreateRefused: "provision",
    CreateRuledOut: "provision",
    DeleteRequested: "terminate",
    InstanceCreated: "terminate",
    InstanceStateObserved: "terminate",
    DuplicateInstanceDetected: "terminate",
    ConfigurationLoaded: "balance",
}
"""Which fact gives which job something to do at once; everything else waits for the job's interval."""

_TRY_AGAIN = timedelta(milliseconds=100)
_CLOCK_CHECK_S = 0.5
_SLACK = timedelta(seconds=1)
_STUCK_AFTER_S = 600.0
"""Every call to the cloud has a deadline of its own; a run that takes this long is not coming back."""

_log = get_logger()

RunObserver = Callable[[str, str, float], None]
"""Told after every run: job, outcome (`ok`, `store`, `error`), duration in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheduled:
    """A job and how often it runs by itself."""

    job: Job
    every: timedelta


class Runner:
    """Runs one job, never twice at once; a wake during a run makes it run once more."""

    def __init__(self, job: Job, clock: Clock, observer: RunObserver) -> None:
        self.job = job
        self.finished_at: datetime | None = None
        self.failing_since: datetime | None = None
        self._clock = clock
        self._observer = observer
        self._running_since: float | None = None
        self._wanted = threading.Event()
        self._stopping = threading.Event()

    def want(self) -> None:
        """Ask for one more run."""
        self._wanted.set()

    @property
    def is_wanted(self) -> bool:
        """Somebody asked for a run that has not begun."""
        return self._wanted.is_set() and not self._stopping.is_set()

    @property
    def is_stopping(self) -> bool:
        """No more runs begin."""
        return self._stopping.is_set()

    def running_s(self) -> float:
        """How long the run under way has taken, 0 if there is none."""
        since = self._running_since
        return 0.0 if since is None else self._clock.monotonic() - since

    def stop(self) -> None:
        """Begin no more runs."""
        self._stopping.set()

    def __call__(self) -> None:
        """Run until nobody wants another run."""
        again = True
        while again and not self._stopping.is_set():
            self._wanted.clear()
            self._run_once()
            again = self._wanted.is_set()

    def _run_once(self) -> None:
        began = self._running_since = self._clock.monotonic()
        outcome = "ok"
        try:
            self.job.run()
        except StoreError as error:
            outcome = "store"
            _log.error("job cannot write", **{JOB: self.job.name}, error=error.message)
        except Exception:  # noqa: BLE001 - the edge of the scheduler: a broken run is seen, counted and tried again
            outcome = "error"
            _log.exception("job broke off", **{JOB: self.job.name})
        self._running_since = None
        now = self._clock.now()
        self.failing_since = None if outcome == "ok" else self.failing_since or now
        self.finished_at = now
        duration = self._clock.monotonic() - began
        self._observer(self.job.name, outcome, duration)
        _log.debug("job ran", **{JOB: self.job.name, DURATION: round(duration, 4)}, outcome=outcome)


class Scheduler:
    """The jobs on their intervals. `wake` makes one run now."""

    def __init__(self, jobs: Sequence[Scheduled], clock: Clock, observer: RunObserver) -> None:
        self.runners = {scheduled.job.name: Runner(scheduled.job, clock, observer) for scheduled in jobs}
        self._every = {scheduled.job.name: scheduled.every for scheduled in jobs}
        self._clock = clock
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={"default": ThreadPoolExecutor(max_workers=len(jobs) + 1)},
            job_defaults={"max_instances": 1, "coalesce": True, "misfire_grace_time": None},
        )
        self._scheduler.add_listener(self._skipped, EVENT_JOB_MAX_INSTANCES)
        self._stopped = threading.Event()

    def start(self) -> None:
        """Run every job now, then on its interval."""
        for name, runner in self.runners.items():
            self._scheduler.add_job(
                runner,
                "interval",
                id=name,
                seconds=self._every[name].total_seconds(),
                next_run_time=self._clock.now(),
            )
        self._scheduler.start()
        threading.Thread(target=self._watch_clock, name="clock", daemon=True).start()

    def wake(self, name: str) -> None:
        """Run a job now, or once more if it is running."""
        self.runners[name].want()
        self._run_at(name, self._clock.now())

    def on_recorded(self, recorded: Sequence[Recorded[Event]]) -> None:
        """Wake the jobs that these facts give something to do, as far as they are scheduled here."""
        wanted = {_WAKES[type(item.event)] for item in recorded if type(item.event) in _WAKES}
        for name in wanted & self.runners.keys():
            self.wake(name)

    def is_alive(self) -> bool:
        """No job has been stuck in one run for longer than any run may take."""
        return all(runner.running_s() < _STUCK_AFTER_S for runner in self.runners.values())

    def _watch_clock(self) -> None:
        """APScheduler goes by the wall clock: set back, it would keep every job waiting for the time it showed before.

        No job waits for longer than its interval, so one that does is due.
        """
        while not self._stopped.wait(_CLOCK_CHECK_S):
            now = self._clock.now()
            for job in self._scheduler.get_jobs():
                if job.next_run_time - now > self._every[job.id] + _SLACK:
                    self._run_at(job.id, now)

    def _run_at(self, name: str, at: datetime) -> None:
        if self._scheduler.running and not self.runners[name].is_stopping:
            with contextlib.suppress(JobLookupError):  # stopped in this very moment: then there is nothing to wake
                self._scheduler.modify_job(name, next_run_time=at)

    def _skipped(self, event: JobSubmissionEvent) -> Any:
        """A wake fell into the moment in which a run was ending: ask once more."""
        if self.runners[event.job_id].is_wanted:
            self._run_at(event.job_id, self._clock.now() + _TRY_AGAIN)

    def stop(self) -> None:
        """Begin no more runs; those under way end by themselves."""
        self._stopped.set()
        for runner in self.runners.values():
            runner.stop()
        if self._scheduler.running:
            self._scheduler.shutdown(wait=False)
