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
    NEVER_JOINED = "never-joined"


class BreakerClosing(StrEnum):
    """Who let a group buy again whose machines never became nodes."""

    RECONFIGURED = "reconfigured"
    OPERATOR = "operator"


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


class NodeGroupClosed(NodeGroupEvent):
    """What the group orders cannot be had as it is configured. Nothing more is ordered for it until that changes."""

    type: ClassVar[str] = "nodegroup.closed"
    words: ClassVar[str] = "{node_group} orders nothing until its settings change or it is resumed ({code}): {message}"
    code: FailureCode
    message: str


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


class JoinFailed(NodeGroupEvent):
    """The autoscaler gives back a machine that ran and was never a node to it; `message` is what is known of it."""

    type: ClassVar[str] = "nodegroup.join-failed"
    words: ClassVar[str] = "{instance} ran for {ran_s} s and never became a node, {in_a_row} in a row: {message}"
    instance: str
    in_a_row: PositiveInt
    ran_s: NonNegativeInt
    wished_at: datetime
    message: str


class JoinSucceeded(NodeGroupEvent):
    """A machine ordered after the last failure became a node: the group buys freely again."""

    type: ClassVar[str] = "nodegroup.join-succeeded"
    words: ClassVar[str] = "{instance} became a node: machines of {node_group} join again"
    instance: str


class BreakerOpened(NodeGroupEvent):
    """So many machines in a row never became nodes that no more are bought, but for one now and then."""

    type: ClassVar[str] = "nodegroup.breaker-opened"
    words: ClassVar[str] = (
        "{node_group} buys no more: {in_a_row} machines in a row were never nodes; next try {probe_at}"
    )
    in_a_row: PositiveInt
    probe_at: datetime


class BreakerProbed(NodeGroupEvent):
    """One machine is bought to see whether it joins; if it does not, the next one may follow at `next_at`."""

    type: ClassVar[str] = "nodegroup.breaker-probed"
    words: ClassVar[str] = "{node_group} tries {instance}, try {probe}; the next not before {next_at}"
    instance: str
    probe: PositiveInt
    next_at: datetime


class BreakerClosed(NodeGroupEvent):
    """Somebody has changed something, so the group buys again."""

    type: ClassVar[str] = "nodegroup.breaker-closed"
    words: ClassVar[str] = "{node_group} buys again ({reason})"
    reason: BreakerClosing


AnyNodeGroupEvent = (
    NodeGroupConfigured
    | NodeGroupRetired
    | ScaleUpRequested
    | ScaleUpRejected
    | TargetSizeDecreased
    | ScaleDownRequested
    | OfferingRested
    | NodeGroupClosed
    | NodeGroupPaused
    | NodeGroupResumed
    | JoinFailed
    | JoinSucceeded
    | BreakerOpened
    | BreakerProbed
    | BreakerClosed
)
