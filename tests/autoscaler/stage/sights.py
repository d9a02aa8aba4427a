"""The same group seen from three sides, each in one line that a person can work out by hand."""

from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import NamedTuple

from app.domain.books import Books
from app.domain.instance.lifecycle import InstanceState
from app.simulator.exchange import group_of
from app.simulator.world import World
from tests.autoscaler.ca.loop import Autoscaler

NOTHING = "nothing"


class Sight(NamedTuple):
    """A group at one moment: what the autoscaler believes, what the provider's books say, what really exists.

    * `ca`: as the status of the autoscaler has it after its last loop: target, kinds of nodes and instances that are
      not zero, upcoming, and what it does about the group.
    * `books`: listed instances by state, in the order of a life.
    * `truth`: machines by the cloud's status word, in alphabetical order.
    """

    ca: str
    books: str
    truth: str


def believed(autoscaler: Autoscaler, group: str, now: datetime) -> str:
    """The autoscaler's view of a group."""
    registry = autoscaler.registry
    if group not in {one.id for one in autoscaler.provider.node_groups()}:
        return "no such group"
    readiness = registry.readiness(group)
    counts = {
        "ready": len(readiness.ready),
        "not started": len(readiness.not_started),
        "unready": len(readiness.unready),
        "being deleted": len(readiness.deleted),
        "unregistered": len(readiness.unregistered),
        "long unregistered": len(readiness.long_unregistered),
        "upcoming": registry.upcoming(group, now),
    }
    return ", ".join([f"target {registry.ranges[group].target}", *_counted(counts), _activity(autoscaler, group, now)])


def _activity(autoscaler: Autoscaler, group: str, now: datetime) -> str:
    registry = autoscaler.registry
    if registry.is_scaling_up(group):
        return "InProgress"
    if not registry.is_healthy(group):
        return "Unhealthy"
    return "NoActivity" if registry.backoff.reason(group, now) is None else "Backoff"


def booked(books: Books, group: str) -> str:
    """The provider's view of a group."""
    counts = Counter(instance.state for instance in books.members(group).listed)
    return ", ".join(_counted({state.value: counts[state] for state in InstanceState})) or NOTHING


def existing(world: World, group: str) -> str:
    """What there is of a group in the cloud, and is billed or may be."""
    alive = [item for item in world.state.instances.values() if item.ended_ms is None]
    counts = Counter(str(item.status) for item in alive if group_of(item.description) == group)
    return ", ".join(_counted({status: counts[status] for status in sorted(counts)})) or NOTHING


def _counted(counts: Mapping[str, int]) -> list[str]:
    return [f"{count} {kind}" for kind, count in counts.items() if count]
