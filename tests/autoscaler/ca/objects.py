"""Kubernetes objects, as far as the autoscaler looks at them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Final

GPU: Final = "nvidia.com/gpu"
STARTUP_TAINT: Final = "startup-taint.cluster-autoscaler.kubernetes.io/"
"""What the keys of start-up taints begin with that every autoscaler knows without a flag."""
PODS: Final = "pods"
TO_BE_DELETED: Final = "ToBeDeletedByClusterAutoscaler"
CANDIDATE: Final = "DeletionCandidateOfClusterAutoscaler"
FAKE_NODE_REASON: Final = "k8s.io/cluster-autoscaler/fake-node-reason"
"""The annotation of nodes that the autoscaler makes up for instances without a node."""
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"

_KEEPS_AWAY: Final = frozenset({"NoSchedule", "NoExecute"})
_QUANTITY: Final = re.compile(r"(?P<number>[0-9.]+)(?P<suffix>m|k|M|G|T|Ki|Mi|Gi|Ti|)")
_FACTORS: Final = {
    "m": Decimal("0.001"),
    "": Decimal(1),
    "k": Decimal(10**3),
    "M": Decimal(10**6),
    "G": Decimal(10**9),
    "T": Decimal(10**12),
    "Ki": Decimal(2**10),
    "Mi": Decimal(2**20),
    "Gi": Decimal(2**30),
    "Ti": Decimal(2**40),
}

Resources = dict[str, Decimal]


def quantity(text: str) -> Decimal:
    """The number of a Kubernetes quantity."""
    match = _QUANTITY.fullmatch(text)
    assert match is not None, f"not a quantity: {text!r}"
    return Decimal(match["number"]) * _FACTORS[match["suffix"]]


@dataclass(slots=True, kw_only=True, eq=False)
class Node:
    """A node, real, of a template, or made up. `taints` is key → effect; `ready_since` is the last transition."""

    name: str
    provider_id: str = ""
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: dict[str, str] = field(default_factory=dict)
    capacity: Resources = field(default_factory=dict)
    allocatable: Resources = field(default_factory=dict)
    ready: bool = True
    ready_since: datetime | None = None
    created_at: datetime | None = None

    @property
    def is_being_deleted(self) -> bool:
        """The autoscaler has tainted it for deletion."""
        return TO_BE_DELETED in self.taints


@dataclass(slots=True, kw_only=True, eq=False)
class Pod:
    """A pod. `node` is where it runs; without one it is pending and the scheduler has found no place."""

    name: str
    requests: Resources
    created_at: datetime
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerates: frozenset[str] = frozenset()
    node: str | None = None

    @property
    def wants_gpu(self) -> bool:
        """It requests a GPU."""
        return bool(self.requests.get(GPU))


def fits(pod: Pod, node: Node, free: Mapping[str, Decimal]) -> bool:
    """Whether the scheduler would put the pod on the node with so much left."""
    if not node.ready or any(node.labels.get(key) != value for key, value in pod.selector.items()):
        return False
    if any(effect in _KEEPS_AWAY and key not in pod.tolerates for key, effect in node.taints.items()):
        return False
    return all(amount <= free.get(resource, Decimal(0)) for resource, amount in needs(pod).items())


def needs(pod: Pod) -> Resources:
    """What a pod takes away from its node."""
    return {**pod.requests, PODS: Decimal(1)}


def take(free: Resources, pod: Pod) -> None:
    """Let the pod have its share of what is free."""
    for resource, amount in needs(pod).items():
        free[resource] = free.get(resource, Decimal(0)) - amount


def fake_node(instance_id: str, reason: str) -> Node:
    """What stands for an instance without a node: its id is name and provider id, and there are no labels."""
    return Node(name=instance_id, provider_id=instance_id, annotations={FAKE_NODE_REASON: reason})
