"""The price RPCs: which machine a node would be, and what it costs."""

from decimal import Decimal

from app.domain.books import Books
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import Contract
from app.domain.pricing import PricedNode, hourly_price_of, hours_between, node_price, pod_price
from app.domain.template import CONTRACT_LABEL
from app.errors import InvalidRequest, NotFound
from app.rpc.answers import Answers
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.generation import requested_period, requested_pod
from app.rpc.kubernetes_codec import decode_pod_requests

_TYPE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
_TEMPLATE_NODE = "template-node-for-"


def price_of_node(request: pb.PricingNodePriceRequest, books: Books, answers: Answers) -> float:
    """Price of a node over the asked period, in the catalogue's currency.

    Raises:
        InvalidRequest: the request names no node.
        NotFound: neither its name, its provider id nor its labels tell what machine it is, or nobody knows its price.
    """
    if not request.HasField("node"):
        raise InvalidRequest("the request names no node")
    hourly = _hourly(request.node, books, answers)
    if hourly is None:
        raise NotFound(f"no price is known for node {request.node.name[:100]!r}")
    start, end = requested_period(request)
    return float(node_price(hourly, start, end))


def _hourly(node: pb.ExternalGrpcNode, books: Books, answers: Answers) -> Decimal | None:
    instance = books.find(node.providerID, node.name)
    if instance is not None and instance.node_group in books.groups:
        spec = books.groups[instance.node_group].spec
        known = spec.hourly_price or instance.price_per_hour
        if known is not None and known > 0:
            return known
        group = books.groups[instance.node_group]
        return _group_price(group, books, instance.contract or answers.next_contract(group))
    contract = _contract(node)
    template_group = _template_group(node.name, books)
    if template_group is not None:
        return _group_price(template_group, books, contract or answers.next_contract(template_group))
    return _type_price(node, books, contract)


def _contract(node: pb.ExternalGrpcNode) -> Contract | None:
    value = node.labels.get(CONTRACT_LABEL, "")
    return Contract(value) if value in set(Contract) else None


def _template_group(name: str, books: Books) -> NodeGroup | None:
    """The group of a template node, named `template-node-for-<group>-<random>` by the autoscaler."""
    if not name.startswith(_TEMPLATE_NODE):
        return None
    group, _, _ = name.removeprefix(_TEMPLATE_NODE).rpartition("-")
    return books.groups[group] if group in books.served_names else None


def _group_price(group: NodeGroup, books: Books, contract: Contract) -> Decimal | None:
    kind = books.cloud.catalogue.get(group.spec.instance_type)
    return None if kind is None else hourly_price_of(group.spec, kind, contract)


def _type_price(node: pb.ExternalGrpcNode, books: Books, contract: Contract | None) -> Decimal | None:
    for label in _TYPE_LABELS:
        kind = books.cloud.catalogue.get(node.labels.get(label, ""))
        if kind is not None:
            price = kind.price(contract or Contract.ON_DEMAND)
            return price if price is not None and price > 0 else None
    return None


def price_of_pod(request: pb.PricingPodPriceRequest, books: Books, answers: Answers) -> float:
    """The least that a pod costs over the asked period on a node of any served group.

    Raises:
        InvalidRequest: the bytes are no pod.
        NotFound: no group has a price.
    """
    try:
        requests = decode_pod_requests(requested_pod(request))
    except ValueError as error:
        raise InvalidRequest(str(error)) from error
    nodes = []
    for group in books.served_groups:
        hourly = _group_price(group, books, answers.next_contract(group))
        if hourly is not None:
            nodes.append(PricedNode(allocatable=answers.template(group, books).allocatable, hourly=hourly))
    price = pod_price(requests, nodes, hours_between(*requested_period(request)))
    if price is None:
        raise NotFound("no node group has a price")
    return float(price)
