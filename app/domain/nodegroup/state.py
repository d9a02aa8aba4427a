"""A node group as the log tells it, and the fold that tells it."""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import assert_never

from app.domain.envelope import Recorded
from app.domain.instance.events import FailureCode
from app.domain.nodegroup.events import (
    AnyNodeGroupEvent,
    BreakerClosed,
    BreakerOpened,
    BreakerProbed,
    JoinFailed,
    JoinSucceeded,
    NodeGroupClosed,
    NodeGroupConfigured,
    NodeGroupPaused,
    NodeGroupResumed,
    NodeGroupRetired,
    OfferingRested,
    ScaleDownRequested,
    ScaleUpRejected,
    ScaleUpRequested,
    TargetSizeDecreased,
)
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Offering
from app.domain.records import replace

FOR_EVER = datetime.max.replace(tzinfo=UTC)
"""Until when a closed group rests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """An offering that was refused; `position` is the refusal's place in the log, which later wishes come after."""

    offering: Offering
    code: FailureCode
    message: str
    until: datetime
    position: int


@dataclass(frozen=True, kw_only=True)
class Joining:
    """How a group's machines fare at becoming nodes: `failures` in a row, the newest wish of them at `wished_at`.

    `message` is what is known of the last one. While the breaker is open nothing is ordered but `probe`, the machine
    that is being tried; from `probe_at` on the next wish becomes it.
    """

    failures: int = 0
    wished_at: datetime | None = None
    message: str = ""
    opened_at: datetime | None = None
    probe_at: datetime | None = None
    probe: str | None = None
    probes: int = 0

    @property
    def is_open(self) -> bool:
        """The breaker keeps the group from buying."""
        return self.opened_at is not None


@dataclass(frozen=True, kw_only=True)  # without slots, so that a change copies it quickly
class NodeGroup:
    """A named set of identical nodes. Its target size is not here: it is the number of its live instances.

    `ordinal` is the log position of its first configuration, which orders the groups for good. `rests` has at most one
    entry for an offering, also when its time is over; new settings begin with none. A group that is closed rests with
    all its offerings for ever. `paused_at` says that an operator
    keeps it from growing, whatever the configuration says since; `pause_reason` is the operator's own.
    """

    name: str
    spec: NodeGroupSpec
    ordinal: int
    retired: bool = False
    rests: tuple[Rest, ...] = ()
    paused_at: datetime | None = None
    paused_by: str | None = None
    pause_reason: str | None = None
    joining: Joining = Joining()
    version: int = 0
    position: int = 0

    @property
    def closed(self) -> Rest | None:
        """Why nothing is ordered for the group at all; None if orders may be sent."""
        return next((rest for rest in self.rests if rest.until == FOR_EVER), None)


def evolve(group: NodeGroup | None, recorded: Recorded[AnyNodeGroupEvent]) -> NodeGroup | None:
    """Fold one event of a stream `nodegroup-<name>`; None until the group was configured for the first time."""
    event = recorded.event
    match event:
        case NodeGroupConfigured():
            return NodeGroup(
                name=event.node_group,
                spec=event.spec,
                ordinal=group.ordinal if group else recorded.position,
                paused_at=group.paused_at if group else None,
                paused_by=group.paused_by if group else None,
                pause_reason=group.pause_reason if group else None,
                version=recorded.version,
                position=recorded.position,
            )
        case NodeGroupRetired():
            placed = group and replace(group, retired=True)
        case OfferingRested():
            placed = group and replace(group, rests=_rested(group.rests, event, recorded.position))
        case NodeGroupClosed():
            placed = group and replace(group, rests=_closed(group.spec, event, recorded.position))
        case NodeGroupPaused():
            placed = group and replace(
                group, paused_at=recorded.recorded_at, paused_by=event.operator, pause_reason=event.reason
            )
        case NodeGroupResumed():
            placed = group and replace(group, rests=(), paused_at=None, paused_by=None, pause_reason=None)
        case ScaleUpRequested() | ScaleUpRejected() | TargetSizeDecreased() | ScaleDownRequested():
            placed = group
        case JoinFailed() | JoinSucceeded() | BreakerOpened() | BreakerProbed() | BreakerClosed():
            placed = group and replace(group, joining=_joining(group.joining, event, recorded.recorded_at))
        case _:
            assert_never(event)
    return placed and replace(placed, version=recorded.version, position=recorded.position)


def _rested(rests: tuple[Rest, ...], event: OfferingRested, position: int) -> tuple[Rest, ...]:
    offering = Offering(instance_type=event.instance_type, location=event.location, contract=event.contract)
    rest = Rest(offering=offering, code=event.code, message=event.message, until=event.until, position=position)
    return (*(known for known in rests if known.offering != offering), rest)


def _closed(spec: NodeGroupSpec, event: NodeGroupClosed, position: int) -> tuple[Rest, ...]:
    return tuple(
        Rest(offering=rung, code=event.code, message=event.message, until=FOR_EVER, position=position)
        for rung in spec.ladder()
    )


def _joining(
    joining: Joining,
    event: JoinFailed | JoinSucceeded | BreakerOpened | BreakerProbed | BreakerClosed,
    at: datetime,
) -> Joining:
    match event:
        case JoinFailed():
            wished_at = max(event.wished_at, joining.wished_at or event.wished_at)
            return replace(joining, failures=event.in_a_row, wished_at=wished_at, message=event.message)
        case BreakerOpened():
            return replace(joining, opened_at=at, probe_at=event.probe_at)
        case BreakerProbed():
            return replace(joining, probe=event.instance, probes=event.probe, probe_at=event.next_at)
        case JoinSucceeded() | BreakerClosed():
            return Joining()
