"""Faults of what is said about instances and templates."""

import itertools
from collections.abc import Callable
from typing import Any

from app.domain.instance.lifecycle import InstanceState
from app.domain.template import GPU
from app.rpc import answers
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen import kubernetes_pb2 as kube

from .faults import change, fault
from .faulty import after, handler

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
)
