"""The small cluster as the provider's cluster side sees it, with troubles to order."""

from collections.abc import Mapping, Sequence
from decimal import Decimal

from app.domain.cluster.node import Node, NodeTaint
from app.domain.quantity import format_quantity
from app.errors import ClusterConflict, ClusterError
from app.kube.port import Announcement, BootstrapToken, NodeChanges, TokenSeen
from tests.autoscaler.ca import objects

from .cluster import Cluster


class Kubernetes:
    """The port over `Cluster`. `trouble` is raised by every call; `hides` shows no node of anybody.

    `removed` are the names of the nodes that the provider removed, in order.
    """

    def __init__(self, cluster: Cluster) -> None:
        self.trouble: ClusterError | None = None
        self.hides = False
        self.removed: list[str] = []
        self.announced: list[Announcement] = []
        self._tokens: dict[str, BootstrapToken] = {}
        self._cluster = cluster

    def nodes(self) -> Sequence[Node]:
        """All of them."""
        self._may()
        return () if self.hides else tuple(_seen(node) for node in self._cluster.nodes())

    def node(self, name: str) -> Node | None:
        """One, as it is now."""
        self._may()
        found = [node for node in self._cluster.nodes() if node.name == name]
        return _seen(found[0]) if found else None

    def delete_node(self, node: Node) -> bool:
        """The node controller makes its pods anew."""
        self._unchanged(node)
        self._cluster.remove(node.name)
        self.removed.append(node.name)
        return True

    def change_node(self, node: Node, changes: NodeChanges) -> None:
        """Only what the autoscaler would see."""
        self._unchanged(node)
        real = self._cluster.node(node.name)
        real.provider_id = changes.provider_id or real.provider_id
        real.labels.update(changes.labels)
        for taint in changes.without_taints:
            real.taints.pop(taint.key, None)

    def create_token(self, token: BootstrapToken) -> None:
        """Machines join without one here."""
        self._may()
        self._tokens[token.token_id] = token

    def delete_token(self, token_id: str) -> None:
        """Forget it."""
        self._may()
        self._tokens.pop(token_id, None)

    def token(self, token_id: str) -> TokenSeen | None:
        """Only those that were made here."""
        self._may()
        known = self._tokens.get(token_id)
        return None if known is None else TokenSeen(expires_at=known.expires_at)

    def announce(self, announcement: Announcement) -> None:
        """Nobody looks."""
        self._may()
        self.announced.append(announcement)

    def close(self) -> None:
        """Nothing to let go of."""

    def _unchanged(self, node: Node) -> None:
        self._may()
        if self.node(node.name) != node:
            raise ClusterConflict(f"node {node.name} has changed")

    def _may(self) -> None:
        if self.trouble is not None:
            raise self.trouble


def _seen(node: objects.Node) -> Node:
    assert node.created_at is not None
    return Node(
        name=node.name,
        uid=f"{node.name} of {node.created_at}",
        resource_version=f"{node.ready} {node.provider_id} {sorted(node.taints)}",
        created_at=node.created_at,
        provider_id=node.provider_id,
        ready=node.ready,
        changed_at=node.ready_since,
        labels=dict(node.labels),
        taints=tuple(NodeTaint(key=key, effect=effect) for key, effect in node.taints.items()),
        capacity=_texts(node.capacity),
        allocatable=_texts(node.allocatable),
        boot_id=f"boot of {node.name}",
    )


def _texts(sizes: Mapping[str, Decimal]) -> dict[str, str]:
    return {resource: format_quantity(size) for resource, size in sizes.items()}
