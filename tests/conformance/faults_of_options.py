"""Faults of options, GPUs and prices."""

import os
from collections.abc import Callable
from typing import Any

import grpc

from app.errors import InvalidRequest
from app.rpc import cloudprovider, generation, prices
from app.rpc.gen import externalgrpc_pb2 as pb

from .faults import change, fault
from .faulty import Handler, after, before, handler


def _options(alter: Callable[[Any, Any], Any]) -> Callable[[], None]:
    return handler("NodeGroupGetOptions", after(alter))


def _echo(request: Any, answer: Any) -> Any:
    if answer.HasField("nodeGroupAutoscalingOptions"):
        return answer
    return pb.NodeGroupAutoscalingOptionsResponse(nodeGroupAutoscalingOptions=request.defaults)


def _not_there(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        answer = old(self, request, context)
        if not answer.HasField("nodeGroupAutoscalingOptions"):
            context.set_code(grpc.StatusCode.UNIMPLEMENTED)
        return answer

    return new


def _in_seconds(_request: Any, answer: Any) -> Any:
    options = answer.nodeGroupAutoscalingOptions
    if answer.HasField("nodeGroupAutoscalingOptions"):
        for old in ("scaleDownUnneededTime", "scaleDownUnreadyTime", "MaxNodeProvisionTime"):
            getattr(options, old).duration //= 10**9
    return answer


def _without_new(_request: Any, answer: Any) -> Any:
    for new in ("scaleDownUnneededDuration", "scaleDownUnreadyDuration", "MaxNodeProvisionDuration"):
        if answer.HasField("nodeGroupAutoscalingOptions"):
            answer.nodeGroupAutoscalingOptions.ClearField(new)
    return answer


def _for_the_oldest(request: Any, answer: Any) -> Any:
    is_oldest = request.defaults.HasField("scaleDownUnreadyTime") and not request.defaults.HasField(
        "MaxNodeProvisionTime"
    )
    return _echo(request, answer) if is_oldest and request.id.startswith("tuned") else answer


def _for_everybody(old: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Every client is taken for one that can read everything."""
    return lambda defaults: generation.Generation.D if old(defaults) else None


def _forced(old: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    return lambda defaults, overrides: old(defaults, overrides.model_copy(update={"force_for_new_autoscalers": True}))


def _defaults_demanded(_self: Any, request: Any, _context: grpc.ServicerContext) -> None:
    if not request.HasField("defaults"):
        raise InvalidRequest("no defaults")


def _label(text: str) -> Callable[[], None]:
    return handler("GPULabel", after(lambda _request, _answer: pb.GPULabelResponse(label=text)))


def _own_provider_id(_self: Any, request: Any, _context: grpc.ServicerContext) -> None:
    if not request.node.providerID:
        raise InvalidRequest("a node without provider id has no price")


FAULTS = (
    fault("echoes-flags", "groups without options answer the client's flags", "61 62 64", _options(_echo)),
    fault(
        "options-not-there",
        "without options the method is unimplemented",
        "61",
        handler("NodeGroupGetOptions", _not_there),
    ),
    fault("nanoseconds-forgotten", "old durations are in seconds", "62", _options(_in_seconds)),
    fault("old-durations-only", "new durations are missing", "62 63", _options(_without_new)),
    fault("options-for-the-oldest", "the oldest clients get options", "62", _options(_for_the_oldest)),
    fault(
        "options-for-everybody",
        "every client gets options",
        "63",
        change(generation, "client_generation", _for_everybody),
    ),
    fault(
        "options-by-force",
        "the newest clients always get options",
        "63",
        change(cloudprovider, "encode_options", _forced),
    ),
    fault(
        "defaults-demanded",
        "a request for options needs defaults",
        "64",
        handler("NodeGroupGetOptions", before(_defaults_demanded)),
    ),
    fault("no-gpu-label", "the GPU label is empty", "65", _label("")),
    fault(
        "label-of-the-process",
        "the GPU label is another one in each process",
        "65",
        _label(f"verda.com/gpu-{os.getpid()}"),
    ),
    fault(
        "no-gpu-types",
        "there are no GPU types",
        "66",
        handler("GetAvailableGPUTypes", after(lambda *_: pb.GetAvailableGPUTypesResponse())),
    ),
    fault(
        "price-by-identity",
        "only nodes with a provider id have a price",
        "67",
        handler("PricingNodePrice", before(_own_provider_id)),
    ),
    fault(
        "price-of-an-hour",
        "the asked period does not matter",
        "67",
        change(prices, "requested_period", lambda _old: lambda _request: (None, None)),
    ),
    fault(
        "old-times-only",
        "the new times of a price request are not read",
        "67",
        change(generation, "_time", lambda old: lambda request, _new, name: old(request, name)),
    ),
    fault(
        "embedded-pods-only",
        "pods sent as bytes are not read",
        "67",
        change(prices, "requested_pod", lambda _old: lambda request: request.pod),
    ),
)
