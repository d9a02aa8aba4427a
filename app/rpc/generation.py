"""What differs between the generations of the protocol that Cluster Autoscaler has spoken since 1.25.

A version number never reaches us, and would not help: 1.34.1 and 1.34.2 differ. What a client fills into its requests
shows what it knows. `proto/externalgrpc.proto` tells which field belongs to whom.
"""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from app.domain.nodegroup.spec import AutoscalingOptions
from app.rpc.gen import externalgrpc_pb2 as pb


class Generation(StrEnum):
    """Which messages a client knows. B and C send the same bytes."""

    A = "1.25-1.28"
    B_OR_C = "1.29-1.34.1"
    D = "1.34.2-1.34"
    E = "1.35+"


_KUBERNETES_DURATIONS: Final = ("scaleDownUnneededTime", "scaleDownUnreadyTime", "MaxNodeProvisionTime")
_PROTOBUF_DURATIONS: Final = ("scaleDownUnneededDuration", "scaleDownUnreadyDuration", "MaxNodeProvisionDuration")

_GENERATIONS: Final[Mapping[tuple[str, ...], Generation]] = {
    _KUBERNETES_DURATIONS[:2]: Generation.A,
    _KUBERNETES_DURATIONS: Generation.B_OR_C,
    _KUBERNETES_DURATIONS + _PROTOBUF_DURATIONS: Generation.D,
    _PROTOBUF_DURATIONS: Generation.E,
}
"""Every client sets all the durations it knows, also those that are zero; their presence is exact."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_NANOSECONDS: Final = 10**9
_LONGEST: Final = 2**63 - 1
"""Nanoseconds; Go's longest duration, 292 years."""


def client_generation(defaults: pb.NodeGroupAutoscalingOptions) -> Generation | None:
    """The generation of a client, by the options it sent as its defaults; None if no known client sends such."""
    present = tuple(name for name in _KUBERNETES_DURATIONS + _PROTOBUF_DURATIONS if defaults.HasField(name))
    return _GENERATIONS.get(present)


def encode_options(
    defaults: pb.NodeGroupAutoscalingOptions | None, overrides: AutoscalingOptions
) -> pb.NodeGroupAutoscalingOptions | None:
    """The options to answer with; None means to leave them out, which every client takes for "your own flags".

    A client that gets options forgets its flags, so the answer is a copy of its defaults, including fields unknown to
    us, with the overrides on top and each duration in both encodings. None where nothing is overridden, and where an
    answer could do harm (`why_withheld`).
    """
    if defaults is None or overrides.is_empty() or why_withheld(defaults, overrides):
        return None
    options = pb.NodeGroupAutoscalingOptions()
    options.CopyFrom(defaults)
    _overlay(options, overrides)
    durations = _durations(defaults, overrides)
    for old, new, nanoseconds in zip(_KUBERNETES_DURATIONS, _PROTOBUF_DURATIONS, durations, strict=True):
        getattr(options, old).duration = nanoseconds
        getattr(options, new).FromNanoseconds(nanoseconds)
    return options


def why_withheld(defaults: pb.NodeGroupAutoscalingOptions, overrides: AutoscalingOptions) -> str:
    """What a client with these defaults would make of a group's options that it must not get; empty if it may."""
    match client_generation(defaults):
        case None:
            return "the autoscaler is of no release we know"
        case Generation.A:
            return (
                f"Cluster Autoscaler {Generation.A} would take the provision time, which it cannot be told, for zero "
                "and delete every machine that boots: use its flags"
            )
        case Generation.E if not overrides.force_for_new_autoscalers:
            return (
                f"Cluster Autoscaler {Generation.E} would take the start-up time, which it cannot be told, for zero "
                "and buy a second node while the first gets ready: use its flags, or force_for_new_autoscalers"
            )
    if min(_durations(defaults, overrides)) <= 0:
        return "a duration of zero would delete nodes before they have booted: set all durations, here or by its flags"
    return ""


def template_response(node: bytes) -> pb.NodeGroupTemplateNodeInfoResponse:
    """A serialized node where every generation looks for it.

    Raises:
        ValueError: there are no bytes. The autoscaler would crash.
    """
    if not node:
        raise ValueError("an empty template node would crash the autoscaler")
    return pb.NodeGroupTemplateNodeInfoResponse(nodeInfo=node, nodeBytes=node)


def requested_pod(request: pb.PricingPodPriceRequest) -> bytes:
    """The serialized pod of a price request, from wherever the client's generation puts it; empty if it sent none."""
    return request.pod_bytes or request.pod


def requested_period(
    request: pb.PricingNodePriceRequest | pb.PricingPodPriceRequest,
) -> tuple[datetime | None, datetime | None]:
    """Start and end of a price request, None for one that is missing or Go's zero time."""
    return (
        _time(request, "startTimestamp", "startTime"),
        _time(request, "endTimestamp", "endTime"),
    )


def _time(request: pb.PricingNodePriceRequest | pb.PricingPodPriceRequest, *names: str) -> datetime | None:
    for name in names:
        if request.HasField(name):
            stamp: Timestamp = getattr(request, name)
            return _instant(stamp)
    return None


def _instant(stamp: Timestamp) -> datetime | None:
    if stamp.seconds <= 0:
        return None  # Go's zero time is the year 1, or an empty message
    try:
        return _EPOCH + timedelta(seconds=stamp.seconds, microseconds=stamp.nanos // 1000)
    except OverflowError:
        return None  # beyond the year 9999


def _durations(defaults: pb.NodeGroupAutoscalingOptions, overrides: AutoscalingOptions) -> tuple[int, ...]:
    """Unneeded, unready and provision time in nanoseconds: the override, else what the client sent."""
    wanted = (overrides.scale_down_unneeded_time, overrides.scale_down_unready_time, overrides.max_node_provision_time)
    return tuple(
        _sent(defaults, old, new) if override is None else _nanoseconds(override)
        for old, new, override in zip(_KUBERNETES_DURATIONS, _PROTOBUF_DURATIONS, wanted, strict=True)
    )


def _sent(defaults: pb.NodeGroupAutoscalingOptions, old: str, new: str) -> int:
    if defaults.HasField(new):
        duration: Duration = getattr(defaults, new)
        return duration.seconds * _NANOSECONDS + duration.nanos
    nanoseconds: int = getattr(defaults, old).duration
    return nanoseconds


def _nanoseconds(duration: timedelta) -> int:
    return min(_LONGEST, duration // timedelta(microseconds=1) * 1000)


def _overlay(options: pb.NodeGroupAutoscalingOptions, overrides: AutoscalingOptions) -> None:
    """Set what is overridden, durations aside."""
    if overrides.scale_down_utilization_threshold is not None:
        options.scaleDownUtilizationThreshold = overrides.scale_down_utilization_threshold
    if overrides.scale_down_gpu_utilization_threshold is not None:
        options.scaleDownGpuUtilizationThreshold = overrides.scale_down_gpu_utilization_threshold
    if overrides.zero_or_max_node_scaling is not None:
        options.zeroOrMaxNodeScaling = overrides.zero_or_max_node_scaling
    if overrides.ignore_daemon_sets_utilization is not None:
        options.ignoreDaemonSetsUtilization = overrides.ignore_daemon_sets_utilization
