"""How the autoscaler sorts nodes and instances before it decides anything."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from .client import NodeGroup, Provider
from .flags import Options
from .objects import Node, fake_node
from .releases import Change
from .wire import RpcFailed

MAX_NODE_STARTUP_TIME: Final = timedelta(minutes=15)
"""Before it became an option."""


@dataclass(slots=True, kw_only=True)
class Readiness:
    """Names by kind. Registered nodes are in exactly one of `ready`, `unready`, `not_started` and `deleted`."""

    registered: list[str] = field(default_factory=list)
    ready: list[str] = field(default_factory=list)
    unready: list[str] = field(default_factory=list)
    not_started: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    unregistered: list[str] = field(default_factory=list)
    long_unregistered: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sorted:
    """The kinds per group, for groups with a node or an instance, and for the whole cluster."""

    groups: Mapping[str, Readiness]
    total: Readiness


class Sorter:
    """Sorts nodes and unregistered instances."""

    def __init__(self, provider: Provider, defaults: Options) -> None:
        self._provider = provider
        self._defaults = defaults
        self._startup_time = MAX_NODE_STARTUP_TIME

    def sort(self, nodes: Iterable[Node], unregistered: Mapping[str, datetime], now: datetime) -> Sorted:
        """Every node, then every instance without one. Whoever belongs to no group counts for the cluster only."""
        groups: dict[str, Readiness] = {}
        total = Readiness()
        self._startup_time = MAX_NODE_STARTUP_TIME
        for node in nodes:
            group = self._group(node)
            if group is not None:
                self._sort_node(groups.setdefault(group.id, Readiness()), node, group, now)
            self._sort_node(total, node, group, now)
        for instance_id, since in unregistered.items():
            group = self._group(fake_node(instance_id, "unregistered"))
            limit = None if group is None else self.provision_time(group)
            if group is None or limit is None:
                continue
            own = groups.setdefault(group.id, Readiness())
            for readiness in (own, total):
                kind = readiness.long_unregistered if since + limit < now else readiness.unregistered
                kind.append(instance_id)
        return Sorted(groups=groups, total=total)

    def provision_time(self, group: NodeGroup) -> timedelta | None:
        """How long an instance may take to register; None if the options cannot be had."""
        try:
            return group.options(self._defaults).max_node_provision_time
        except RpcFailed:
            return None

    def _group(self, node: Node) -> NodeGroup | None:
        try:
            return self._provider.node_group_for_node(node)
        except RpcFailed:
            return None

    def _sort_node(self, readiness: Readiness, node: Node, group: NodeGroup | None, now: datetime) -> None:
        self._learn_startup_time(group)
        readiness.registered.append(node.name)
        assert node.created_at is not None
        if node.is_being_deleted:
            readiness.deleted.append(node.name)
        elif node.ready:
            readiness.ready.append(node.name)
        elif node.created_at + self._startup_time > now:
            readiness.not_started.append(node.name)
        else:
            readiness.unready.append(node.name)

    def _learn_startup_time(self, group: NodeGroup | None) -> None:
        """The last group's time also holds for every node after it that has no group: one variable serves all."""
        if group is None or not self._provider.release.has(Change.STARTUP_TIME_IS_AN_OPTION):
            return
        try:
            self._startup_time = group.options(self._defaults).max_node_startup_time
        except RpcFailed:
            return
