"""Wishes concerning node groups; each may be refused."""

from dataclasses import dataclass, field
from decimal import Decimal

from app.domain.nodegroup.spec import NodeGroupSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplyConfiguration:
    """Make these the node groups; those not named are retired."""

    specs: tuple[NodeGroupSpec, ...]
    sha256: str
    cluster_name: str
    max_hourly_cost: Decimal | None = None
    balance_runway_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IncreaseSize:
    """`delta` more nodes under these freshly minted names, one for each."""

    node_group: str
    delta: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseNodeGroup:
    """Let the group grow no more until it is resumed; `operator` and `reason` are for those who wonder why."""

    node_group: str
    operator: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeNodeGroup:
    """Let the group grow again."""

    node_group: str
    operator: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainNodeGroup:
    """Pause the group and give all its instances back."""

    node_group: str
    operator: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DecreaseTargetSize:
    """Release up to `-delta` wishes for which no machine may exist; `delta` is negative, as in the protocol."""

    node_group: str
    delta: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeleteNodes:
    """Give these instances back. `unregistered`: those of them whose nodes the autoscaler never saw."""

    node_group: str
    instances: tuple[str, ...]
    unregistered: frozenset[str] = field(default_factory=frozenset)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordJoined:
    """Somebody saw the node of this instance."""

    instance: str
