"""A client that scales without pause, and remembers what it was promised and what it cannot know."""

import random
import threading
from collections import Counter, defaultdict
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from app.rpc.client import CallFailed, Client
from app.rpc.gen import externalgrpc_pb2 as pb
from tests.torture.stage import GROUPS

_CREATING, _RUNNING = pb.InstanceStatus.instanceCreating, pb.InstanceStatus.instanceRunning
_NOTHING_DONE = frozenset({"FAILED_PRECONDITION", "INVALID_ARGUMENT", "NOT_FOUND"})
_NOBODY_THERE = frozenset({"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED"})
"""Killed, or stopping: an answer that was lost."""


class Autoscaler:
    """A thread of its own while in its context. Its books are exact once it has ended."""

    def __init__(self, address: str, seed: int) -> None:
        self.promised: Counter[str] = Counter()
        """Nodes of increases that were answered with OK, by group."""
        self.unsure: Counter[str] = Counter()
        """Nodes of increases that were not answered: they may have been accepted."""
        self.given_back: defaultdict[str, set[str]] = defaultdict(set)
        """Provider ids of deletions that were answered with OK, by group."""
        self.calls = 0
        self.oddities: list[str] = []
        self._address = address
        self._draw = random.Random(f"autoscaler/{seed}")  # noqa: S311 - reproducible on purpose
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._work, name="autoscaler", daemon=True)
        self._client = Client(address)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()
        self._client.close()

    def _work(self) -> None:
        while not self._end.wait(self._draw.uniform(0.01, 0.15)):
            act = self._draw.choices((self._grow, self._give_back, self._collect, self._take_back), (4, 3, 2, 1))[0]
            try:
                act(self._draw.choice(tuple(GROUPS)))
            except CallFailed as failure:
                self._note(failure)
                self._client.close()  # a new connection at once, where an old one would wait longer each time
                self._client = Client(self._address)

    def _note(self, failure: CallFailed) -> None:
        if failure.status not in _NOTHING_DONE | _NOBODY_THERE:
            self.oddities.append(failure.message)

    def _grow(self, group: str) -> None:
        delta = self._draw.choice((1, 1, 2, 3))
        self.calls += 1
        try:
            self._client.increase_size(group, delta)
        except CallFailed as failure:
            if failure.status not in _NOTHING_DONE:
                self.unsure[group] += delta
            raise
        self.promised[group] += delta

    def _give_back(self, group: str) -> None:
        ids = [one.id for one in self._listed(group, _RUNNING, _CREATING)]
        self.delete(group, self._draw.sample(ids, min(len(ids), self._draw.choice((1, 2)))))

    def _collect(self, group: str) -> None:
        """Give back what failed, as the autoscaler's loop does."""
        self.delete(group, failed(self._listed(group, _CREATING)))

    def _take_back(self, group: str) -> None:
        self.calls += 1
        self._client.decrease_target_size(group, -1)

    def _listed(self, group: str, *states: int) -> Sequence[pb.Instance]:
        return [one for one in self._client.instances(group) if one.status.instanceState in states]

    def delete(self, group: str, ids: Sequence[str]) -> None:
        """Give these back. Raises: CallFailed."""
        if ids:
            self.calls += 1
            self._client.delete_nodes(group, ids)
            self.given_back[group].update(ids)


def failed(instances: Sequence[pb.Instance]) -> Sequence[str]:
    """Ids of those that are listed with an error."""
    return [one.id for one in instances if one.status.errorInfo.errorCode]
