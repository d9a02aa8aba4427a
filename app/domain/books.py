"""The books: everything the log says, folded into one immutable value.

One fold serves live updates, catch-up at start and rebuild, so they cannot disagree. The books are persistent maps: a
new version shares all but the changed paths with the old one. So folding an event costs the same with ten instances and
with ten thousand, readers keep the version they took, and a commit that fails leaves nothing to undo.
"""

from __future__ import annotations  # HashTrieMap cannot be subscripted at run time

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, reduce

from rpds import HashTrieMap

from app.domain import cloud, service
from app.domain.cluster import state as cluster_state
from app.domain.envelope import Event, Recorded
from app.domain.fold import folded
from app.domain.ids import ProviderIdTemplate, node_key, own_machine
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.domain.records import replace


@dataclass(frozen=True, kw_only=True)
class Members:
    """The instances of one group that are listed: `live` counts in the target size, `deleting` does not."""

    live: HashTrieMap[str, Instance] = field(default_factory=HashTrieMap)
    deleting: HashTrieMap[str, Instance] = field(default_factory=HashTrieMap)

    @property
    def target_size(self) -> int:
        """How many nodes the group should have."""
        return len(self.live)

    @property
    def is_empty(self) -> bool:
        """Nothing left to list."""
        return not self.live and not self.deleting

    @cached_property
    def listed(self) -> tuple[Instance, ...]:
        """Every listed instance, oldest wish first. Sorted once per version of the group."""
        return tuple(sorted((*self.live.values(), *self.deleting.values()), key=lambda instance: instance.ordinal))

    def with_instance(self, instance: Instance) -> Members:
        """The same with this instance in its right place, or nowhere once it has ended."""
        name = instance.name
        if instance.state.is_live:
            return Members(live=self.live.insert(name, instance), deleting=self.deleting.discard(name))
        live = self.live.discard(name)
        if instance.state.is_ended:
            return Members(live=live, deleting=self.deleting.discard(name))
        return Members(live=live, deleting=self.deleting.insert(name, instance))


_NOBODY = Members()


