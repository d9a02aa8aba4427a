"""Deleting nodes: taint, wait, drain, one call for each node, several at a time."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Final, Protocol

from .objects import CANDIDATE, TO_BE_DELETED, Node
from .registry import Registry
from .scaledown import Removable
from .wire import AutoscalerCrashed, RpcFailed

_NO_SCHEDULE: Final = "NoSchedule"


class Drains(Protocol):
    """Whoever can move pods away from a node."""

    def evict(self, node: str) -> None:
        """The node's pods have to find another place."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Deletion:
    """Nodes that go in one call once it is time."""

    group: str
    nodes: Sequence[Node]
    at: datetime


class Actuator:
    """Deletions under way. The loop begins them, threads of their own carry them out between loops."""

    def __init__(self, registry: Registry, drains: Drains) -> None:
        self._registry = registry
        self._drains = drains
        self._pending: list[Deletion] = []

    def going(self) -> dict[str, str]:
        """Name → group of every node whose deletion has begun and not ended."""
        return {node.name: deletion.group for deletion in self._pending for node in deletion.nodes}

    def begin(self, removable: Sequence[Removable], now: datetime) -> int:
        """Taint as many as may go at a time, and have them deleted a little later; how many."""
        flags = self._registry.flags
        room = flags.max_scale_down_parallelism - len(self.going())
        at = now + flags.node_delete_delay_after_taint
        count = 0
        for nodes in _batches(removable):
            if count + len(nodes) > room and not nodes[0].goes_whole:
                break
            for one in nodes:
                one.node.taints.pop(CANDIDATE, None)
                one.node.taints[TO_BE_DELETED] = _NO_SCHEDULE
            self._pending.append(Deletion(group=nodes[0].group.id, nodes=[one.node for one in nodes], at=at))
            count += len(nodes)
        return count

    def carry_out(self, now: datetime) -> None:
        """Drain and delete what is due, all at the same time. Raises: AutoscalerCrashed."""
        due = [deletion for deletion in self._pending if deletion.at <= now]
        for deletion in due:
            for node in deletion.nodes:
                self._drains.evict(node.name)
        if len(due) == 1:
            outcomes = [self._delete(due[0])]
        else:
            with ThreadPoolExecutor(max_workers=self._registry.flags.max_scale_down_parallelism) as threads:
                outcomes = list(threads.map(self._delete, due))
        for deletion, code in zip(due, outcomes, strict=True):
            self._pending.remove(deletion)
            self._settle(deletion, code, now)

    def _delete(self, deletion: Deletion) -> str:
        """The status of the call; the group is asked for once more."""
        provider = self._registry.provider
        try:
            group = provider.node_group_for_node(deletion.nodes[0])
            if group is None:
                if provider.release.crashes_on_unmanaged_deletion:
                    raise AutoscalerCrashed(f"{deletion.nodes[0].name} was to be deleted and has no group any more")
                return "UNMANAGED"
            group.delete_nodes(deletion.nodes)
        except RpcFailed as error:
            return error.code
        return "OK"

    def _settle(self, deletion: Deletion, code: str, now: datetime) -> None:
        """Success: wait for the nodes to disappear, which is somebody else's work. Failure: take the taints back."""
        words = f"ScaleDown {deletion.group} {len(deletion.nodes)}"
        self._registry.journal.note(words if code == "OK" else f"{words} failed: {code}")
        for node in deletion.nodes:
            if code == "OK":
                self._registry.register_scale_down(deletion.group, now)
            else:
                node.taints.pop(TO_BE_DELETED, None)


def _batches(removable: Sequence[Removable]) -> Iterator[list[Removable]]:
    """One node each, except for groups that go as a whole."""
    for _, whole in groupby(removable, key=lambda one: one.group.id if one.goes_whole else one.node.name):
        yield list(whole)
