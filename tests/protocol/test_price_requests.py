"""Price requests: times in two places, pods in two places."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.generation import requested_period, requested_pod
from app.rpc.kubernetes_codec import decode_pod_requests

from .clients import Client

START = datetime(2026, 6, 1, 12, tzinfo=UTC)
END = datetime(2026, 6, 1, 13, tzinfo=UTC)
START_S = 1780315200
"""Seconds since 1970: 20605 days of 86400 seconds and twelve hours."""

GO_ZERO_TIME_S = -62135596800
"""The year 1, which Go's zero time becomes as a Timestamp."""


def timed(client: Client, message: Any, *, start: int, end: int) -> Any:
    """Fill in the period as this generation does: whole seconds with explicit zero nanos, or Timestamps, or both."""
    for name, seconds in (("startTime", start), ("endTime", end)):
        if client.knows(message.DESCRIPTOR.name, name):
            getattr(message, name).seconds = seconds
            getattr(message, name).nanos = 0
    for name, seconds in (("startTimestamp", start), ("endTimestamp", end)):
        if client.knows(message.DESCRIPTOR.name, name):
            getattr(message, name).seconds = seconds
    return message


def test_a_node_price_request_is_understood(client: Client) -> None:
    """F02, F30: the invented template node, without a provider id, and an hour."""
    node = client.ExternalGrpcNode(
        name="template-node-for-gpu-123", labels={"node.kubernetes.io/instance-type": "8H100.80S.176V"}
    )
    sent = timed(client, client.PricingNodePriceRequest(node=node), start=START_S, end=START_S + 3600)
    got = pb.PricingNodePriceRequest.FromString(sent.SerializeToString())
    assert got.node.labels["node.kubernetes.io/instance-type"] == "8H100.80S.176V"
    assert got.node.providerID == ""
    assert requested_period(got) == (START, END)


def test_a_pod_price_request_is_understood(client: Client) -> None:
    """The pod is embedded in field 1, or serialized in field 4, or both."""
    pod = client.kubernetes("Pod")()
    pod.metadata.name = "train-0"
    pod.status.phase = "Pending"
    container = pod.spec.containers.add(name="main", image="pytorch")
    container.resources.requests["nvidia.com/gpu"].string = "1"
    container.resources.requests["cpu"].string = "500m"
    sent = client.PricingPodPriceRequest()
    if client.knows("PricingPodPriceRequest", "pod"):
        sent.pod.CopyFrom(pod)
    if client.knows("PricingPodPriceRequest", "pod_bytes"):
        sent.pod_bytes = pod.SerializeToString()
    timed(client, sent, start=START_S, end=START_S + 3600)
    got = pb.PricingPodPriceRequest.FromString(sent.SerializeToString())
    assert decode_pod_requests(requested_pod(got)) == {"nvidia.com/gpu": 1, "cpu": Decimal("0.5")}
    assert requested_period(got) == (START, END)


@pytest.mark.parametrize("seconds", [GO_ZERO_TIME_S, 0, 10**18])
def test_times_that_make_no_sense_count_as_missing(seconds: int) -> None:
    """Go's zero time arrives as the year 1 or as an empty message; a time beyond year 9999 must not crash us."""
    request = pb.PricingNodePriceRequest()
    request.startTimestamp.seconds = seconds
    request.endTime.SetInParent()
    assert requested_period(request) == (None, None)


def test_a_request_without_times_has_no_period() -> None:
    """F02: what to assume then is the price's business."""
    assert requested_period(pb.PricingPodPriceRequest()) == (None, None)


def test_the_newer_field_wins_and_keeps_fractions() -> None:
    """The older one is rounded to seconds, or zero."""
    request = pb.PricingNodePriceRequest()
    request.startTime.seconds = START_S - 100
    request.startTimestamp.seconds = START_S
    request.startTimestamp.nanos = 250_000_000
    assert requested_period(request) == (START.replace(microsecond=250_000), None)


def test_a_request_without_a_pod_has_no_bytes() -> None:
    """The handler can tell it from a pod that requests nothing."""
    assert requested_pod(pb.PricingPodPriceRequest()) == b""
