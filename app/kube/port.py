"""What we need from a Kubernetes cluster. Adapters: its HTTP API, and a cluster in memory.

Every method may raise exactly the `ClusterError` subclasses of `app.errors`. No method waits for longer than the
adapter's own limit. All methods may be called from several threads at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from app.domain.cluster.node import Node, NodeTaint


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChanges:
    """What to change about a node. `provider_id` None leaves it alone; taints are removed by key and effect."""

    provider_id: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    without_taints: tuple[NodeTaint, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The object that an event is about; nodes are in no namespace."""

    kind: str
    name: str
    namespace: str | None = None
    api_version: str = "v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Announcement:
    """A Kubernetes event. `key` is unique, so that one that is written twice is there once."""

    key: str
    subject: Subject
    reason: str
    message: str
    is_warning: bool
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class BootstrapToken:
    """A join token that is to be in the cluster until it is deleted or its time is over, whichever comes first."""

    token_id: str
    secret: str = field(repr=False)
    description: str
    groups: tuple[str, ...]
    expires_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenSeen:
    """A join token that is in the cluster. `expires_at` is None if it never ends."""

    expires_at: datetime | None


class Cluster(Protocol):
    """A Kubernetes API."""

    def nodes(self) -> Sequence[Node]:
        """All nodes as of a few minutes ago at most. Raises unless the picture is whole: part of it proves nothing."""
        ...

    def node(self, name: str) -> Node | None:
        """One node as it is at this moment, past every cache; None only if the API itself says there is none."""
        ...

    def delete_node(self, node: Node) -> bool:
        """Delete exactly this state of this node; that it is gone already is fine.

        Whether it is proven gone; otherwise it is being deleted, and somebody's finalizer holds it.

        Raises:
            ClusterConflict: it has changed since it was read, or another node has its name now.
        """
        ...

    def change_node(self, node: Node, changes: NodeChanges) -> None:
        """Change exactly this state of this node.

        Raises:
            ClusterConflict: it has changed since it was read, or is gone.
            ClusterRefused: it has not changed, and does not allow that.
        """
        ...

    def create_token(self, token: BootstrapToken) -> None:
        """Put a join token into the cluster. No error ever repeats its secret.

        Raises:
            ClusterConflict: there is one of that id.
        """
        ...

    def delete_token(self, token_id: str) -> None:
        """Delete a join token; that it is gone already is fine."""
        ...

    def token(self, token_id: str) -> TokenSeen | None:
        """What the cluster knows of a join token, None if it has none of that id."""
        ...

    def announce(self, announcement: Announcement) -> None:
        """Write an event; that it is there already is fine."""
        ...

    def close(self) -> None:
        """Let go of connections; later calls fail."""
        ...
