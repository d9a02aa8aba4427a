"""Watching sizes: that nothing changes, and that what changes adds up at every moment."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .autoscaler import LIVE, Autoscaler
from .cloud import Cloud
from .until import until


@contextmanager
def nothing_happens(ca: Autoscaler, cloud: Cloud, *groups: str) -> Iterator[None]:
    """Neither sizes nor instances change, and no order or deletion for these groups reaches the cloud."""
    before = {group: ca.sizes(group) for group in groups}
    asked = {group: _asked_for(cloud, group) for group in groups}
    yield
    assert {group: ca.sizes(group) for group in groups} == before
    assert {group: _asked_for(cloud, group) for group in groups} == asked


def _asked_for(cloud: Cloud, group: str) -> list[tuple[str, int]]:
    return [(machine["id"], machine["delete_requests"]) for machine in cloud.machines(group)]


class Watch:
    """Reads target size, instances and target size again and again; counts where nothing changed in between."""

    def __init__(self, ca: Autoscaler, group: str) -> None:
        self._ca = ca
        self._group = group
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.rounds = 0
        self.sizes: list[int] = []
        self.mistakes: list[tuple[int, dict[str, int]]] = []

    def _run(self) -> None:
        while not self._stop.is_set():
            before, states, after = self._ca.target(self._group), self._ca.states(self._group), 0
            after = self._ca.target(self._group)
            if before == after:
                self.sizes.append(before)
                if before != sum(state in LIVE for state in states.values()):
                    self.mistakes.append((before, states))
            self.rounds += 1

    def settle(self) -> None:
        """Wait for two whole rounds, so that no two changes fall into one."""
        rounds = self.rounds
        until("the watch has looked twice", lambda: self.rounds > rounds + 1)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Watch while the block lasts."""
        self._thread.start()
        try:
            self.settle()
            yield
            self.settle()
        finally:
            self._stop.set()
            self._thread.join()
