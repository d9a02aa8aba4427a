"""The messages of one generation of the protocol, to and from what the autoscaler works with.

Everything here is read from the answer alone: a field the generation does not know is not seen, a field that was left
out is zero, and where the real client would follow a nil pointer the process crashes.
"""

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

from tests.protocol.clients import Client

from .flags import Options
from .objects import Node, Pod, quantity
from .wire import AutoscalerCrashed

_NANOSECONDS: Final = 10**9
_OLD: Final = ("scaleDownUnneededTime", "scaleDownUnreadyTime", "MaxNodeProvisionTime")
_NEW: Final = ("scaleDownUnneededDuration", "scaleDownUnreadyDuration", "MaxNodeProvisionDuration")
_MESSAGES: Final = {"NodeGroupGetOptions": "NodeGroupAutoscalingOptions"}
"""The one method whose messages are not named after it."""


class Messages:
    """Encodes requests and decodes answers with the definitions of one generation."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self.generation = client.generation

    def request(self, method: str, **values: Any) -> bytes:
        """A serialized request."""
        data: bytes = getattr(self._client, f"{_MESSAGES.get(method, method)}Request")(**values).SerializeToString()
        return data

    def response(self, method: str, data: bytes) -> Any:
        """A parsed answer."""
        return getattr(self._client, f"{_MESSAGES.get(method, method)}Response").FromString(data)

    def node(self, node: Node) -> Any:
        """A node as requests carry it."""
        return self._client.ExternalGrpcNode(
            providerID=node.provider_id, name=node.name, labels=node.labels, annotations=node.annotations
        )

    def template(self, response: Any) -> Node:
        """The template node. A client that finds none hands nil to a core that does not expect it.

        Raises:
            AutoscalerCrashed: the fields that this generation knows are empty.
        """
        new = response.nodeBytes if self._client.knows("NodeGroupTemplateNodeInfoResponse", "nodeBytes") else b""
        if new:
            return _node(self._client.kubernetes("Node").FromString(new))
        if self._client.knows("NodeGroupTemplateNodeInfoResponse", "nodeInfo") and response.HasField("nodeInfo"):
            return _node(response.nodeInfo)
        raise AutoscalerCrashed("a template without a node")

    def options_request(self, group: str, defaults: Options) -> bytes:
        """GetOptions with everything in `defaults` that this generation knows; durations are sent even if zero."""
        message = self._client.NodeGroupAutoscalingOptions(
            scaleDownUtilizationThreshold=defaults.scale_down_utilization_threshold,
            scaleDownGpuUtilizationThreshold=defaults.scale_down_gpu_utilization_threshold,
        )
        for old, new, duration in zip(_OLD, _NEW, _durations(defaults), strict=True):
            nanoseconds = duration // timedelta(microseconds=1) * 1000
            if self._knows_option(old):
                getattr(message, old).duration = nanoseconds
            if self._knows_option(new):
                getattr(message, new).FromNanoseconds(nanoseconds)
        if self._knows_option("zeroOrMaxNodeScaling"):
            message.zeroOrMaxNodeScaling = defaults.zero_or_max_node_scaling
            message.ignoreDaemonSetsUtilization = defaults.ignore_daemon_sets_utilization
        return self.request("NodeGroupGetOptions", id=group, defaults=message)

    def options(self, response: Any) -> Options | None:
        """The options of an answer; None means the flags. There is no merging: what is not told is zero.

        The time to become ready is told by no generation.

        Raises:
            AutoscalerCrashed: a duration is missing where this generation does not look first.
        """
        if not response.HasField("nodeGroupAutoscalingOptions"):
            return None
        told = response.nodeGroupAutoscalingOptions
        unneeded, unready, provision = (self._duration(told, old, new) for old, new in zip(_OLD, _NEW, strict=True))
        has_switches = self._knows_option("zeroOrMaxNodeScaling")
        return Options(
            scale_down_utilization_threshold=told.scaleDownUtilizationThreshold,
            scale_down_gpu_utilization_threshold=told.scaleDownGpuUtilizationThreshold,
            scale_down_unneeded_time=unneeded,
            scale_down_unready_time=unready,
            max_node_provision_time=provision,
            max_node_startup_time=timedelta(),
            zero_or_max_node_scaling=has_switches and told.zeroOrMaxNodeScaling,
            ignore_daemon_sets_utilization=has_switches and told.ignoreDaemonSetsUtilization,
        )

    def _duration(self, told: Any, old: str, new: str) -> timedelta:
        if self._knows_option(new) and told.HasField(new):
            return timedelta(microseconds=getattr(told, new).ToMicroseconds())
        if not self._knows_option(old):
            return timedelta()
        if not told.HasField(old):
            raise AutoscalerCrashed(f"options without {old}")
        return timedelta(microseconds=getattr(told, old).duration // 1000)

    def _knows_option(self, field: str) -> bool:
        return self._client.knows("NodeGroupAutoscalingOptions", field)

    def node_price_request(self, node: Node, start: datetime, end: datetime) -> bytes:
        """PricingNodePrice with the times where this generation has them."""
        return self.request("PricingNodePrice", node=self.node(node), **self._period("PricingNodePrice", start, end))

    def pod_price_request(self, pod: Pod, start: datetime, end: datetime) -> bytes:
        """PricingPodPrice: the pod embedded, as bytes, or both, and the times likewise."""
        message = self._client.kubernetes("Pod")()
        message.metadata.name = pod.name
        container = message.spec.containers.add(name="main")
        for resource, amount in pod.requests.items():
            container.resources.requests[resource].string = str(amount)
        values = self._period("PricingPodPrice", start, end)
        if self._client.knows("PricingPodPriceRequest", "pod"):
            values["pod"] = message
        if self._client.knows("PricingPodPriceRequest", "pod_bytes"):
            values["pod_bytes"] = message.SerializeToString()
        return self.request("PricingPodPrice", **values)

    def _period(self, method: str, start: datetime, end: datetime) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name, at in (("start", start), ("end", end)):
            if self._client.knows(f"{method}Request", f"{name}Time"):
                values[f"{name}Time"] = {"seconds": int(at.timestamp()), "nanos": 0}
            if self._client.knows(f"{method}Request", f"{name}Timestamp"):
                nanos = at.microsecond * 1000
                values[f"{name}Timestamp"] = {"seconds": int(at.timestamp()), "nanos": nanos}
        return values


def _durations(options: Options) -> tuple[timedelta, timedelta, timedelta]:
    return options.scale_down_unneeded_time, options.scale_down_unready_time, options.max_node_provision_time


def _node(message: Any) -> Node:
    return Node(
        name=message.metadata.name,
        provider_id=message.spec.providerID,
        labels=dict(message.metadata.labels),
        annotations=dict(message.metadata.annotations),
        taints=_taints(message.spec.taints),
        capacity=_resources(message.status.capacity),
        allocatable=_resources(message.status.allocatable),
    )


def _taints(taints: Iterable[Any]) -> dict[str, str]:
    return {taint.key: taint.effect for taint in taints}


def _resources(quantities: Mapping[str, Any]) -> dict[str, Any]:
    return {resource: quantity(quantities[resource].string) for resource in quantities}
