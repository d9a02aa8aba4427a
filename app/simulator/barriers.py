"""Holding requests until enough of them have come, to force races deterministically."""

import re
import threading
from dataclasses import dataclass


@dataclass(slots=True)
class _Barrier:
    route: re.Pattern[str]
    wanted: int
    held: int = 0
    open: bool = False


class Barriers:
    """Barriers in order of creation; each lets its requests go together and is gone then."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._barriers: list[_Barrier] = []

    def add(self, route: str, wanted: int) -> None:
        """Hold the next `wanted` requests whose `METHOD /path` matches a regular expression."""
        with self._condition:
            self._barriers.append(_Barrier(re.compile(route), wanted))

    def hold(self, route: str, timeout_s: float = 30.0) -> None:
        """Wait at the first barrier that matches, at most so long."""
        with self._condition:
            barrier = next((item for item in self._barriers if item.route.fullmatch(route)), None)
            if barrier is None:
                return
            barrier.held += 1
            if barrier.held >= barrier.wanted:
                barrier.open = True
                self._barriers.remove(barrier)
                self._condition.notify_all()
            else:
                self._condition.wait_for(lambda: barrier.open, timeout_s)
