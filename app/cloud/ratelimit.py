"""Stays under the API's rate limits and obeys what the server says about them.

The Verda OpenAPI document sets, per project and shared by all its credentials, in windows of 60 seconds: 500 requests
in total, 60 per method and path, 120 for the lists of instances and volumes. Every answer tells what is left
(`RateLimit: "project";r=486;t=37, "endpoint";r=48;t=37`), and a 429 says how long to stay away (`Retry-After`).

A generic limiter library knows neither the server's own count nor that deleting a machine is worth more than looking at
a list, so this one is ours.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import Enum, auto

from app.clock import Clock
from app.errors import Throttled

WINDOW_S = 60.0
PROJECT_QUOTA = 500
PATH_QUOTA = 60
LIST_QUOTAS: Mapping[tuple[str, str], int] = {("GET", "/instances"): 120, ("GET", "/volumes"): 120}

# Guess: a 429 should always carry Retry-After; one that does not must still make everybody pause.
PAUSE_WITHOUT_HINT = timedelta(seconds=10)
# A broken header must not stop deletions, and with them the saving of money, for a day.
LONGEST_PAUSE = timedelta(minutes=10)
# The server counts whole seconds, so two sightings of one window differ by up to this much.
SAME_WINDOW_S = 2.0
# How often routine calls look again whether the urgent ones have gone first.
COURTESY_S = 0.05
# A wait that is lost in rounding would be repeated for ever.
SHORTEST_WAIT_S = 0.001
MOST_IDLE_GATES = 1000


class Urgency(Enum):
    """Which calls may use the last tenth of a limit."""

    URGENT = auto()
    """Creating, deleting, looking one machine up."""
    ROUTINE = auto()
    """Lists and the catalogue: they come round again by themselves."""


class _Gate:
    """One limit: what we sent in the last minute, what the server says is left, and until when it sent us away."""

    def __init__(self, quota: int, share: float) -> None:
        self._quota = quota
        self._budget = max(1, math.floor(quota * share))
        self._sent: deque[float] = deque()
        self._left = quota
        self._resets_at = -math.inf
        self._held_until = -math.inf

    def wait_s(self, now: float, urgency: Urgency) -> float:
        """Seconds until one more request may leave; 0 if it may now."""
        while self._sent and self._sent[0] <= now - WINDOW_S:
            self._sent.popleft()
        waits = [0.0, self._held_until - now]
        routine = urgency is Urgency.ROUTINE
        # Any 60 seconds hold at most the budget, so it does not matter where the server's windows begin.
        budget = self._budget - self._budget // 10 if routine else self._budget
        if len(self._sent) >= budget:
            waits.append(self._sent[-budget] + WINDOW_S - now)
        if now < self._resets_at and self._left <= (self._quota // 10 if routine else 0):
            waits.append(self._resets_at - now)
        return max(waits)

    def left(self, now: float) -> int:
        """How many more requests may leave now, urgent ones."""
        if self.wait_s(now, Urgency.URGENT) > 0:
            return 0
        ours = self._budget - len(self._sent)
        return min(ours, self._left) if now < self._resets_at else ours

    def held_s(self, now: float) -> float:
        """For how long the server sent us away."""
        return max(self._held_until - now, 0.0)

    def take(self, now: float) -> None:
        """One request leaves."""
        self._sent.append(now)
        self._left -= 1

    def give_back(self) -> None:
        """The request did not leave after all."""
        if self._sent:
            self._sent.pop()
        self._left += 1

    def hear(self, now: float, left: int, resets_in_s: float) -> None:
        """The server's own count. Within one window only the lowest counts: answers may overtake each other."""
        resets_at = now + resets_in_s
        same_window = now < self._resets_at and abs(resets_at - self._resets_at) <= SAME_WINDOW_S
        self._left = min(self._left, left) if same_window else left
        self._resets_at = max(self._resets_at, resets_at) if same_window else resets_at

    def hold(self, until: float) -> None:
        """Nothing may leave before then; a stale answer cannot lift this."""
        self._held_until = max(self._held_until, until)

    def is_idle(self, now: float) -> bool:
        """Whether forgetting this gate changes nothing."""
        return now >= max(self._held_until, self._resets_at, self._sent[-1] + WINDOW_S if self._sent else -math.inf)


