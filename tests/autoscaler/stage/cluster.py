"""A small cluster: nodes, pods, a toy scheduler. The autoscaler sees it, and taints its nodes."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from app.clock import FakeClock
from tests.autoscaler.ca.objects import GPU, Node, Pod, fits, needs, quantity


class Cluster:
    """The API server and its scheduler. What is pending here has been found unschedulable."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self._nodes: dict[str, Node] = {}
        self._pods: dict[str, Pod] = {}

    def nodes(self) -> Sequence[Node]:
        """All nodes, oldest first."""
        return list(self._nodes.values())

    def pods(self) -> Sequence[Pod]:
        """All pods, oldest first."""
        return list(self._pods.values())

    def node(self, name: str) -> Node:
        """A node that exists."""
        return self._nodes[name]

    def pending(self) -> Sequence[str]:
        """Names of pods without a place."""
        return [pod.name for pod in self._pods.values() if pod.node is None]

    def submit(
        self, *names: str, gpus: int = 0, cpu: str = "1", selector: Mapping[str, str] | None = None
    ) -> Sequence[Pod]:
        """New pods, created now, all alike; they tolerate every taint that a group may have."""
        requests = {"cpu": quantity(cpu), "memory": quantity("1Gi")}
        if gpus:
            requests[GPU] = Decimal(gpus)
        pods = [
            Pod(
                name=name,
                requests=dict(requests),
                created_at=self._clock.now(),
                selector=selector or {},
                tolerates=frozenset({"nvidia.com/gpu", "spot"}),
            )
            for name in names
        ]
        self._pods.update({pod.name: pod for pod in pods})
        return pods

    def finish(self, *names: str) -> None:
        """The pods have done their work and are gone."""
        for name in names:
            del self._pods[name]

    def add(self, node: Node) -> None:
        """A node registers."""
        self._nodes[node.name] = node

    def remove(self, name: str) -> None:
        """Somebody deletes the node object; the pods that were on it are made anew."""
        self.evict(name)
        self._nodes.pop(name, None)

    def evict(self, node: str) -> None:
        """The node's pods are made anew and wait for another place."""
        for pod in self._pods.values():
            if pod.node == node:
                pod.node, pod.created_at = None, self._clock.now()

    def schedule(self) -> None:
        """Give every pending pod the first node that takes it."""
        free = {name: dict(node.allocatable) for name, node in self._nodes.items()}
        for pod in self._pods.values():
            if pod.node in free:
                _take(free[pod.node], pod)
        for pod in self._pods.values():
            for node in self._nodes.values():
                if pod.node is None and fits(pod, node, free[node.name]):
                    pod.node = node.name
                    _take(free[node.name], pod)


def _take(free: dict[str, Decimal], pod: Pod) -> None:
    for resource, amount in needs(pod).items():
        free[resource] = free.get(resource, Decimal(0)) - amount
