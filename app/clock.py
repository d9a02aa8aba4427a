"""Time and chance, the two impurities that everything else has injected."""

import base64
import random
import secrets
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol


class Clock(Protocol):
    """Where the time comes from."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start that never go back; for measuring intervals."""
        ...


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Wall time, aware, UTC."""
        return datetime.now(UTC)  # noqa: TID251 - the one place that may

    def monotonic(self) -> float:
        """Seconds since an arbitrary start."""
        return time.monotonic()


class FakeClock:
    """A clock that moves only when told to, for tests and the deterministic simulation."""

    def __init__(self, start: datetime = datetime(2026, 1, 5, tzinfo=UTC)) -> None:
        self._lock = threading.Lock()
        self._now = start
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Wall time, aware, UTC."""
        with self._lock:
            return self._now

    def monotonic(self) -> float:
        """Seconds advanced so far."""
        with self._lock:
            return self._monotonic

    def advance(self, by: timedelta | float) -> None:
        """Move both clocks forward; a number means seconds."""
        step = by if isinstance(by, timedelta) else timedelta(seconds=by)
        with self._lock:
            self._now += step
            self._monotonic += step.total_seconds()

    def step_wall(self, by: timedelta) -> None:
        """Move the wall clock alone, backwards too, as a wrong NTP server does."""
        with self._lock:
            self._now += by


class Ids(Protocol):
    """Where unpredictable names come from."""

    def suffix(self) -> str:
        """Eight lower-case base32 characters, 40 random bits, for instance names."""
        ...

    def token(self) -> str:
        """Sixteen lower-case base32 characters, 80 random bits, for correlation and installation ids."""
        ...


def _base32(raw: bytes) -> str:
    return base64.b32encode(raw).decode().lower().rstrip("=")


class SystemIds:
    """Unpredictable ids from the operating system."""

    def suffix(self) -> str:
        """Forty random bits."""
        return _base32(secrets.token_bytes(5))

    def token(self) -> str:
        """Eighty random bits."""
        return _base32(secrets.token_bytes(10))


class SeededIds:
    """Reproducible ids for tests and the deterministic simulation."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose

    def suffix(self) -> str:
        """Forty reproducible bits."""
        return _base32(self._random.randbytes(5))

    def token(self) -> str:
        """Eighty reproducible bits."""
        return _base32(self._random.randbytes(10))
