"""What a new node of each group would look like: a real one if there is or was one, else what the provider says."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from .client import NodeGroup, Provider
from .objects import CANDIDATE, HOSTNAME_LABEL, STARTUP_TAINT, TO_BE_DELETED, Node
from .releases import Change
from .wire import NotOffered, RpcFailed

STABLE_AFTER: Final = timedelta(minutes=1)
_TRANSIENT_TAINTS: Final = frozenset({TO_BE_DELETED, CANDIDATE})


class Templates:
    """Made anew each loop; a good real node is remembered for as long as the process lives."""

    def __init__(self, provider: Provider) -> None:
        self._provider = provider
        self._remembered: dict[str, Node] = {}
        self._made = 0

    def make(self, nodes: Sequence[Node], now: datetime) -> dict[str, Node]:
        """A template for every group that has one.

        Raises:
            RpcFailed: of one group or node, in releases that give the whole loop up for it.
            AutoscalerCrashed: an answer without a node.
        """
        good = [node for node in nodes if _is_good(node, now)]
        found: dict[str, Node] = {}
        for node in good:
            group = self._group(node)
            if group is not None and group.id not in found:
                found[group.id] = self._remembered[group.id] = self._sanitized(node, group.id)
        groups = self._provider.node_groups()
        for group in groups:
            if group.id not in found:
                self._from_memory_or_provider(group, found)
        self._remembered = {name: node for name, node in self._remembered.items() if name in {one.id for one in groups}}
        for node in nodes:
            is_last_resort = node.ready or self._provider.release.has(Change.TEMPLATES_FROM_UNREADY)
            group = None if node in good or not is_last_resort else self._group(node)
            if group is not None and group.id not in found:
                found[group.id] = self._sanitized(node, group.id)
        return found

    def _from_memory_or_provider(self, group: NodeGroup, found: dict[str, Node]) -> None:
        if group.id in self._remembered:
            found[group.id] = self._remembered[group.id]
            return
        try:
            found[group.id] = self._sanitized(group.template(), group.id)
        except NotOffered:
            return
        except RpcFailed:
            if not self._provider.release.has(Change.SURVIVES_TEMPLATE_ERRORS):
                raise

    def _group(self, node: Node) -> NodeGroup | None:
        try:
            return self._provider.node_group_for_node(node)
        except RpcFailed:
            if not self._provider.release.has(Change.SURVIVES_UNKNOWN_NODES):
                raise
            return None

    def _sanitized(self, node: Node, group: str) -> Node:
        """A copy under a name of its own, as if just started."""
        self._made += 1
        name = f"template-node-for-{group}-{self._made}"
        taints = {key: effect for key, effect in node.taints.items() if not _is_transient(key)}
        labels = {**node.labels, HOSTNAME_LABEL: name}
        return replace(node, name=name, labels=labels, taints=taints, ready=True)


def _is_transient(key: str) -> bool:
    return key in _TRANSIENT_TAINTS or key.startswith(STARTUP_TAINT)


def _is_good(node: Node, now: datetime) -> bool:
    is_stable = node.ready_since is not None and node.ready_since + STABLE_AFTER < now
    return node.ready and is_stable and not node.is_being_deleted
