"""A cluster in memory, for tests and for playing scenarios: the same port, no network, faults to order."""

import threading
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from app.clock import Clock
from app.domain.cluster.node import Node
from app.errors import ClusterConflict, ClusterError, ClusterRefused
from app.kube.port import Announcement, BootstrapToken, NodeChanges, TokenSeen


class FakeCluster:
    """Node objects by name.

    `trouble` is raised by every call, `forbidden` by the calls it names, alone or with the name of one object, as in
    `change_node gpu-a`; `stale` is what `nodes` shows instead. `asked` are the nodes that were to be deleted, in order,
    `deleted` those that no finalizer has held.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.trouble: ClusterError | None = None
        self.forbidden: dict[str, ClusterError] = {}
        self.stale: Sequence[Node] | None = None
        self.asked: list[str] = []
        self.deleted: list[str] = []
        self.announced: list[Announcement] = []
        self.tokens: dict[str, BootstrapToken] = {}
        self.standing: dict[str, datetime | None] = {}
        self._nodes: dict[str, Node] = {}
        self._version = 0
        self._lock = threading.Lock()

    def put(self, node: Node) -> Node:
        """Somebody writes this node, as a kubelet or a controller does; the version counts up."""
        with self._lock:
            self._version += 1
            written = replace(node, resource_version=str(self._version))
            self._nodes[node.name] = written
        return written

    def drop(self, name: str) -> None:
        """Somebody else deletes this node."""
        with self._lock:
            self._nodes.pop(name, None)

    def nodes(self) -> Sequence[Node]:
        """All nodes, or what `stale` says."""
        self._may("nodes")
        with self._lock:
            return tuple(self._nodes.values()) if self.stale is None else self.stale

    def node(self, name: str) -> Node | None:
        """One node as it is."""
        self._may("node", name)
        with self._lock:
            return self._nodes.get(name)

    def delete_node(self, node: Node) -> bool:
        """Delete it if it is still the one that was read; one that a finalizer holds is only marked."""
        self._may("delete_node", node.name)
        with self._lock:
            known = self._nodes.get(node.name)
            if known is None:
                return True
            if (known.uid, known.resource_version) != (node.uid, node.resource_version):
                raise ClusterConflict(f"node {node.name} has changed since it was read")
            self.asked.append(node.name)
            if known.finalizers:
                self._version += 1
                since = known.deleting_since or self._clock.now()
                marked = replace(known, deleting_since=since, resource_version=str(self._version))
                self._nodes[node.name] = marked
                return False
            del self._nodes[node.name]
            self.deleted.append(node.name)
            return True

    def change_node(self, node: Node, changes: NodeChanges) -> None:
        """Change it if it is still the one that was read; a provider id that is set stays for ever."""
        self._may("change_node", node.name)
        with self._lock:
            known = self._nodes.get(node.name)
            if known is None or (known.uid, known.resource_version) != (node.uid, node.resource_version):
                raise ClusterConflict(f"node {node.name} has changed since it was read")
            if changes.provider_id is not None and known.provider_id not in {"", changes.provider_id}:
                raise ClusterRefused(f"the provider id of {node.name} may not be changed")
            self._version += 1
            self._nodes[node.name] = replace(
                known,
                resource_version=str(self._version),
                provider_id=changes.provider_id or known.provider_id,
                labels={**known.labels, **changes.labels},
                taints=tuple(taint for taint in known.taints if taint not in changes.without_taints),
            )

    def create_token(self, token: BootstrapToken) -> None:
        """Keep it, unless there is one of that id."""
        self._may("create_token", token.token_id)
        with self._lock:
            if token.token_id in self.tokens:
                raise ClusterConflict(f"there is a join token {token.token_id}")
            self.tokens[token.token_id] = token

    def delete_token(self, token_id: str) -> None:
        """Forget it."""
        self._may("delete_token", token_id)
        with self._lock:
            self.tokens.pop(token_id, None)

    def token(self, token_id: str) -> TokenSeen | None:
        """Those that were made here, and those that `standing` says the operator made."""
        self._may("token", token_id)
        with self._lock:
            if token_id in self.standing:
                return TokenSeen(expires_at=self.standing[token_id])
            made = self.tokens.get(token_id)
            return None if made is None else TokenSeen(expires_at=made.expires_at)

    def announce(self, announcement: Announcement) -> None:
        """Keep it; once for each key."""
        self._may("announce", announcement.subject.name)
        if announcement.key not in {one.key for one in self.announced}:
            self.announced.append(announcement)

    def close(self) -> None:
        """Nothing to let go of."""

    def _may(self, call: str, name: str = "") -> None:
        trouble = self.trouble or self.forbidden.get(call) or self.forbidden.get(f"{call} {name}")
        if trouble is not None:
            raise trouble
