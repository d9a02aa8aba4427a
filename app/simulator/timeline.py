"""Simulated time: a clock that can be real, scaled or manual, and the ordered list of what is due."""

import heapq

from app.clock import Clock
from app.simulator.records import Due, EventKind
from app.simulator.state import WorldState


class TimeLine:
    """The world's clock and its heap of due events.

    The clock advances with the injected clock's monotonic reading, never with its wall time: a wrong NTP server on the
    client's side does not move the cloud.
    """

    def __init__(self, state: WorldState, clock: Clock) -> None:
        self._state = state
        self._clock = clock
        self._anchor_sim_ms = state.now_ms
        self._anchor = clock.monotonic()

    def now_ms(self) -> int:
        """Simulated time, milliseconds since the Unix epoch; never goes back."""
        if self._state.clock_mode == "manual":
            return max(self._anchor_sim_ms, self._state.now_ms)
        factor = 1.0 if self._state.clock_mode == "real" else self._state.clock_factor
        elapsed_ms = round((self._clock.monotonic() - self._anchor) * 1000 * factor)
        return max(self._anchor_sim_ms + elapsed_ms, self._state.now_ms)

    def set_mode(self, mode: str, factor: float) -> None:
        """Change how time moves from here on."""
        self._anchor_sim_ms, self._anchor = self.now_ms(), self._clock.monotonic()
        self._state.clock_mode, self._state.clock_factor = mode, factor

    def advance(self, by_ms: int) -> None:
        """Jump forward, in any mode."""
        self._anchor_sim_ms = self.now_ms() + by_ms
        self._anchor = self._clock.monotonic()

    def schedule(self, delay_ms: int, kind: EventKind, subject: str = "", generation: int = 0) -> None:
        """Have something happen later; events due at the same instant happen in the order they were scheduled."""
        self.at(self._state.now_ms + max(delay_ms, 0), kind, subject, generation)

    def at(self, at_ms: int, kind: EventKind, subject: str = "", generation: int = 0) -> None:
        """Have something happen at an instant."""
        sequence = self._state.ordinals.get("event", 0) + 1
        self._state.ordinals["event"] = sequence
        heapq.heappush(self._state.due, Due(at_ms, sequence, kind, subject, generation))

    def pop(self, until_ms: int) -> Due | None:
        """Take the next event that is due by then, moving the world's instant to it."""
        due = self._state.due
        if not due or due[0].at_ms > until_ms:
            return None
        event = heapq.heappop(due)
        self._state.now_ms = max(self._state.now_ms, event.at_ms)
        return event

    def next_ms(self) -> int | None:
        """When the next event is due."""
        return self._state.due[0].at_ms if self._state.due else None
