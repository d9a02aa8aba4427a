"""The calls under way, and their end: a server that stops answers what it has let in and refuses what still comes."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from app.clock import Clock
from app.ledger.serving import Reason

_QUIET_S = 0.1
"""So long nothing may have come before the port is closed: what gRPC holds then and has not handed over, it drops."""
_LOOKS = 10
"""How often a quiet moment is waited for; whoever asks without pause is dropped in the end."""

_STOPPING = Reason(code="stopping", message="the provider is stopping, ask again when the next one has started")


class Traffic:
    """Counts the calls that are being handled. Closed once and for good."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._changed = threading.Condition()
        self._arrived = 0
        self._under_way = 0
        self._last_at = clock.monotonic() - _QUIET_S
        self._is_closed = False

    @contextmanager
    def passing(self) -> Iterator[None]:
        """A call is being handled while the block lasts, be it refused or not."""
        with self._changed:
            self._arrived += 1
            self._under_way += 1
            self._last_at = self._clock.monotonic()
            self._changed.notify_all()
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()

    def close(self) -> None:
        """Let no more calls in."""
        self._is_closed = True

    def farewell(self) -> tuple[Reason, ...]:
        """Why a call is not let in: empty until it is closed."""
        return (_STOPPING,) if self._is_closed else ()

    def settle(self, longest_s: float) -> None:
        """Wait until every call is answered, and for a moment in which no other one comes."""
        with self._changed:
            self._changed.wait_for(lambda: self._under_way == 0, longest_s)
            for _ in range(_LOOKS):
                seen = self._arrived
                if self._clock.monotonic() - self._last_at >= _QUIET_S:
                    return
                self._changed.wait_for(lambda: self._arrived != seen, _QUIET_S)  # noqa: B023 - called at once