@dataclass(frozen=True, kw_only=True)
class Books:
    """All aggregates at one position of the log, with the indexes that answers need.

    `instances` holds every instance that is not ended and those that ended recently; older ones are in the store alone.
    """

    position: int = 0
    groups: HashTrieMap[str, NodeGroup] = field(default_factory=HashTrieMap)
    instances: HashTrieMap[str, Instance] = field(default_factory=HashTrieMap)
    members_by_group: HashTrieMap[str, Members] = field(default_factory=HashTrieMap)
    names_by_id: HashTrieMap[str, str] = field(default_factory=HashTrieMap)
    group_order: tuple[str, ...] = ()
    cloud: cloud.CloudView = field(default_factory=cloud.CloudView)
    cluster: cluster_state.ClusterView = field(default_factory=cluster_state.ClusterView)
    installation: service.Installation = field(default_factory=service.Installation)

    def members(self, node_group: str) -> Members:
        """The listed instances of a group, empty for unknown groups."""
        return self.members_by_group.get(node_group, _NOBODY)

    def target_size(self, node_group: str) -> int:
        """Number of the group's instances that are not deleting, gone, lost or cancelled."""
        return self.members(node_group).target_size

    @cached_property
    def served_groups(self) -> tuple[NodeGroup, ...]:
        """The groups that exist for the autoscaler, in the order they were first configured.

        A group whose instance type the catalogue has never had is left out, since its template could not be answered; a
        retired group is served until its last instance is gone.
        """
        return tuple(
            group
            for name in self.group_order
            if (group := self.groups[name]).spec.instance_type in self.cloud.catalogue
            and not (group.retired and self.members(name).is_empty)
        )

    @cached_property
    def served_names(self) -> frozenset[str]:
        """Names of the served groups."""
        return frozenset(group.name for group in self.served_groups)

    def size_limits(self, group: NodeGroup) -> tuple[int, int]:
        """Minimum and maximum size as told to the autoscaler: a retired or paused group may only shrink.

        It would back off from a group that refuses; of one that is at its maximum it thinks nothing.
        """
        if group.retired:
            return 0, self.target_size(group.name)
        if group.paused_at is not None:
            target = self.target_size(group.name)
            return min(group.spec.min_size, target), target
        return group.spec.min_size, group.spec.max_size

    def listed_instances(self) -> Iterator[Instance]:
        """Every listed instance of every group."""
        for members in self.members_by_group.values():
            yield from members.live.values()
            yield from members.deleting.values()

    @cached_property
    def provider_id_templates(self) -> frozenset[ProviderIdTemplate]:
        """The forms of provider ids that the groups use; almost always one."""
        return frozenset(ProviderIdTemplate(group.spec.provider_id_template) for group in self.groups.values())

    def node_key(self, provider_id: str, node_name: str) -> str | None:
        """The name or instance id that a Kubernetes node claims, read as the groups spell it, else as we usually do."""
        own = self._own_machine(provider_id)
        if own is not None:
            return own
        keys = (template.key(provider_id or node_name) for template in self.provider_id_templates)
        return next(filter(None, keys), None) or node_key(provider_id, node_name)

    def _own_machine(self, provider_id: str) -> str | None:
        """The instance that has a machine of our own, `webhook://<group>/<machine>`: each machine serves many."""
        named = own_machine(provider_id)
        if named is None:
            return None
        node_group, machine = named
        group = self.groups.get(node_group)
        if group is None or group.spec.kind != "webhook":
            return None
        having = (one for one in reversed(self.members(node_group).listed) if one.may_exist or one.start_in_doubt)
        return next((one.name for one in having if (one.location or "").lower() == machine), None)

    def is_free_machine(self, provider_id: str, node_group: str) -> bool:
        """A machine of our own in that group which no instance has."""
        group = self.groups.get(node_group)
        if group is None or group.spec.kind != "webhook" or self._own_machine(provider_id) is not None:
            return False
        return own_machine(provider_id) in {(node_group, machine.lower()) for machine in group.spec.locations}

    def find(self, provider_id: str, node_name: str) -> Instance | None:
        """The instance that a Kubernetes node stands for, None if it is none of ours."""
        key = self.node_key(provider_id, node_name)
        return None if key is None else self.find_by_key(key)

    def find_by_key(self, key: str) -> Instance | None:
        """An instance by its name or its instance id."""
        return self.instances.get(key) or self.instances.get(self.names_by_id.get(key, ""))

    def with_instance(self, instance: Instance, position: int | None = None) -> Books:
        """The same with this version of an instance, at a new position if one is given."""
        members = self.members(instance.node_group).with_instance(instance)
        names = self.names_by_id
        before = self.instances.get(instance.name)
        if before is not None and before.instance_id not in {None, instance.instance_id}:
            names = names.discard(before.instance_id)
        if instance.instance_id is not None:
            names = names.insert(instance.instance_id, instance.name)
        return replace(
            self,
            position=self.position if position is None else position,
            instances=self.instances.insert(instance.name, instance),
            members_by_group=self.members_by_group.insert(instance.node_group, members),
            names_by_id=names,
        )

    def with_group(self, group: NodeGroup, position: int | None = None) -> Books:
        """The same with this version of a node group, at a new position if one is given."""
        order = self.group_order if group.name in self.groups else (*self.group_order, group.name)
        return replace(
            self,
            position=self.position if position is None else position,
            groups=self.groups.insert(group.name, group),
            group_order=order,
        )

    def without_instance(self, name: str) -> Books:
        """The same without an ended instance; the store still knows it."""
        instance = self.instances[name]
        names = self.names_by_id if instance.instance_id is None else self.names_by_id.discard(instance.instance_id)
        return replace(self, instances=self.instances.remove(name), names_by_id=names)


def evolve(books: Books, recorded: Recorded[Event]) -> Books:
    """Fold one event of any stream."""
    aggregate = folded(books, recorded)
    position = recorded.position
    match aggregate:
        case Instance():
            return books.with_instance(aggregate, position)
        case NodeGroup():
            return books.with_group(aggregate, position)
        case cloud.CloudView():
            return replace(books, position=position, cloud=aggregate)
        case cluster_state.ClusterView():
            return replace(books, position=position, cluster=aggregate)
        case service.Installation():
            return replace(books, position=position, installation=aggregate)
        case None:
            return replace(books, position=position)


@dataclass(kw_only=True)
class Draft:
    """Books in the making, for folding many events at once: what `evolve` comes to, without the versions in between."""

    position: int = 0
    groups: dict[str, NodeGroup] = field(default_factory=dict)
    instances: dict[str, Instance] = field(default_factory=dict)
    cloud: cloud.CloudView = field(default_factory=cloud.CloudView)
    cluster: cluster_state.ClusterView = field(default_factory=cluster_state.ClusterView)
    installation: service.Installation = field(default_factory=service.Installation)

    def take(self, recorded: Recorded[Event]) -> None:
        """Fold one event of any stream."""
        aggregate = folded(self, recorded)
        self.position = recorded.position
        match aggregate:
            case Instance():
                self.instances[aggregate.name] = aggregate
            case NodeGroup():
                self.groups[aggregate.name] = aggregate
            case cloud.CloudView():
                self.cloud = aggregate
            case cluster_state.ClusterView():
                self.cluster = aggregate
            case service.Installation():
                self.installation = aggregate

    def books(self) -> Books:
        """The books that it has become, with their indexes."""
        books = Books(position=self.position, cloud=self.cloud, cluster=self.cluster, installation=self.installation)
        books = reduce(Books.with_group, self.groups.values(), books)
        return reduce(Books.with_instance, self.instances.values(), books)
