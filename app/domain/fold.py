"""The one fold, of live updates, catch-up and rebuild: what an event makes of the aggregate that it belongs to."""

from typing import Protocol, TypeVar

from app.domain import cloud, service
from app.domain.cluster import state as cluster_state
from app.domain.envelope import CloudEvent, ClusterEvent, Event, InstanceEvent, NodeGroupEvent, Recorded, ServiceEvent
from app.domain.instance import fold as instance_fold
from app.domain.instance.state import Instance
from app.domain.nodegroup import state as group_state
from app.domain.nodegroup.state import NodeGroup

Aggregate = NodeGroup | Instance | cloud.CloudView | cluster_state.ClusterView | service.Installation

V_co = TypeVar("V_co", covariant=True)


class Lookup(Protocol[V_co]):
    """Aggregates by name."""

    def get(self, key: str, /) -> V_co | None:
        """The one of that name."""


class Known(Protocol):
    """What is known before the event."""

    @property
    def groups(self) -> Lookup[NodeGroup]:
        """By name."""

    @property
    def instances(self) -> Lookup[Instance]:
        """By name."""

    @property
    def cloud(self) -> cloud.CloudView:
        """The cloud as it was last seen."""

    @property
    def cluster(self) -> cluster_state.ClusterView:
        """What is known of the cluster's side."""

    @property
    def installation(self) -> service.Installation:
        """This installation of the program."""


def folded(known: Known, recorded: Recorded[Event]) -> Aggregate | None:
    """The aggregate that the event belongs to, after it; None if it makes none.

    Raises:
        TypeError: the event belongs to no stream that is folded.
    """
    event = recorded.event
    match event:
        case InstanceEvent():
            instance = known.instances.get(event.instance)
            if instance is None:
                return instance_fold.begin(recorded)  # type: ignore[arg-type] # streams begin that way
            return instance_fold.evolve(instance, recorded)  # type: ignore[arg-type] # narrowed by its event
        case NodeGroupEvent():
            return group_state.evolve(known.groups.get(event.node_group), recorded)  # type: ignore[arg-type] # likewise
        case CloudEvent():
            return cloud.evolve(known.cloud, recorded)  # type: ignore[arg-type] # likewise
        case ClusterEvent():
            return cluster_state.evolve(known.cluster, recorded)  # type: ignore[arg-type] # likewise
        case ServiceEvent():
            return service.evolve(known.installation, recorded)  # type: ignore[arg-type] # likewise
    raise TypeError(f"no fold for events of type {event.type}")
