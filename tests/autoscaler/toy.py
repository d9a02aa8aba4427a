"""A provider that says whatever it is told to say: to show what the autoscaler makes of bad answers."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

from app.clock import FakeClock
from tests.protocol.clients import Client

from .ca.flags import Flags
from .ca.loop import Autoscaler
from .ca.messages import Messages
from .ca.objects import Node, quantity
from .ca.releases import Release
from .ca.wire import RpcFailed
from .stage.cluster import Cluster

RUNNING, CREATING, DELETING, UNSPECIFIED = 1, 2, 3, 0
SIZES: Final = {"cpu": "8", "memory": "32Gi", "pods": "110", "ephemeral-storage": "100Gi"}


@dataclass(slots=True, kw_only=True)
class ToyGroup:
    """What is answered about a group. `instances` are (id, state, error code); templates go into the named fields."""

    id: str = "toy"
    min_size: int = 0
    max_size: int = 5
    target: int = 0
    instances: list[tuple[str, int, str]] = field(default_factory=list)
    template_in: frozenset[str] = frozenset({"nodeInfo", "nodeBytes"})
    options: Mapping[str, Any] | None = None


class Toy:
    """A wire to nowhere. `failing` holds (method, group) pairs that answer with an error, `unmanaged` provider ids."""

    def __init__(self, client: Client, *groups: ToyGroup) -> None:
        self.groups = {group.id: group for group in groups}
        self.failing: dict[tuple[str, str], str] = {}
        self.unmanaged: set[str] = set()
        self.limits_with_nodes = True
        self.calls: list[tuple[str, Any]] = []
        self._client = client

    def call(self, method: str, request: bytes) -> bytes:
        """One call. Raises: RpcFailed."""
        stem = "NodeGroupAutoscalingOptions" if method == "NodeGroupGetOptions" else method
        asked = getattr(self._client, f"{stem}Request").FromString(request)
        self.calls.append((method, asked))
        group = getattr(asked, "id", "")
        if (method, group) in self.failing:
            raise RpcFailed(method, self.failing[method, group], "told to")
        answer = getattr(self._client, f"{stem}Response")()
        self._fill(method, answer, asked, self.groups.get(group))
        data: bytes = answer.SerializeToString()
        return data

    def _fill(self, method: str, answer: Any, asked: Any, group: ToyGroup | None) -> None:
        match method:
            case "NodeGroups":
                answer.nodeGroups.extend(self._message(one) for one in self.groups.values())
            case "NodeGroupForNode":
                self._fill_group_of(answer, asked.node.providerID)
            case "NodeGroupTargetSize" if group is not None:
                answer.targetSize = group.target
            case "NodeGroupNodes" if group is not None:
                for instance_id, state, code in group.instances:
                    one = answer.instances.add(id=instance_id)
                    one.status.instanceState = state
                    one.status.errorInfo.errorCode = code
            case "NodeGroupTemplateNodeInfo" if group is not None:
                self._fill_template(answer, group)
            case "NodeGroupGetOptions" if group is not None and group.options is not None:
                told = answer.nodeGroupAutoscalingOptions
                told.scaleDownUtilizationThreshold = group.options.get("threshold", 0.5)
            case "NodeGroupIncreaseSize" if group is not None:
                group.target += asked.delta

    def _message(self, group: ToyGroup) -> Any:
        return self._client.NodeGroup(id=group.id, minSize=group.min_size, maxSize=group.max_size)

    def _fill_group_of(self, answer: Any, provider_id: str) -> None:
        for group in self.groups.values():
            if provider_id.startswith(f"{group.id}-") and provider_id not in self.unmanaged:
                full, bare = self._message(group), self._client.NodeGroup(id=group.id)
                answer.nodeGroup.CopyFrom(full if self.limits_with_nodes else bare)

    def _fill_template(self, answer: Any, group: ToyGroup) -> None:
        node = self._client.kubernetes("Node")()
        for resource, amount in SIZES.items():
            node.status.capacity[resource].string = amount
            node.status.allocatable[resource].string = amount
        if "nodeInfo" in group.template_in and self._client.knows("NodeGroupTemplateNodeInfoResponse", "nodeInfo"):
            answer.nodeInfo.CopyFrom(node)
        if "nodeBytes" in group.template_in and self._client.knows("NodeGroupTemplateNodeInfoResponse", "nodeBytes"):
            answer.nodeBytes = node.SerializeToString()

    def count(self, method: str) -> int:
        """How often it was called."""
        return sum(1 for called, _ in self.calls if called == method)

    def asked(self, method: str) -> list[Any]:
        """What it was called with."""
        return [request for called, request in self.calls if called == method]


class Bench:
    """An autoscaler and a small cluster before a toy."""

    def __init__(self, client: Client, release: Release, *groups: ToyGroup, flags: Flags | None = None) -> None:
        self.clock = FakeClock()
        self.began_at = self.clock.now()
        self.toy = Toy(client, *groups)
        self.cluster = Cluster(self.clock)
        messages = Messages(client)
        self.autoscaler = Autoscaler(messages, self.toy, self.cluster, release, flags or Flags(frequent_loops=False))

    def register(self, name: str, *, ready: bool = True) -> Node:
        """A node whose name is its provider id."""
        now = self.clock.now()
        sizes = {resource: quantity(amount) for resource, amount in SIZES.items()}
        node = Node(name=name, provider_id=name, allocatable=sizes, created_at=now, ready_since=now, ready=ready)
        self.cluster.add(node)
        return node

    def loop(self, seconds: int = 10) -> None:
        """The background, then one loop, after so many seconds."""
        self.clock.advance(timedelta(seconds=seconds))
        now = self.clock.now()
        self.cluster.schedule()
        self.autoscaler.background(now)
        self.autoscaler.run_once(now)

    def loops(self, minutes: int, every: int = 60) -> None:
        """Loops for so long."""
        for _ in range(minutes * 60 // every):
            self.loop(every)

    @property
    def errors(self) -> list[str]:
        """What failed loops."""
        return [loop.error for loop in self.autoscaler.loops if loop.error is not None]

    @property
    def story(self) -> list[str]:
        """What the autoscaler told, after the minute in which it happened."""
        entries = self.autoscaler.journal.entries
        return [f"{round((at - self.began_at).total_seconds() / 60)} {words}" for at, words in entries]
