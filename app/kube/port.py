"""What we need from a Kubernetes cluster. Adapters: its HTTP API, and a cluster in memory.

Every method may raise exactly the `ClusterError` subclasses of `app.errors`. No method waits for longer than the
adapter's own limit. All methods may be called from several threads at once.
"""

from collections.abc import Sequence
from typing import Protocol

from app.domain.cluster.node import Node


class Cluster(Protocol):
    """A Kubernetes API."""

    def nodes(self) -> Sequence[Node]:
        """All nodes as of a few minutes ago at most. Raises unless the picture is whole: part of it proves nothing."""
        ...

    def node(self, name: str) -> Node | None:
        """One node as it is at this moment, past every cache; None only if the API itself says there is none."""
        ...

    def delete_node(self, node: Node) -> None:
        """Delete exactly this state of this node; that it is gone already is fine.

        Raises:
            ClusterConflict: it has changed since it was read, or another node has its name now.
        """
        ...

    def close(self) -> None:
        """Let go of connections; later calls fail."""
        ...
