"""Answers that are costly to build and change seldom, kept until what they are made of changes."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from google.protobuf.message import Message

from app.clock import Clock
from app.domain.books import Books, Members
from app.domain.cluster.learning import corrected, kind_of
from app.domain.gpu import gpu_type
from app.domain.instance.ladder import likely_rung
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import Contract
from app.domain.template import TemplateNode, build_template, gpu_count, gpu_label_of
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.generation import template_response
from app.rpc.kubernetes_codec import encode_node
from app.rpc.mapping import instance_message, node_group_message

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Wire:
    """An answer in the form in which it goes over the wire. The edge sends it as it is."""

    data: bytes


class Kept(Generic[V]):
    """One value a group, made again when what it is made of are other objects than last time."""

    def __init__(self) -> None:
        self._kept: dict[str, tuple[tuple[object, ...], V]] = {}
        self._lock = threading.Lock()

    def get(self, group: str, sources: tuple[object, ...], make: Callable[[], V]) -> V:
        """The value made from `sources`; equal work may be done twice at once, never wrongly."""
        with self._lock:
            known = self._kept.get(group)
        if known is not None and _are_the_same(sources, known[0]):
            return known[1]
        value = make()
        with self._lock:
            self._kept[group] = (sources, value)
        return value

    def __len__(self) -> int:
        """How many values are kept."""
        return len(self._kept)


def _are_the_same(now: tuple[object, ...], then: tuple[object, ...]) -> bool:
    return len(now) == len(then) and all(one is other for one, other in zip(now, then, strict=True))


class Answers:
    """Prepared answers per node group."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._all_groups: Kept[Wire] = Kept()
        self._groups: Kept[Wire] = Kept()
        self._nodes: Kept[Wire] = Kept()
        self._templates: Kept[TemplateNode] = Kept()
        self._template_responses: Kept[Wire] = Kept()

    @property
    def kept(self) -> int:
        """How many answers are kept."""
        kinds = (self._all_groups, self._groups, self._nodes, self._templates, self._template_responses)
        return sum(len(kind) for kind in kinds)

    def groups(self, books: Books) -> Wire:
        """Every served group; a `NodeGroupsResponse`."""
        served = books.served_groups
        return self._all_groups.get(
            "",
            (*served, *(books.members(group.name) for group in served)),
            lambda: _wire(pb.NodeGroupsResponse(nodeGroups=[node_group_message(group, books) for group in served])),
        )

    def group(self, name: str, books: Books) -> Wire:
        """One group; a `NodeGroupForNodeResponse`."""
        group = books.groups[name]
        return self._groups.get(
            name,
            (group, books.members(name)),
            lambda: _wire(pb.NodeGroupForNodeResponse(nodeGroup=node_group_message(group, books))),
        )

    def nodes(self, group: str, members: Members) -> Wire:
        """Every listed instance of a group, oldest first; a `NodeGroupNodesResponse`."""
        return self._nodes.get(
            group,
            (members,),
            lambda: _wire(pb.NodeGroupNodesResponse(instances=[instance_message(item) for item in members.listed])),
        )

    def template(self, group: NodeGroup, books: Books) -> TemplateNode:
        """The node that the group's next machine would become, as it is computed; prices are made of this."""
        kind = books.cloud.catalogue[group.spec.instance_type]
        contract, location = self._next_market(group)
        return self._templates.get(
            group.name,
            (group.spec, kind, contract, location),
            lambda: build_template(group.spec, kind, contract, location),
        )

    def template_response(self, group: NodeGroup, books: Books) -> Wire:
        """The template, corrected by what real nodes have, where every generation of the protocol looks for it.

        A `NodeGroupTemplateNodeInfoResponse`.
        """
        template = self.template(group, books)
        learned = books.cluster.learned.get(kind_of(group.spec))
        figures = learned.figures if learned is not None else None
        return self._template_responses.get(
            group.name,
            (template, figures),
            lambda: _wire(template_response(encode_node(corrected(template, figures, group.spec)))),
        )

    def next_contract(self, group: NodeGroup) -> Contract:
        """The contract that the group's next machine is ordered under if nothing refuses it."""
        return self._next_market(group)[0]

    def _next_market(self, group: NodeGroup) -> tuple[Contract, str]:
        rung = likely_rung(group, self._clock.now())
        return rung.contract, rung.location


def _wire(answer: Message) -> Wire:
    return Wire(answer.SerializeToString())


def available_gpu_types(books: Books) -> pb.GetAvailableGPUTypesResponse:
    """Every value the GPU label can have: the autoscaler asks once and keeps the answer for its life.

    All types of the catalogue, also those no group has yet, and what groups call theirs.
    """
    response = pb.GetAvailableGPUTypesResponse()
    catalogue = books.cloud.catalogue
    names = {name for kind in catalogue.values() if (name := gpu_type(kind))}
    for group in books.served_groups:
        kind = catalogue[group.spec.instance_type]
        if gpu_count(group.spec, kind):
            names.add(gpu_label_of(group.spec, kind))
    for name in sorted(names):
        response.gpuTypes.get_or_create(name)
    return response
