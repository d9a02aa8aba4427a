"""Spares us and the API the waiting when the network between us is known to be down."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from enum import StrEnum

from app.clock import Clock
from app.errors import NotSent


class BreakerState(StrEnum):
    """Whether calls go out."""

    CLOSED = "closed"
    """Calls go out."""
    OPEN = "open"
    """Calls fail at once, until the pause is over."""
    PROBING = "probing"
    """One call is trying whether the API is back; the others still fail at once."""


class Breaker:
    """Opens after `threshold` transport failures in a row, for a pause that doubles from `first_pause` on.

    Any complete HTTP answer counts as success, an error too: what the API says is not the breaker's business.
    """

    def __init__(
        self,
        *,
        clock: Clock,
        threshold: int = 5,
        first_pause: timedelta = timedelta(seconds=1),
        longest_pause: timedelta = timedelta(seconds=30),
    ) -> None:
        self._clock = clock
        self._threshold = threshold
        self._first_pause_s = first_pause.total_seconds()
        self._longest_pause_s = longest_pause.total_seconds()
        self._lock = threading.Lock()
        self._state = BreakerState.CLOSED
        self._failures = 0
        self._closed_again_at = 0.0
        self._pause_s = self._first_pause_s

    @property
    def state(self) -> BreakerState:
        """Whether calls go out at this moment."""
        with self._lock:
            return self._state

    @property
    def failures(self) -> int:
        """Transport failures in a row."""
        with self._lock:
            return self._failures

    @contextmanager
    def attempt(self) -> Iterator[Callable[[], None]]:
        """Let one exchange happen; it counts as failed unless the yielded function is called.

        Raises:
            NotSent: the breaker is open.
        """
        self._admit()
        succeeded = threading.Event()
        try:
            yield succeeded.set
        finally:
            self._settle(failed=not succeeded.is_set())

    def _admit(self) -> None:
        with self._lock:
            if self._state is BreakerState.CLOSED:
                return
            left_s = max(self._closed_again_at - self._clock.monotonic(), 0.0)
            if self._state is BreakerState.OPEN and left_s <= 0:
                self._state = BreakerState.PROBING
                return
            failures = self._failures
        raise NotSent(
            f"not tried: the last {failures} attempts to reach the API failed",
            code="circuit_open",
            retry_after=timedelta(seconds=left_s),
        )

    def _settle(self, *, failed: bool) -> None:
        with self._lock:
            if not failed:
                self._state, self._failures, self._pause_s = BreakerState.CLOSED, 0, self._first_pause_s
                return
            self._failures += 1
            if self._state is BreakerState.PROBING:
                self._pause_s = min(self._pause_s * 2, self._longest_pause_s)
            elif self._state is BreakerState.OPEN or self._failures < self._threshold:
                return
            self._state = BreakerState.OPEN
            self._closed_again_at = self._clock.monotonic() + self._pause_s
