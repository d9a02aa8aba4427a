"""What the cluster shows of a node, stripped of its API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel, ConfigDict


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaint:
    """A taint as it stands on a node; anybody may have put it there, with any effect there will ever be."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Node object. Sizes are Kubernetes quantities as text.

    `changed_at` is when Ready became what it is, None if nobody ever wrote a Ready condition. `uid` tells apart two
    nodes that had one name, `resource_version` two states of one node. From `deleting_since` on it is as good as gone,
    and stays only until nobody's finalizer holds it any more.
    """

    name: str
    uid: str
    resource_version: str
    created_at: datetime
    provider_id: str = ""
    ready: bool = False
    changed_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[NodeTaint, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    boot_id: str = ""
    deleting_since: datetime | None = None
    finalizers: tuple[str, ...] = ()

    @property
    def silent_since(self) -> datetime | None:
        """Since when nobody is at home, None while it says ready.

        Only Kubernetes itself may conclude silence from reports that do not come: its node controller calls a node not
        ready within a minute of the last lease. How old the last report is proves nothing, because a kubelet reports by
        its own settings and stamps by its own clock.
        """
        return None if self.ready else self.changed_at or self.created_at


class Figures(BaseModel):
    """What nodes of one kind have: quantities as Kubernetes writes them, and labels that tell of the hardware."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    capacity: dict[str, str]
    allocatable: dict[str, str]
    labels: dict[str, str]
