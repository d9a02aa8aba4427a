"""What the autoscaler puts in order before it scales: lost machines, failed creations, sizes that do not add up."""

from collections.abc import Sequence
from datetime import datetime

from .client import NodeGroup
from .objects import Node, fake_node
from .registry import Registry
from .releases import Change
from .wire import RpcFailed


class GroupUnknown(Exception):
    """The provider does not say which group a failed creation belongs to."""


class Cleanup:
    """Acts on what the registry believes."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._provider = registry.provider

    def remove_unregistered(self, now: datetime) -> None:
        """Delete instances that did not become nodes in time, never below the group's minimum size.

        An error is noted, and ends it for this loop.
        """
        late: dict[str, list[Node]] = {}
        for instance_id, since in self._registry.unregistered.items():
            node = fake_node(instance_id, "unregistered")
            try:
                group = self._provider.node_group_for_node(node)
            except RpcFailed:
                continue
            if group is None:
                continue
            limit = self._registry.sorter.provision_time(group)
            if limit is None:
                return
            if since + limit < now:
                late.setdefault(group.id, []).append(node)
        for name, nodes in late.items():
            late_group = self._group(name)
            if late_group is not None and not self._remove(late_group, nodes):
                return

    def _remove(self, group: NodeGroup, nodes: Sequence[Node]) -> bool:
        at_once = len(nodes) if self._provider.release.has(Change.ONE_REMOVAL_A_GROUP) else 1
        for first in range(0, len(nodes), at_once):
            try:
                allowed = group.target_size() - group.min_size
            except RpcFailed:
                return True
            batch = self._whole_group(group, nodes[first : first + at_once][: max(allowed, 0)])
            if not batch:
                continue
            accepted = self._delete(group, batch, "DeleteUnregistered")
            self._registry.cache.forget(group.id)
            if not accepted:
                return False
        return True

    def remove_failed(self) -> bool:
        """Delete everything that failed to be created, in every loop that lists it, at any size. Whether any was.

        Raises:
            GroupUnknown: a failed creation belongs to no group, and this release asks.
        """
        deleted = False
        for name, instances in self._registry.instances.items():
            nodes = [fake_node(one.id, "create-error") for one in instances if one.failed_to_be_created]
            group = self._group(name)
            if not nodes or group is None or not self._are_known(nodes):
                continue
            accepted = self._delete(group, self._whole_group(group, nodes), "DeleteFailed")
            deleted = accepted or deleted
            if accepted or not self._provider.release.has(Change.GOES_ON_AFTER_FAILED_CREATIONS):
                self._registry.cache.forget(group.id)
        if deleted and self._provider.release.has(Change.GOES_ON_AFTER_FAILED_CREATIONS):
            self._registry.recalculate()
        return deleted

    def _are_known(self, nodes: Sequence[Node]) -> bool:
        if self._provider.release.has(Change.FAILURES_KNOW_THEIR_GROUP):
            return True
        for node in nodes:
            try:
                group = self._provider.node_group_for_node(node)
            except RpcFailed:
                return False
            if group is None:
                raise GroupUnknown(node.name)
        return True

    def _delete(self, group: NodeGroup, nodes: Sequence[Node], event: str) -> bool:
        try:
            group.delete_nodes(nodes)
        except RpcFailed as error:
            self._registry.journal.note(f"{event} {group.id} {len(nodes)} failed: {error.code}")
            return False
        self._registry.journal.note(f"{event} {group.id} {len(nodes)}")
        return True

    def _whole_group(self, group: NodeGroup, nodes: Sequence[Node]) -> Sequence[Node]:
        """Groups that scale all or nothing lose all their instances with the first."""
        try:
            is_whole = group.options(self._registry.flags.defaults).zero_or_max_node_scaling
            return [fake_node(one.id, "") for one in group.instances()] if is_whole and nodes else nodes
        except RpcFailed:
            return ()

    def fix_sizes(self, now: datetime) -> bool:
        """Lower targets that have been too high for too long. Whether any was. Raises: RpcFailed."""
        fixed = False
        for group in self._provider.node_groups():
            wrong = self._registry.wrong_sizes.get(group.id)
            if wrong is None:
                continue
            limit = group.options(self._registry.flags.defaults).max_node_provision_time
            delta = wrong.registered - wrong.target
            if wrong.since + limit < now and delta < 0:
                self._registry.journal.note(f"FixedSize {group.id} {delta}")
                group.decrease_target_size(delta)
                fixed = True
        return fixed

    def _group(self, name: str) -> NodeGroup | None:
        return next((group for group in self._provider.node_groups() if group.id == name), None)
