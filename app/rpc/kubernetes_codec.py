"""Kubernetes objects as the bytes the protocol carries: a template node out, a pod in.

The bytes are the bare protobuf message, without the envelope that the API server puts around it.
"""

from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

from google.protobuf.message import DecodeError

from app.domain.quantity import format_bytes, format_quantity, parse_quantity
from app.domain.template import ARCH_LABEL, MEMORY, OS_LABEL, STORAGE, TemplateNode
from app.rpc.gen import kubernetes_pb2 as kube

_HUGE_PAGES: Final = "hugepages-"
_SIDECAR: Final = "Always"

_Requests = dict[str, Decimal]


def encode_node(node: TemplateNode) -> bytes:
    """A ready core/v1 Node; the same node always gives the same bytes.

    Raises:
        ValueError: a size is no quantity Kubernetes could hold.
    """
    message = kube.Node(
        metadata=kube.ObjectMeta(name=node.name, labels=node.labels),
        spec=kube.NodeSpec(
            taints=[kube.Taint(key=taint.key, value=taint.value, effect=taint.effect.value) for taint in node.taints]
        ),
        status=kube.NodeStatus(
            capacity=_quantities(node.capacity),
            allocatable=_quantities(node.allocatable),
            conditions=[kube.NodeCondition(type="Ready", status="True", reason="KubeletReady")],
            nodeInfo=kube.NodeSystemInfo(
                operatingSystem=node.labels.get(OS_LABEL, ""), architecture=node.labels.get(ARCH_LABEL, "")
            ),
        ),
    )
    return message.SerializeToString(deterministic=True)


def decode_pod_requests(data: bytes) -> dict[str, Decimal]:
    """What a core/v1 Pod requests, reckoned as the scheduler reckons it: cores, bytes, pieces.

    Containers and sidecars add up, since they run together. Each init container runs alone but for the sidecars started
    before it, so the largest of these moments is the least that is needed. Requests of the pod as a whole replace the
    sum for CPU, memory and huge pages. Overhead comes on top. Limits do not count: the API server has already copied
    them into requests that were left out.

    Raises:
        ValueError: the bytes are no pod, or one of its quantities is malformed.
    """
    try:
        spec = kube.Pod.FromString(data).spec
    except DecodeError as error:
        raise ValueError(f"not a serialized core/v1 Pod ({len(data)} bytes)") from error
    sidecars: _Requests = {}
    peak: _Requests = {}
    for container in spec.initContainers:
        own = _amounts(container.resources.requests)
        if container.restartPolicy == _SIDECAR:
            sidecars = _sum((sidecars, own))
            peak = _max(peak, sidecars)
        else:
            peak = _max(peak, _sum((sidecars, own)))
    together = _sum((sidecars, *(_amounts(container.resources.requests) for container in spec.containers)))
    requests = _max(together, peak)
    whole_pod = _amounts(spec.resources.requests)
    requests |= {resource: amount for resource, amount in whole_pod.items() if _is_pod_level(resource)}
    return _sum((requests, _amounts(spec.overhead)))


def _quantities(sizes: Mapping[str, Decimal]) -> dict[str, kube.Quantity]:
    return {resource: kube.Quantity(string=_text(resource, size)) for resource, size in sizes.items()}


def _text(resource: str, size: Decimal) -> str:
    in_bytes = resource in {MEMORY, STORAGE} or resource.startswith(_HUGE_PAGES)
    return format_bytes(size) if in_bytes else format_quantity(size)


def _amounts(quantities: Mapping[str, kube.Quantity]) -> _Requests:
    return {resource: parse_quantity(quantity.string or "0") for resource, quantity in quantities.items()}


def _is_pod_level(resource: str) -> bool:
    return resource in {"cpu", MEMORY} or resource.startswith(_HUGE_PAGES)


def _sum(parts: Iterable[_Requests]) -> _Requests:
    total: _Requests = {}
    for part in parts:
        for resource, amount in part.items():
            total[resource] = total.get(resource, Decimal(0)) + amount
    return total


def _max(first: _Requests, second: _Requests) -> _Requests:
    return {
        resource: max(first.get(resource, Decimal(0)), second.get(resource, Decimal(0))) for resource in first | second
    }
