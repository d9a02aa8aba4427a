"""The main loop."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from .actuation import Actuator, Drains
from .cleanup import Cleanup, GroupUnknown
from .client import Provider
from .flags import Flags
from .journal import Journal
from .messages import Messages
from .objects import CANDIDATE, GPU, STARTUP_TAINT, TO_BE_DELETED, Node, Pod
from .registry import Registry
from .releases import Change, Release
from .scaledown import Planner, Scene
from .scaleup import ScaleUpResult, ScaleUps, are_new
from .simulation import Simulation
from .templates import Templates
from .wire import RpcFailed, Wire


class View(Drains, Protocol):
    """What the autoscaler sees of the cluster, and what it does to it."""

    def nodes(self) -> Sequence[Node]:
        """All nodes, oldest first."""
        ...

    def pods(self) -> Sequence[Pod]:
        """All pods, oldest first; those without a node are pending and were found unschedulable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """How a loop ended. `error` names the call that failed it, `ended` why it ended early without an error."""

    at: datetime
    error: str | None = None
    ended: str = ""


class _Ended(Exception):
    """Nothing more happens in this loop."""


class Autoscaler:
    """One process: what it remembers is lost with it."""

    def __init__(self, messages: Messages, wire: Wire, cluster: View, release: Release, flags: Flags) -> None:
        self.journal = Journal()
        self.loops: list[Loop] = []
        self.release = release
        self.flags = flags
        self.provider = Provider(messages, wire, release)
        self.registry = Registry(self.provider, flags, self.journal)
        self._cluster = cluster
        self._templates = Templates(self.provider)
        self._cleanup = Cleanup(self.registry)
        self._scale_ups = ScaleUps(self.registry)
        self._planner = Planner(self.registry)
        self._actuator = Actuator(self.registry, cluster)
        self._has_untainted = False
        self._scaled_up_at: datetime | None = None
        self._deleted_at: datetime | None = None

    def background(self, now: datetime) -> None:
        """What happens beside the main loop: the instances cache, deletions under way. Raises: AutoscalerCrashed."""
        self.journal.now = now
        self.registry.cache.refresh_if_due(now)
        self._actuator.carry_out(now)

    def end(self) -> None:
        """The process is asked to end, as at a roll-out."""
        if self.release.has(Change.SAYS_GOODBYE):
            self.provider.ask("Cleanup")

    def wants_next_at(self, now: datetime) -> datetime:
        """When the next loop begins."""
        if not self.loops:
            return now
        last = self.loops[-1].at
        is_frequent = self.flags.frequent_loops and self.release.has(Change.FREQUENT_LOOPS)
        was_productive = last in {self._scaled_up_at, self._deleted_at}
        is_second = len(self.loops) > 1 and self.loops[-2].at == last
        return last if is_frequent and was_productive and not is_second else last + self.flags.scan_interval

    def run_once(self, now: datetime) -> Loop:
        """One loop. Raises: AutoscalerCrashed."""
        self.journal.now = now
        try:
            self._run(now)
        except RpcFailed as error:
            loop = Loop(at=now, error=str(error))
        except _Ended as early:
            loop = Loop(at=now, ended=str(early))
        else:
            loop = Loop(at=now)
        self.loops.append(loop)
        return loop

    def _run(self, now: datetime) -> None:
        self._untaint_once()
        nodes = self._nodes()
        self.provider.refresh()
        self.provider.node_groups()
        templates = self._templates.make(nodes, now)
        try:
            self.registry.update(nodes, now)
        except RpcFailed:
            self._planner.forget()
            raise
        self._put_in_order(now)
        simulation, upcoming = self._simulate(nodes, templates, now)
        pending = simulation.leftover(pod for pod in self._cluster.pods() if pod.node is None)
        result = self._scale_up(pending, templates, len(nodes), now)
        if result is ScaleUpResult.FAILED and not self.release.has(Change.GOES_ON_AFTER_SCALE_UP):
            raise RpcFailed("NodeGroupIncreaseSize", "", "the scale-up failed")
        if result is ScaleUpResult.SCALED and not self.release.has(Change.GOES_ON_AFTER_SCALE_UP):
            raise _Ended("scaled up")
        started = [node for node in nodes if node.name not in upcoming]
        self._scale_down(started, now, is_forbidden=result is ScaleUpResult.TOO_EARLY)
        if self.flags.enforce_node_group_min_size:
            minimum = self._scale_ups.raise_to_minimum(templates, now)
            self._scaled_up_at = now if minimum is ScaleUpResult.SCALED else self._scaled_up_at

    def _untaint_once(self) -> None:
        """A process that ended may have left taints behind; the next one takes them for stale."""
        if self._has_untainted:
            return
        self._has_untainted = True
        for node in self._cluster.nodes():
            if self.release.has(Change.ASKS_BEFORE_UNTAINTING) and not self._is_managed(node):
                continue
            node.taints.pop(TO_BE_DELETED, None)

    def _is_managed(self, node: Node) -> bool:
        try:
            return self.provider.node_group_for_node(node) is not None
        except RpcFailed:
            return False

    def _nodes(self) -> list[Node]:
        """All nodes; one that should have GPUs and shows none, or has a start-up taint, is seen as not ready."""
        label = self.provider.gpu_label()
        nodes = self._cluster.nodes()
        return [_unready_copy(node) if _lacks_gpu(node, label) or _starts(node) else node for node in nodes]

    def _put_in_order(self, now: datetime) -> None:
        self._cleanup.remove_unregistered(now)
        if not self.registry.is_cluster_healthy():
            self._planner.forget()
            self.journal.note("ClusterUnhealthy")
            raise _Ended("cluster unhealthy")
        try:
            deleted = self._cleanup.remove_failed()
        except GroupUnknown as unknown:
            raise _Ended(f"failed creation {unknown} has no group") from unknown
        if deleted and not self.release.has(Change.GOES_ON_AFTER_FAILED_CREATIONS):
            raise _Ended("failed creations removed")
        if self._cleanup.fix_sizes(now):
            raise _Ended("size fixed")

    def _simulate(
        self, nodes: Sequence[Node], templates: dict[str, Node], now: datetime
    ) -> tuple[Simulation, frozenset[str]]:
        """The cluster as if everything upcoming were there, and the names of the nodes that this stands for."""
        simulation = Simulation(nodes, self._cluster.pods())
        replaced: set[str] = set()
        for group in self.provider.node_groups():
            count = self.registry.upcoming(group.id, now)
            if not count or group.id not in templates:
                continue
            for number in range(count):
                placeholder = copy(templates[group.id])
                placeholder.name = f"upcoming-{group.id}-{number}"
                simulation.add(placeholder)
            replaced.update(self.registry.readiness(group.id).not_started)
        for name in replaced:
            simulation.remove(name)
        return simulation, frozenset(replaced)

    def _scale_up(self, pending: Sequence[Pod], templates: dict[str, Node], nodes: int, now: datetime) -> ScaleUpResult:
        if not pending:
            return ScaleUpResult.NOT_NEEDED
        if are_new(pending, now):
            return ScaleUpResult.TOO_EARLY
        result = self._scale_ups.help(pending, templates, nodes, now)
        if result is ScaleUpResult.SCALED:
            self._scaled_up_at = now
        return result

    def _scale_down(self, nodes: Sequence[Node], now: datetime, *, is_forbidden: bool) -> None:
        scene = Scene(nodes=nodes, pods=self._cluster.pods(), going=self._actuator.going())
        self._planner.plan(scene, now)
        for node in self._cluster.nodes():
            if node.name in self._planner.unneeded:
                node.taints[CANDIDATE] = "PreferNoSchedule"
            else:
                node.taints.pop(CANDIDATE, None)
        delay = self.flags.scale_down_delay_after_add
        if is_forbidden or (self._scaled_up_at is not None and self._scaled_up_at + delay > now):
            return
        if self._actuator.begin(self._planner.removable(scene, now), now):
            self._deleted_at = now
            self.registry.recalculate()


def _lacks_gpu(node: Node, label: str) -> bool:
    return bool(label) and node.ready and label in node.labels and not node.allocatable.get(GPU)


def _starts(node: Node) -> bool:
    return node.ready and any(key.startswith(STARTUP_TAINT) for key in node.taints)


def _unready_copy(node: Node) -> Node:
    """Shares the taints with the node itself, which are the one thing the autoscaler writes."""
    seen = copy(node)
    seen.ready = False
    return seen
