"""A Cluster Autoscaler of one generation, as far as the channel goes: it sends what that release sends, and no more.

Messages are those of `tests.protocol.clients`, so every answer is read with the eyes of that release.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Final, Self

import grpc
import pytest

from tests.protocol.clients import PACKAGE, Client

METHODS: Final = (
    "NodeGroups",
    "NodeGroupForNode",
    "PricingNodePrice",
    "PricingPodPrice",
    "GPULabel",
    "GetAvailableGPUTypes",
    "Cleanup",
    "Refresh",
    "NodeGroupTargetSize",
    "NodeGroupIncreaseSize",
    "NodeGroupDeleteNodes",
    "NodeGroupDecreaseTargetSize",
    "NodeGroupNodes",
    "NodeGroupTemplateNodeInfo",
    "NodeGroupGetOptions",
)
OPTIONAL: Final = ("PricingNodePrice", "PricingPodPrice", "NodeGroupTemplateNodeInfo", "NodeGroupGetOptions")
"""Methods that a provider may answer with UNIMPLEMENTED."""

DEADLINE_S: Final = 5.0
"""The autoscaler's own for every call."""

RUNNING, CREATING, DELETING = 1, 2, 3
LIVE: Final = frozenset({RUNNING, CREATING})
OUT_OF_RESOURCES, OTHER = 1, 99

FAKE_NODE: Final = "k8s.io/cluster-autoscaler/fake-node-reason"
"""The annotation of the nodes the autoscaler makes up for instances that have none."""

OLD_DURATIONS: Final = ("scaleDownUnneededTime", "scaleDownUnreadyTime", "MaxNodeProvisionTime")
NEW_DURATIONS: Final = ("scaleDownUnneededDuration", "scaleDownUnreadyDuration", "MaxNodeProvisionDuration")

_T0_S: Final = 1_767_600_000
"""2026-01-05 08:00:00 UTC, where asked periods begin."""


def path_of(method: str) -> str:
    """The HTTP/2 path of a method."""
    return f"/{PACKAGE}.CloudProvider/{method}"


@contextmanager
def refused(*codes: grpc.StatusCode) -> Iterator[None]:
    """The call inside must fail with one of these."""
    with pytest.raises(grpc.RpcError) as caught:
        yield
    assert caught.value.code() in codes, str(caught.value)


