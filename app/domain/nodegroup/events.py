"""Facts about node groups."""

from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from pydantic import NonNegativeInt, PositiveInt

from app.domain.envelope import NodeGroupEvent
from app.domain.instance.events import FailureCode
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract


class Rejection(StrEnum):
    """Why a scale-up was refused."""

    MAX_SIZE = "max-size"
    RETIRED = "retired"
    BUDGET = "budget"
    BALANCE = "balance"
    PAUSED = "paused"


class NodeGroupConfigured(NodeGroupEvent):
    """The operator's configuration named this group, for the first time or with other settings."""

    type: ClassVar[str] = "nodegroup.configured"
    words: ClassVar[str] = "node group {node_group} configured: {min_size} to {max_size} x {instance_type}"
    min_size: NonNegativeInt
    max_size: NonNegativeInt
    instance_type: str
    spec: NodeGroupSpec


class NodeGroupRetired(NodeGroupEvent):
    """The group left the configuration; it is served until its last instance is gone."""

    type: ClassVar[str] = "nodegroup.retired"
    words: ClassVar[str] = "node group {node_group} left the configuration with {instances} instances"
    instances: NonNegativeInt


class ScaleUpRequested(NodeGroupEvent):
    """Accepted a request for `delta` more nodes; the cloud has not been called yet."""

    type: ClassVar[str] = "nodegroup.scale-up-requested"
    words: ClassVar[str] = "{delta} more wanted in {node_group}: target size {new_target}"
    delta: PositiveInt
    new_target: PositiveInt
    instances: tuple[str, ...]


class ScaleUpRejected(NodeGroupEvent):
    """Refused a request for more nodes; nothing else changed."""

    type: ClassVar[str] = "nodegroup.scale-up-rejected"
    words: ClassVar[str] = "{delta} more wanted in {node_group} and refused: {message}"
    delta: PositiveInt
    target_size: NonNegativeInt
    reason: Rejection
    message: str


class TargetSizeDecreased(NodeGroupEvent):
    """Released wishes for which no machine exists; `delta` is how many the caller asked to release."""

    type: ClassVar[str] = "nodegroup.target-size-decreased"
    words: ClassVar[str] = "{node_group}: {delta} wishes to be released, target size now {new_target}"
    delta: PositiveInt
    new_target: NonNegativeInt
    instances: tuple[str, ...]


class ScaleDownRequested(NodeGroupEvent):
    """Accepted the deletion of these instances."""

    type: ClassVar[str] = "nodegroup.scale-down-requested"
    words: ClassVar[str] = "{node_group} gives back {count} instances: target size {new_target}"
    count: PositiveInt
    new_target: NonNegativeInt
    instances: tuple[str, ...]


class OfferingRested(NodeGroupEvent):
    """An offering of the group's ladder was refused for want of stock or quota: others are tried first until then."""

    type: ClassVar[str] = "nodegroup.offering-rested"
    words: ClassVar[str] = "{node_group}: {instance_type} {contract} in {location} rests until {until} ({code})"
    instance_type: str
    location: str
    contract: Contract
    code: FailureCode
    message: str
    until: datetime


class NodeGroupPaused(NodeGroupEvent):
    """An operator stopped the group's growth. What was granted goes on, and it may shrink."""

    type: ClassVar[str] = "nodegroup.paused"
    words: ClassVar[str] = "{node_group} paused by {operator}: {reason}"
    operator: str
    reason: str


class NodeGroupResumed(NodeGroupEvent):
    """An operator lets the group grow again."""

    type: ClassVar[str] = "nodegroup.resumed"
    words: ClassVar[str] = "{node_group} resumed by {operator}: {reason}"
    operator: str
    reason: str


AnyNodeGroupEvent = (
    NodeGroupConfigured
    | NodeGroupRetired
    | ScaleUpRequested
    | ScaleUpRejected
    | TargetSizeDecreased
    | ScaleDownRequested
    | OfferingRested
    | NodeGroupPaused
    | NodeGroupResumed
)
