"""Which nodes are not needed, since when, and which of them may go now."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from .client import NodeGroup
from .objects import GPU, Node, Pod
from .registry import Registry
from .simulation import Simulation
from .wire import RpcFailed

DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Removable:
    """A node that may go, its group, and whether the group goes as a whole or not at all."""

    node: Node
    group: NodeGroup
    goes_whole: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the planner looks at: nodes, pods, and the names of nodes whose deletion has begun."""

    nodes: Sequence[Node]
    pods: Sequence[Pod]
    going: Mapping[str, str]

    def on(self, node: Node) -> list[Pod]:
        """The pods of a node."""
        return [pod for pod in self.pods if pod.node == node.name]


class Planner:
    """Remembers since when each node is unneeded; a node that is needed once begins anew."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._provider = registry.provider
        self._defaults = registry.flags.defaults
        self.unneeded: dict[str, datetime] = {}

    def forget(self) -> None:
        """Begin all timers anew, as after a loop that could not see the cluster."""
        self.unneeded = {}

    def plan(self, scene: Scene, now: datetime) -> None:
        """Find what is unneeded: in a group above its minimum, little used, and its pods fit elsewhere."""
        sizes = self._sizes()
        simulation = Simulation(scene.nodes, scene.pods)
        found: dict[str, datetime] = {}
        gone: set[str] = set(scene.going)
        for node in scene.nodes:
            if node.name not in scene.going and self._is_candidate(node, sizes) and self._is_idle(node, scene):
                gone.add(node.name)
                if simulation.leftover(scene.on(node), but_not_on=frozenset(gone)):
                    gone.discard(node.name)
                else:
                    found[node.name] = self.unneeded.get(node.name, now)
        self.unneeded = found

    def removable(self, scene: Scene, now: datetime) -> list[Removable]:
        """Those that were unneeded for long enough, as long as their group stays above its minimum."""
        sizes = self._sizes()
        for name in scene.going.values():
            sizes[name] = sizes.get(name, 0) - 1
        found: list[Removable] = []
        for node in scene.nodes:
            since = self.unneeded.get(node.name)
            group = None if since is None else self._group(node)
            if since is None or group is None or sizes.get(group.id, 0) <= group.min_size:
                continue
            options = group.options(self._defaults)
            wait = options.scale_down_unneeded_time if node.ready else options.scale_down_unready_time
            if wait > timedelta() and since + wait >= now:
                continue
            sizes[group.id] -= 1
            found.append(Removable(node=node, group=group, goes_whole=options.zero_or_max_node_scaling))
        return self._without_parts(found)

    def _without_parts(self, found: Sequence[Removable]) -> list[Removable]:
        """A group that scales all or nothing keeps its nodes until all of them may go."""
        kept = []
        for one in found:
            together = sum(1 for other in found if other.group.id == one.group.id)
            if not one.goes_whole or together == len(self._registry.readiness(one.group.id).registered):
                kept.append(one)
        return kept

    def _sizes(self) -> dict[str, int]:
        sizes: dict[str, int] = {}
        for group in self._provider.node_groups():
            try:
                sizes[group.id] = group.target_size()
            except RpcFailed:
                continue
        return sizes

    def _group(self, node: Node) -> NodeGroup | None:
        try:
            return self._provider.node_group_for_node(node)
        except RpcFailed:
            return None

    def _is_candidate(self, node: Node, sizes: Mapping[str, int]) -> bool:
        """The limits here are those that came with NodeGroupForNode."""
        group = self._group(node)
        if group is None or sizes.get(group.id, 0) <= group.min_size:
            return False
        return not node.is_being_deleted and node.annotations.get(DISABLED) != "true"

    def _is_idle(self, node: Node, scene: Scene) -> bool:
        """At or below the threshold: of GPUs alone where there are any, else of CPU or memory, whichever is higher."""
        group = self._group(node)
        if group is None:
            return False
        try:
            options = group.options(self._defaults)
        except RpcFailed:
            return False
        pods = scene.on(node)
        if self._provider.gpu_label() in node.labels or node.allocatable.get(GPU):
            return _used(node, pods, (GPU,)) <= Decimal(str(options.scale_down_gpu_utilization_threshold))
        return _used(node, pods, ("cpu", "memory")) <= Decimal(str(options.scale_down_utilization_threshold))


def _used(node: Node, pods: Collection[Pod], resources: Sequence[str]) -> Decimal:
    shares = [
        sum((pod.requests.get(resource, Decimal(0)) for pod in pods), Decimal(0)) / node.allocatable[resource]
        for resource in resources
        if node.allocatable.get(resource)
    ]
    return max(shares, default=Decimal(0))