class Autoscaler:
    """One channel and the messages of one generation: no metadata, no retries, five seconds a call."""

    def __init__(self, messages: Client, address: str, credentials: grpc.ChannelCredentials | None = None) -> None:
        self.messages = messages
        self.generation = messages.generation
        self._channel = (
            grpc.insecure_channel(address) if credentials is None else grpc.secure_channel(address, credentials)
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the channel."""
        self._channel.close()

    def await_provider(self) -> None:
        """Wait until the channel is connected again."""
        grpc.channel_ready_future(self._channel).result(timeout=30)

    def request(self, method: str, **values: Any) -> Any:
        """The request message of a method."""
        stem = "NodeGroupAutoscalingOptions" if method == "NodeGroupGetOptions" else method
        return getattr(self.messages, f"{stem}Request")(**values)

    def response(self, method: str, data: bytes) -> Any:
        """The answer to a method, read as this generation reads it."""
        stem = "NodeGroupAutoscalingOptions" if method == "NodeGroupGetOptions" else method
        return getattr(self.messages, f"{stem}Response").FromString(data)

    def raw(self, method: str, request: bytes = b"", timeout: float | None = DEADLINE_S) -> bytes:
        """One call with the bytes as they are. `method` need not exist."""
        call: Callable[..., bytes] = self._channel.unary_unary(path_of(method), request_serializer=bytes)
        return call(request, timeout=timeout)

    def call(self, method: str, **values: Any) -> Any:
        """One call, in the words of this generation."""
        return self.response(method, self.raw(method, self.request(method, **values).SerializeToString()))

    def status(self, method: str, request: bytes = b"") -> grpc.StatusCode:
        """What status a call ends with."""
        try:
            self.raw(method, request)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    def harmless(self, group: str) -> dict[str, bytes]:
        """A request for each method that changes nothing, whether it is refused or not."""
        values: dict[str, dict[str, Any]] = {method: {} for method in METHODS}
        for method in METHODS:
            if method.startswith("NodeGroup") and method not in {"NodeGroups", "NodeGroupForNode"}:
                values[method]["id"] = group
        values["NodeGroupForNode"]["node"] = self.node("aws:///eu-1a/i-0", "foreign")
        values["PricingNodePrice"]["node"] = self.node(name=f"template-node-for-{group}-42")
        values["NodeGroupGetOptions"]["defaults"] = self.flags()
        return {method: self.request(method, **given).SerializeToString() for method, given in values.items()}

    def groups(self) -> dict[str, Any]:
        """Every node group by its id, in the order of the answer."""
        listed = self.call("NodeGroups").nodeGroups
        groups = {group.id: group for group in listed}
        assert len(groups) == len(listed), "an id is listed twice"
        return groups

    def node(self, provider_id: str = "", name: str = "", **values: Mapping[str, str]) -> Any:
        """A node as it travels."""
        return self.messages.ExternalGrpcNode(providerID=provider_id, name=name, **values)

    def real(self, instance_id: str) -> Any:
        """The node that a machine becomes: its provider id is the instance's, its name the host's."""
        return self.node(instance_id, instance_id.rpartition("/")[2], labels={"kubernetes.io/os": "linux"})

    def fake(self, instance_id: str, reason: str = "unregistered") -> Any:
        """The stand-in for an instance without a node: name and provider id are the instance's id."""
        return self.node(instance_id, instance_id, annotations={FAKE_NODE: reason})

    def group_of(self, node: Any) -> Any:
        """The node group of a node, with an empty id if it has none."""
        return self.call("NodeGroupForNode", node=node).nodeGroup

    def target(self, group: str) -> int:
        """The target size of a group."""
        return int(self.call("NodeGroupTargetSize", id=group).targetSize)

    def instances(self, group: str) -> list[Any]:
        """Every listed instance of a group."""
        return list(self.call("NodeGroupNodes", id=group).instances)

    def states(self, group: str) -> dict[str, int]:
        """Instance id → state, of every listed instance."""
        return {instance.id: instance.status.instanceState for instance in self.instances(group)}

    def live(self, group: str) -> list[str]:
        """Ids of the instances that count."""
        return [instance_id for instance_id, state in self.states(group).items() if state in LIVE]

    def sizes(self, group: str) -> tuple[int, dict[str, int]]:
        """Target size and states, for comparing."""
        return self.target(group), self.states(group)

    def increase(self, group: str, delta: int) -> None:
        """Ask for more."""
        self.call("NodeGroupIncreaseSize", id=group, delta=delta)

    def decrease(self, group: str, delta: int) -> None:
        """Ask for less; `delta` is negative."""
        self.call("NodeGroupDecreaseTargetSize", id=group, delta=delta)

    def delete(self, group: str, nodes: Sequence[Any]) -> None:
        """Give nodes back."""
        self.call("NodeGroupDeleteNodes", id=group, nodes=nodes)

    def template(self, group: str) -> Any:
        """The template node as this generation finds it; a newer client prefers the newer field."""
        answer = self.call("NodeGroupTemplateNodeInfo", id=group)
        if self.generation in {"D", "E"} and answer.nodeBytes:
            return self.messages.kubernetes("Node").FromString(answer.nodeBytes)
        return answer.nodeInfo

    def flags(self, minutes: tuple[int, int, int] = (10, 20, 15)) -> Any:
        """The options this autoscaler was started with: thresholds 0.5 and 0.6, and all the durations it knows."""
        flags = self.messages.NodeGroupAutoscalingOptions(
            scaleDownUtilizationThreshold=0.5, scaleDownGpuUtilizationThreshold=0.6
        )
        for old, new, value in zip(OLD_DURATIONS, NEW_DURATIONS, minutes, strict=True):
            if self.knows("NodeGroupAutoscalingOptions", old):
                getattr(flags, old).duration = value * 60 * 10**9
            if self.knows("NodeGroupAutoscalingOptions", new):
                getattr(flags, new).seconds = value * 60
        return flags

    def knows(self, message: str, field: str) -> bool:
        """Whether this generation has the field."""
        return self.messages.knows(message, field)

    def period(self, method: str, hours: float) -> dict[str, Any]:
        """Start and end of a price request, in every form this generation sends."""
        values: dict[str, Any] = {}
        ends = {"start": _T0_S, "end": _T0_S + round(hours * 3600)}
        for end, seconds in ends.items():
            if self.knows(f"{method}Request", f"{end}Time"):
                values[f"{end}Time"] = self.messages.kubernetes("Time")(seconds=seconds, nanos=0)
            if self.knows(f"{method}Request", f"{end}Timestamp"):
                values[f"{end}Timestamp"] = {"seconds": seconds}
        return values

    def node_price(self, node: Any, hours: float = 1.0) -> float:
        """What a node costs for so long."""
        period = self.period("PricingNodePrice", hours)
        return float(self.call("PricingNodePrice", node=node, **period).price)

    def pod_price(self, pod: Any, hours: float = 1.0) -> float:
        """What a pod costs for so long."""
        values = self.period("PricingPodPrice", hours)
        if self.knows("PricingPodPriceRequest", "pod"):
            values["pod"] = pod
        if self.knows("PricingPodPriceRequest", "pod_bytes"):
            values["pod_bytes"] = pod.SerializeToString()
        return float(self.call("PricingPodPrice", **values).price)

    def pod(self, **requests: str) -> Any:
        """A pod with one container; underscores in names stand for the resource names below."""
        names = {"gpu": "nvidia.com/gpu"}
        pod = self.messages.kubernetes("Pod")()
        container = pod.spec.containers.add(name="main")
        for name, amount in requests.items():
            container.resources.requests[names.get(name, name)].string = amount
        return pod
