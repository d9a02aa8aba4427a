"""Faults of what is said about instances, templates, options, GPUs and prices."""

import itertools
import os
from collections.abc import Callable
from typing import Any

import grpc

from app.domain.instance.lifecycle import InstanceState
from app.domain.template import GPU
from app.errors import InvalidRequest
from app.rpc import answers, cloudprovider, generation, prices
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen import kubernetes_pb2 as kube

from .faults import change, fault
from .faulty import Handler, after, before, handler

Message = Callable[[Any], pb.Instance]


def _instances(alter: Callable[[Any, pb.Instance], None]) -> Callable[[], None]:
    """Every listed instance is altered."""

    def make(old: Message) -> Message:
        def new(instance: Any) -> pb.Instance:
            message = old(instance)
            alter(instance, message)
            return message

        return new

    return change(answers, "instance_message", make)


def _cloud_id(instance: Any, message: pb.Instance) -> None:
    if instance.instance_id is not None:
        message.id = f"verda://{instance.instance_id}"


def _failed_id(instance: Any, message: pb.Instance) -> None:
    if instance.state is InstanceState.FAILED:
        message.id += "-failed"


def _no_state(_instance: Any, message: pb.Instance) -> None:
    if message.status.instanceState == pb.InstanceStatus.instanceCreating:
        message.ClearField("status")


def _early(instance: Any, message: pb.Instance) -> None:
    if instance.state is InstanceState.PROVISIONING:
        message.status.instanceState = pb.InstanceStatus.instanceRunning


def _all_other(_instance: Any, message: pb.Instance) -> None:
    if message.status.HasField("errorInfo"):
        message.status.errorInfo.instanceErrorClass = 99


def _silent(_instance: Any, message: pb.Instance) -> None:
    message.status.ClearField("errorInfo")


def _talkative(_instance: Any, message: pb.Instance) -> None:
    if message.status.HasField("errorInfo"):
        message.status.errorInfo.errorMessage *= 20


def _errors_everywhere(instance: Any, message: pb.Instance) -> None:
    if instance.error_code:
        message.status.errorInfo.errorCode = instance.error_code


def _ok_is_a_code(_instance: Any, message: pb.Instance) -> None:
    if not message.status.errorInfo.errorCode:
        message.status.errorInfo.errorCode = "OK"


def _template(alter: Callable[[kube.Node], None]) -> Callable[[], None]:
    """Every template node is altered."""

    def make(old: Callable[[Any], bytes]) -> Callable[[Any], bytes]:
        def new(node: Any) -> bytes:
            message = kube.Node.FromString(old(node))
            alter(message)
            return message.SerializeToString(deterministic=True)

        return new

    return change(answers, "encode_node", make)


def _more_than_there_is(node: kube.Node) -> None:
    node.status.allocatable["memory"].string = "9999Gi"


def _gpu_label(node: kube.Node) -> None:
    if GPU not in node.status.capacity:
        node.metadata.labels["verda.com/gpu"] = "false"


def _own_labels_lost(node: kube.Node) -> None:
    for key in [key for key in node.metadata.labels if key.startswith("example.com/")]:
        del node.metadata.labels[key]


def _ever_new() -> None:
    numbers = itertools.count()

    def alter(_request: Any, answer: pb.NodeGroupTemplateNodeInfoResponse) -> pb.NodeGroupTemplateNodeInfoResponse:
        node = kube.Node.FromString(answer.nodeBytes)
        node.metadata.name += str(next(numbers))
        data = node.SerializeToString(deterministic=True)
        return pb.NodeGroupTemplateNodeInfoResponse(nodeInfo=data, nodeBytes=data)

    handler("NodeGroupTemplateNodeInfo", after(alter))()


def _field(number: int) -> Callable[[], None]:
    """Only one of the template's two fields is filled."""

    def alter(_request: Any, answer: pb.NodeGroupTemplateNodeInfoResponse) -> pb.NodeGroupTemplateNodeInfoResponse:
        fields = {"nodeInfo": answer.nodeInfo} if number == 1 else {"nodeBytes": answer.nodeBytes}
        return pb.NodeGroupTemplateNodeInfoResponse(**fields)

    return handler("NodeGroupTemplateNodeInfo", after(alter))


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
    fault("ids-of-the-cloud", "an instance's id is the cloud's once that is known", "35 37", _instances(_cloud_id)),
    fault(
        "spelling-ignored",
        "the spelling of real nodes is not learned",
        "35",
        change(CloudProvider, "_learn", lambda _old: lambda *_: None),
    ),
    fault("new-id-for-failures", "a failed creation gets another id", "37 39", _instances(_failed_id)),
    fault("no-state", "instances being created have no status", "24 36", _instances(_no_state)),
    fault("early-running", "machines being provisioned are running", "38", _instances(_early)),
    fault("all-errors-are-other", "no error is out-of-resources", "39", _instances(_all_other)),
    fault("silent-failures", "failed creations carry no error", "39", _instances(_silent)),
    fault("talkative-failures", "error messages are longer than 500 characters", "39", _instances(_talkative)),
    fault(
        "errors-everywhere",
        "instances being deleted carry the error of their creation",
        "40",
        _instances(_errors_everywhere),
    ),
    fault("ok-is-a-code", "healthy instances carry the error code OK", "40 41", _instances(_ok_is_a_code)),
    fault("old-field-only", "the template is in field 1 alone", "56", _field(1)),
    fault("new-field-only", "the template is in field 2 alone", "56", _field(2)),
    fault(
        "no-allocatable", "templates have no allocatable", "57", _template(lambda node: node.status.allocatable.clear())
    ),
    fault("promises-more", "templates promise more memory than there is", "57", _template(_more_than_there_is)),
    fault("gpu-label-for-all", "nodes without GPU carry the GPU label", "58", _template(_gpu_label)),
    fault("own-labels-lost", "the group's labels are not in the template", "58", _template(_own_labels_lost)),
    fault(
        "no-taints",
        "the group's taints are not in the template",
        "59",
        _template(lambda node: node.spec.ClearField("taints")),
    ),
    fault(
        "cordoned",
        "templates are unschedulable",
        "59",
        _template(lambda node: setattr(node.spec, "unschedulable", True)),
    ),
    fault("ever-new", "each answer has another template", "60", _ever_new),
    fault("echoes-flags", "groups without options answer the client's flags", "61 62 64", _options(_echo)),
    fault(
        "options-not-there",
        "without options the method is unimplemented",
        "61",
        handler("NodeGroupGetOptions", _not_there),
    ),
    fault("nanoseconds-forgotten", "old durations are in seconds", "62", _options(_in_seconds)),
    fault("old-durations-only", "new durations are missing", "62 63", _options(_without_new)),
    fault(
        "options-for-everybody",
        "every client gets options",
        "62 63",
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
