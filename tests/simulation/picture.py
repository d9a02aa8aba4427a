"""What the autoscaler sees at one moment, over the wire."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import grpc

from app.rpc.gen import externalgrpc_pb2 as pb
from tests.simulation.rpc import Refused

Look = Callable[[str, Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenGroup:
    """One listed node group."""

    name: str
    smallest: int
    largest: int
    target: int
    nodes: Sequence[pb.Instance]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """All listed node groups, and reads that were refused."""

    groups: Sequence[SeenGroup] = ()
    refusals: Sequence[str] = ()


def take_picture(look: Look) -> Picture:
    """Ask for everything that the autoscaler asks for in its loop."""
    try:
        listed = look("NodeGroups", pb.NodeGroupsRequest()).nodeGroups
    except Refused as refused:
        return Picture(refusals=(str(refused),))
    groups: list[SeenGroup] = []
    refusals: list[str] = []
    for group in listed:
        try:
            groups.append(_seen(look, group))
        except Refused as refused:
            refusals.append(f"{group.id}: {refused}")
    return Picture(groups=groups, refusals=refusals)


def _seen(look: Look, group: pb.NodeGroup) -> SeenGroup:
    template = look("NodeGroupTemplateNodeInfo", pb.NodeGroupTemplateNodeInfoRequest(id=group.id))
    if not template.nodeBytes or template.nodeInfo != template.nodeBytes:
        raise Refused(grpc.StatusCode.OK, "an empty template")
    return SeenGroup(
        name=group.id,
        smallest=group.minSize,
        largest=group.maxSize,
        target=look("NodeGroupTargetSize", pb.NodeGroupTargetSizeRequest(id=group.id)).targetSize,
        nodes=list(look("NodeGroupNodes", pb.NodeGroupNodesRequest(id=group.id)).instances),
    )