class RateLimiter:
    """Admits requests one by one; all threads of a process share one, as they share the project's limits.

    `share` is the part of each limit that we allow ourselves; the rest is for other tools of the same project. `wait`
    blocks for a number of seconds; tests advance a fake clock instead.
    """

    def __init__(self, *, clock: Clock, share: float, wait: Callable[[float], object] | None = None) -> None:
        if not 0 < share <= 1:
            raise ValueError(f"the share of the rate limits must be above 0 and at most 1, is {share}")
        self._clock = clock
        self._share = share
        self._wait = wait or threading.Event().wait
        self._lock = threading.Lock()
        self._project = _Gate(PROJECT_QUOTA, share)
        self._paths: dict[tuple[str, str], _Gate] = {}
        self._urgent_waiting = 0

    def acquire(self, method: str, path: str, urgency: Urgency, deadline: float) -> None:
        """Return when the request may leave; `path` is relative to the API's base, `deadline` is monotonic seconds.

        Raises:
            Throttled: it cannot leave before the deadline. Said at once: waiting in vain would only block a thread.
        """
        counted = False
        try:
            while True:
                with self._lock:
                    now = self._clock.monotonic()
                    shared_s, own_s = self._waits(now, method, path, urgency)
                    delay_s = max(shared_s, own_s)
                    if delay_s <= 0:
                        self._project.take(now)
                        self._gate(method, path).take(now)
                        return
                    counts = urgency is Urgency.URGENT and shared_s > 0
                    self._urgent_waiting += counts - counted
                    counted = counts
                if now + delay_s > deadline:
                    raise Throttled(
                        f"our share of the API's rate limit is used up for {math.ceil(delay_s)} s",
                        code="rate_limit_reached",
                        retry_after=timedelta(seconds=delay_s),
                    )
                self._wait(max(delay_s, SHORTEST_WAIT_S))
        finally:
            with self._lock:
                self._urgent_waiting -= counted

    def left(self) -> int:
        """How many more requests may leave now, of our share of the project's limit."""
        with self._lock:
            return self._project.left(self._clock.monotonic())

    def held_s(self) -> float:
        """For how long the server told everybody to stay away."""
        with self._lock:
            return self._project.held_s(self._clock.monotonic())

    def give_back(self, method: str, path: str) -> None:
        """A request that was admitted did not leave: an outage must not use up what is needed right after it."""
        with self._lock:
            self._project.give_back()
            self._gate(method, path).give_back()

    def heard(self, method: str, path: str, ratelimit: str) -> None:
        """Take over the `RateLimit` header of an answer."""
        left = parse_ratelimit(ratelimit)
        with self._lock:
            now = self._clock.monotonic()
            for name, gate in (("project", self._project), ("endpoint", self._gate(method, path))):
                if name in left:
                    gate.hear(now, *left[name])

    def refused(self, method: str, path: str, retry_after: timedelta | None, ratelimit: str) -> None:
        """A 429: everybody stays away for that long.

        Only if the same answer proves that it was this path's own limit, and that the project has requests left, does
        the pause spare other paths: a neighbour hammering one list must not stop our deletions.
        """
        pause = min(retry_after or PAUSE_WITHOUT_HINT, LONGEST_PAUSE)
        left = parse_ratelimit(ratelimit)
        only_this_path = left.get("endpoint", (1, 0))[0] == 0 and left.get("project", (0, 0))[0] > 0
        with self._lock:
            until = self._clock.monotonic() + pause.total_seconds()
            gate = self._gate(method, path) if only_this_path else self._project
            gate.hold(until)

    def _waits(self, now: float, method: str, path: str, urgency: Urgency) -> tuple[float, float]:
        """Seconds to wait for the project's gate and for the path's own."""
        shared_s = self._project.wait_s(now, urgency)
        if urgency is Urgency.ROUTINE and self._urgent_waiting:
            shared_s = max(shared_s, COURTESY_S)
        return shared_s, self._gate(method, path).wait_s(now, urgency)

    def _gate(self, method: str, path: str) -> _Gate:
        key = (method, path)
        if key not in self._paths:
            if len(self._paths) >= MOST_IDLE_GATES:
                now = self._clock.monotonic()
                self._paths = {known: gate for known, gate in self._paths.items() if not gate.is_idle(now)}
            self._paths[key] = _Gate(LIST_QUOTAS.get(key, PATH_QUOTA), self._share)
        return self._paths[key]


def parse_ratelimit(header: str) -> dict[str, tuple[int, int]]:
    """`"project";r=486;t=37, "endpoint";r=48;t=37` → name: (requests left, seconds to reset); odd items are skipped."""
    found: dict[str, tuple[int, int]] = {}
    for item in header.split(","):
        name, *parameters = (part.strip() for part in item.split(";"))
        pairs = ([side.strip() for side in parameter.partition("=")] for parameter in parameters)
        values = {key: int(value) for key, _, value in pairs if value.isdecimal() and len(value) <= len("999999")}
        if "r" in values and "t" in values:
            found[name.strip('"')] = (values["r"], values["t"])
    return found
