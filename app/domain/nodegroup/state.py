"""A node group as the log tells it, and the fold that tells it."""

from dataclasses import dataclass, replace
from typing import assert_never

from app.domain.envelope import Recorded
from app.domain.nodegroup.events import (
    AnyNodeGroupEvent,
    NodeGroupConfigured,
    NodeGroupRetired,
    ScaleDownRequested,
    ScaleUpRejected,
    ScaleUpRequested,
    TargetSizeDecreased,
)
from app.domain.nodegroup.spec import NodeGroupSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeGroup:
    """A named set of identical nodes. Its target size is not here: it is the number of its live instances.

    `ordinal` is the log position of its first configuration, which orders the groups for good.
    """

    name: str
    spec: NodeGroupSpec
    ordinal: int
    retired: bool = False
    version: int = 0
    position: int = 0


def evolve(group: NodeGroup | None, recorded: Recorded[AnyNodeGroupEvent]) -> NodeGroup | None:
    """Fold one event of a stream `nodegroup-<name>`; None until the group was configured for the first time."""
    event = recorded.event
    match event:
        case NodeGroupConfigured():
            return NodeGroup(
                name=event.node_group,
                spec=event.spec,
                ordinal=group.ordinal if group else recorded.position,
                version=recorded.version,
                position=recorded.position,
            )
        case NodeGroupRetired():
            placed = group and replace(group, retired=True)
        case ScaleUpRequested() | ScaleUpRejected() | TargetSizeDecreased() | ScaleDownRequested():
            placed = group
        case _:
            assert_never(event)
    return placed and replace(placed, version=recorded.version, position=recorded.position)
