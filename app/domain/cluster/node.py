"""What the cluster shows of a node, stripped of its API."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from pydantic import BaseModel, ConfigDict

_REPORT_EVERY = timedelta(minutes=5)
"""Kubernetes: how often a kubelet reports although nothing has changed (`nodeStatusReportFrequency`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeTaint:
    """A taint as it stands on a node; anybody may have put it there, with any effect there will ever be."""

    key: str
    value: str = ""
    effect: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A Node object. Sizes are Kubernetes quantities as text.

    `changed_at` is when Ready became what it is, `heard_at` when the kubelet last reported it; None if nobody ever
    wrote a Ready condition. `uid` tells apart two nodes that had one name, `resource_version` two states of one node.
    """

    name: str
    uid: str
    resource_version: str
    created_at: datetime
    provider_id: str = ""
    ready: bool = False
    changed_at: datetime | None = None
    heard_at: datetime | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[NodeTaint, ...] = ()
    capacity: Mapping[str, str] = field(default_factory=dict)
    allocatable: Mapping[str, str] = field(default_factory=dict)
    addresses: tuple[str, ...] = ()
    boot_id: str = ""

    def silent_since(self, now: datetime) -> datetime | None:
        """Since when nobody is at home: it is not ready, or said ready once and has missed a report since."""
        if not self.ready:
            return self.changed_at or self.created_at
        missed_at = self.heard_at + _REPORT_EVERY if self.heard_at is not None else None
        return missed_at if missed_at is not None and missed_at < now else None


class Figures(BaseModel):
    """What nodes of one kind have: quantities as Kubernetes writes them, and labels that tell of the hardware."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    capacity: dict[str, str]
    allocatable: dict[str, str]
    labels: dict[str, str]
