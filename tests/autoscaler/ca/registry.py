"""What the autoscaler believes about the cluster: sizes, open requests, failures. The real one: clusterstate."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from .backoff import Backoff
from .client import Instance, NodeGroup, Provider
from .flags import Flags
from .instances import InstancesCache
from .journal import Journal
from .objects import Node
from .readiness import Readiness, Sorted, Sorter
from .releases import Change
from .wire import RpcFailed

SCALE_DOWN_TAKES_AT_MOST: Final = timedelta(minutes=5)
TIMEOUT: Final = "timeout"


@dataclass(slots=True, kw_only=True)
class ScaleUp:
    """An open request for more nodes of a group."""

    increase: int
    at: datetime
    expected_by: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Range:
    """How many ready nodes a group may have without anything being wrong."""

    at_least: int
    target: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongSize:
    """Registered nodes and target do not agree, since when."""

    registered: int
    target: int
    since: datetime


class Registry:
    """Updated once a loop from nodes, target sizes and instances."""

    def __init__(self, provider: Provider, flags: Flags, journal: Journal) -> None:
        self.provider = provider
        self.flags = flags
        self.journal = journal
        self.backoff = Backoff(flags)
        self.cache = InstancesCache(provider)
        self.sorter = Sorter(provider, flags.defaults)
        self.sorted = Sorted(groups={}, total=Readiness())
        self.scale_ups: dict[str, ScaleUp] = {}
        self.ranges: dict[str, Range] = {}
        self.wrong_sizes: dict[str, WrongSize] = {}
        self.unregistered: dict[str, datetime] = {}
        self.instances: Mapping[str, Sequence[Instance]] = {}
        self._scale_downs: list[tuple[str, datetime]] = []
        self._nodes = 0

    def update(self, nodes: Sequence[Node], now: datetime) -> None:
        """Believe what is now. Raises: RpcFailed; then everything stays as it was believed before."""
        targets = self._targets()
        for group in self.provider.node_groups():
            if self.is_scaling_up(group.id):
                self.cache.forget(group.id)
        instances = self.cache.lists(self.provider.node_groups())
        before, self.instances = self.instances, instances
        self._nodes = len(nodes)
        self._update_unregistered(nodes, now)
        self.sorted = self.sorter.sort(nodes, self.unregistered, now)
        self._update_ranges(targets)
        self._update_requests(now)
        for group in self.provider.node_groups():
            self._notice_failures(group, before.get(group.id, ()), now)
        self._update_ranges(targets)
        self._update_wrong_sizes(now)

    def recalculate(self) -> None:
        """Ask for the target sizes anew; after an error they are all taken for zero."""
        try:
            targets = self._targets()
        except RpcFailed:
            targets = {}
        self._update_ranges(targets)

    def register_scale_up(self, group: NodeGroup, delta: int, now: datetime) -> None:
        """More are on their way (or fewer, by a negative delta). Without options nothing is noted at all."""
        limit = self.sorter.provision_time(group)
        if limit is None:
            return
        known = self.scale_ups.get(group.id)
        if known is None:
            if delta > 0:
                self.scale_ups[group.id] = ScaleUp(increase=delta, at=now, expected_by=now + limit)
        elif known.increase + delta <= 0:
            del self.scale_ups[group.id]
        else:
            known.increase += delta
            if delta > 0:
                known.at, known.expected_by = now, now + limit

    def register_scale_down(self, group: str, now: datetime) -> None:
        """The deletion of a node was accepted."""
        self._scale_downs.append((group, now + SCALE_DOWN_TAKES_AT_MOST))

    def readiness(self, group: str) -> Readiness:
        """The kinds of a group's nodes and instances."""
        return self.sorted.groups.get(group, Readiness())

    def upcoming(self, group: str, now: datetime) -> int:
        """How many nodes are believed to be on their way, for which placeholders are put into the simulation."""
        count = self._upcoming(group)
        if count > 0 and self.provider.release.has(Change.UPCOMING_NEEDS_A_REQUEST):
            is_expected = group in self.scale_ups and self.backoff.reason(group, now) is None
            return count if is_expected else 0
        return max(count, 0)

    def is_scaling_up(self, group: str) -> bool:
        """There is an open request, and something has not arrived."""
        return group in self.scale_ups and self._awaits(group)

    def is_healthy(self, group: str) -> bool:
        """The group is not short of ready nodes by more than a few and by more than a share."""
        limits, readiness = self.ranges.get(group), self.sorted.groups.get(group)
        if limits is None:
            return False
        if readiness is None:
            return limits.target == 0 or limits.at_least == 0
        missing = max(limits.at_least - len(readiness.ready), 0)
        known = len(readiness.ready) + len(readiness.unready) + len(readiness.not_started)
        return self._is_tolerable(missing, known)

    def is_cluster_healthy(self) -> bool:
        """Not too many nodes of the whole cluster are unready, also those of no group."""
        return self._is_tolerable(len(self.sorted.total.unready), self._nodes)

    def _is_tolerable(self, broken: int, of: int) -> bool:
        share = self.flags.max_total_unready_percentage / 100 * of
        return broken <= self.flags.ok_total_unready_count or broken <= share

    def _targets(self) -> dict[str, int]:
        return {group.id: group.target_size() for group in self.provider.node_groups()}

    def _update_unregistered(self, nodes: Sequence[Node], now: datetime) -> None:
        """Only ids are compared, byte for byte. An instance keeps the time since which it is unregistered."""
        registered = {node.provider_id for node in nodes}
        is_picky = self.provider.release.has(Change.EXPECTS_ONLY_SOUND_INSTANCES)
        self.unregistered = {
            instance.id: self.unregistered.get(instance.id, now)
            for instances in self.instances.values()
            for instance in instances
            if instance.id not in registered and (instance.is_expected_to_register or not is_picky)
        }

    def _update_ranges(self, targets: Mapping[str, int]) -> None:
        self.ranges = {}
        for group in self.provider.node_groups():
            target = targets.get(group.id, 0)
            at_least = target - len(self.readiness(group.id).long_unregistered)
            self.ranges[group.id] = Range(at_least=at_least, target=target)
        for name, request in self.scale_ups.items():
            limits = self.ranges.get(name, Range(at_least=0, target=0))
            self.ranges[name] = Range(at_least=limits.at_least - request.increase, target=limits.target)

    def _upcoming(self, group: str) -> int:
        limits, readiness = self.ranges.get(group), self.readiness(group)
        here = len(readiness.ready) + len(readiness.unready) + len(readiness.long_unregistered)
        return 0 if limits is None else limits.target - here

    def _awaits(self, group: str) -> bool:
        """Something is missing. Up to 1.35 every registered node counts as arrived, also one on its way out."""
        limits, readiness = self.ranges.get(group), self.readiness(group)
        if limits is None:
            return False
        if self.provider.release.has(Change.FINISHED_MEANS_NOTHING_UPCOMING):
            return self._upcoming(group) > 0
        return limits.target > len(readiness.registered) - len(readiness.not_started)

    def _update_requests(self, now: datetime) -> None:
        self.backoff.forget_old(now)
        for name, request in list(self.scale_ups.items()):
            if not self._awaits(name):
                del self.scale_ups[name]
                if not self.provider.release.has(Change.REMEMBERS_BACKOFF):
                    self.backoff.clear(name)
            elif request.expected_by < now:
                self._time_out(name, request, now)
                del self.scale_ups[name]
        self._scale_downs = [(name, expected_by) for name, expected_by in self._scale_downs if expected_by > now]

    def _time_out(self, name: str, request: ScaleUp, now: datetime) -> None:
        self.journal.note(f"ScaleUpTimedOut {name}")
        self.backoff.begin(name, TIMEOUT, now)
        group = next((one for one in self.provider.node_groups() if one.id == name), None)
        if group is None or not self.provider.release.has(Change.REVERTS_TIMED_OUT):
            return
        try:
            group.decrease_target_size(-request.increase)
        except RpcFailed as error:
            self.journal.note(f"FailedToRevertScaleUp {name} {error.code}")

    def _notice_failures(self, group: NodeGroup, before: Sequence[Instance], now: datetime) -> None:
        """New failures shorten the open request and let the group rest at once; without a request nothing happens."""
        known = {instance.id for instance in before if instance.failed_to_be_created}
        new: dict[str, list[str]] = {}
        for instance in self.instances.get(group.id, ()):
            if instance.failed_to_be_created and instance.error is not None and instance.id not in known:
                new.setdefault(instance.error.code, []).append(instance.id)
        for code, ids in new.items():
            if self.is_scaling_up(group.id):
                self.journal.note(f"ScaleUpFailed {group.id} {code} {len(ids)}")
                self.register_scale_up(group, -len(ids), now)
                self.backoff.begin(group.id, code, now)

    def _update_wrong_sizes(self, now: datetime) -> None:
        wrong: dict[str, WrongSize] = {}
        for group in self.provider.node_groups():
            limits, readiness = self.ranges[group.id], self.sorted.groups.get(group.id)
            if readiness is None or not self._is_wrong(group.id, limits, readiness):
                continue
            size = WrongSize(registered=len(readiness.registered), target=limits.target, since=now)
            known = self.wrong_sizes.get(group.id)
            is_same = known is not None and (known.registered, known.target) == (size.registered, size.target)
            wrong[group.id] = known if known is not None and is_same else size
        self.wrong_sizes = wrong

    def _is_wrong(self, group: str, limits: Range, readiness: Readiness) -> bool:
        registered = len(readiness.registered)
        if not self.provider.release.has(Change.FORGIVES_YOUNG_UNREGISTERED):
            going = sum(1 for name, _ in self._scale_downs if name == group)
            return not limits.at_least <= registered <= limits.target + going
        unregistered = len(readiness.unregistered) + len(readiness.long_unregistered)
        return not limits.target - unregistered <= registered <= limits.target
