"""The node an empty machine of a group would become: what the autoscaler simulates with while the group is at zero.

Promising more than a real node has makes the autoscaler buy, find that the pod still does not fit, return the machine
and begin again, for ever. So every doubtful size is rounded down.

There is deliberately no label with the group's name: the autoscaler's balancing takes groups for similar only if all
their labels are equal, save a few well-known ones.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal
from typing import Final

from app.domain.gpu import (
    architecture,
    gpu_family,
    gpu_memory_mib,
    gpu_product,
    gpu_type,
    label_value,
)
from app.domain.mig import MigLayout, MigStrategy, mig_layout
from app.domain.nodegroup.spec import NodeGroupSpec, Taint
from app.domain.offering import Contract, InstanceType
from app.domain.quantity import parse_quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
GPU: Final = "nvidia.com/gpu"

ARCH_LABEL: Final = "kubernetes.io/arch"
OS_LABEL: Final = "kubernetes.io/os"
HOSTNAME_LABEL: Final = "kubernetes.io/hostname"
INSTANCE_TYPE_LABEL: Final = "node.kubernetes.io/instance-type"
REGION_LABEL: Final = "topology.kubernetes.io/region"
ZONE_LABEL: Final = "topology.kubernetes.io/zone"
CONTRACT_LABEL: Final = "verda.com/contract"
MIG_CONFIG_LABEL: Final = "nvidia.com/mig.config"
"""What NVIDIA's MIG manager reads to know how to cut the GPUs."""

MIG_STRATEGY_LABEL: Final = "nvidia.com/mig.strategy"

RESERVED_LABELS: Final = frozenset({OS_LABEL, HOSTNAME_LABEL, INSTANCE_TYPE_LABEL, CONTRACT_LABEL})
"""Keys a group's own labels cannot change, and its GPU label: prices and GPU accounting are read from them."""

_KIB: Final = 2**10
_MIB: Final = 2**20
_GIB: Final = 2**30
_GB: Final = 10**9

_VISIBLE_MEMORY: Final = Decimal("0.93")
"""Share of the catalogue's gigabytes, read as GiB, that a guest sees. Also right if they are meant as 10^9 bytes."""

_VISIBLE_DISK: Final = Decimal("0.95")
"""Share of a volume's 10^9 bytes that its root file system offers; a guess: boot partitions, inodes, journal go off."""

_DEFAULT_OS_VOLUME_GB: Final = 50
"""Verda: the system disk of an instance ordered without naming a size."""

_MAX_PODS: Final = 110
"""Kubernetes: `maxPods` of a kubelet that was not told otherwise."""

_MEMORY_TIERS: Final = ((4, "0.25"), (4, "0.20"), (8, "0.10"), (112, "0.06"))
_MEMORY_BEYOND: Final = "0.02"
"""Shares of the first 4 GiB, the next 4, 8 and 112, and the rest: kube-reserved memory as GKE publishes it."""

_CPU_TIERS: Final = ((1, "0.06"), (1, "0.01"), (2, "0.005"))
_CPU_BEYOND: Final = "0.0025"
"""Shares of the first core, the next 1 and 2, and the rest: kube-reserved CPU as GKE and EKS publish it."""

_MEMORY_EVICTION: Final = 100 * _MIB
_STORAGE_EVICTION: Final = Decimal("0.10")
"""Kubernetes: the kubelet's default hard eviction thresholds, `memory.available<100Mi` and `nodefs.available<10%`."""

_SITE: Final = re.compile(r"(?P<region>.+)-[0-9]+")

_NODE_STEP: Final = {CPU: Decimal("0.001"), MEMORY: Decimal(_KIB), STORAGE: Decimal(_KIB)}
"""What a kubelet counts in; everything else it counts in pieces."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateNode:
    """A node that does not exist. Sizes in cores, bytes and pieces; allocatable never exceeds capacity."""

    name: str
    labels: Mapping[str, str]
    capacity: Mapping[str, Decimal]
    allocatable: Mapping[str, Decimal]
    taints: tuple[Taint, ...]


def build_template(
    spec: NodeGroupSpec, kind: InstanceType, contract: Contract, location: str | None = None
) -> TemplateNode:
    """The node of a machine of this type, ordered under this contract at this location (None: the preferred one).

    Start-up taints are left out: they are gone by the time a pod would run. Resources a group names replace ours, but
    memory never exceeds the catalogue's figure.

    Raises:
        ValueError: a quantity of the group is malformed. Loading a configuration checks them with the same parser.
    """
    name = f"{spec.name}-template"
    capacity = _capacity(spec, kind)
    own = {ARCH_LABEL: architecture(kind), OS_LABEL: "linux", HOSTNAME_LABEL: name}
    return TemplateNode(
        name=name,
        labels=own | _discovered_labels(spec, kind) | kubelet_labels(spec, kind, contract, location),
        capacity=capacity,
        allocatable={resource: _allocatable(spec, resource, size) for resource, size in capacity.items()},
        taints=spec.taints,
    )


def kubelet_labels(
    spec: NodeGroupSpec, kind: InstanceType, contract: Contract, location: str | None = None
) -> dict[str, str]:
    """The labels a machine's kubelet has to be started with, so that the real node agrees with the template.

    The GPU label is among them if and only if the node will have GPUs: the autoscaler holds a node that carries the
    key, with whatever value, for unready until it shows `nvidia.com/gpu`. The group's labels win over ours, except for
    `RESERVED_LABELS`. Machines of our own have the group's labels and the GPU label: of the rest nothing is known.
    """
    if spec.kind == "webhook":
        own = {key: label_value(value) for key, value in spec.labels.items() if key != spec.gpu_label}
        return own | ({spec.gpu_label: gpu_label_of(spec, kind)} if gpu_count(spec, kind) else {})
    site = spec.locations[0] if location is None else location
    fixed = RESERVED_LABELS | {spec.gpu_label}
    labels = {REGION_LABEL: region_of(site), ZONE_LABEL: label_value(site)}
    if has_gpus(spec, kind) and spec.mig_profile is not None:
        labels[MIG_CONFIG_LABEL] = label_value(spec.mig_profile)
    labels |= {key: label_value(value) for key, value in spec.labels.items() if key not in fixed}
    labels |= {INSTANCE_TYPE_LABEL: label_value(kind.name), CONTRACT_LABEL: contract.value}
    if gpu_count(spec, kind):
        labels[spec.gpu_label] = gpu_label_of(spec, kind)
    return labels


def gpu_label_of(spec: NodeGroupSpec, kind: InstanceType) -> str:
    """The value of the GPU label: the group's own if its machines are started with another than the GPU's type."""
    return label_value(spec.labels.get(spec.gpu_label) or gpu_type(kind) or "")


def region_of(location: str) -> str:
    """The region of a location: `FIN` of `FIN-01`, a code of another form as it is. The zone is the location itself.

    Verda has neither word: a location is one data centre, which is what Kubernetes means by a zone, and the letters
    before its number are the country it shares with others.
    """
    match = _SITE.fullmatch(location)
    return label_value(match["region"] if match else location)


def gpu_count(spec: NodeGroupSpec, kind: InstanceType) -> int:
    """How many `nvidia.com/gpu` a node will show. None ever on a machine without GPUs, whatever the group says.

    Strongest first: `override_num_gpus` (time slicing, layouts of one's own), the group's resources (`"0"` for layouts
    of one's own under the "mixed" MIG strategy, beside entries like `nvidia.com/mig-1g.10gb`), a MIG profile (none of
    them under the "mixed" strategy), the catalogue. Of a MIG profile that cannot be counted one device per GPU is
    promised, the least there can be.
    """
    if kind.gpus <= 0:
        return 0
    if spec.override_num_gpus is not None:
        return max(0, spec.override_num_gpus)
    if GPU in spec.resources:
        return max(0, int(parse_quantity(spec.resources[GPU])))
    if spec.mig_profile is not None:
        layout = mig_layout(spec.mig_profile, kind)
        return kind.gpus if layout is None else layout.resources(spec.mig_strategy, kind.gpus).get(GPU, 0)
    return kind.gpus


def has_gpus(spec: NodeGroupSpec, kind: InstanceType) -> bool:
    """Whether the node has GPUs in any form, whole, shared or cut."""
    return gpu_count(spec, kind) > 0 or bool(_mig_resources(spec, kind))


def _mig_resources(spec: NodeGroupSpec, kind: InstanceType) -> dict[str, int]:
    """Devices by size, under the "mixed" strategy."""
    layout = mig_layout(spec.mig_profile, kind) if spec.mig_profile is not None else None
    shown = {} if layout is None else layout.resources(spec.mig_strategy, kind.gpus)
    return {resource: count for resource, count in shown.items() if resource != GPU}


def _discovered_labels(spec: NodeGroupSpec, kind: InstanceType) -> dict[str, str]:
    """What NVIDIA's GPU feature discovery will add once the node has joined.

    Of GPUs that are shared or cut in a way we do not know, only what is certain: discovery renames their product.
    """
    count = gpu_count(spec, kind)
    if not has_gpus(spec, kind) or spec.kind == "webhook":
        return {}
    labels = {"nvidia.com/gpu.present": "true"}
    family = gpu_family(kind)
    if family is not None:
        labels["nvidia.com/gpu.family"] = family
    layout = mig_layout(spec.mig_profile, kind) if spec.mig_profile is not None else None
    if layout is not None:
        labels |= _mig_labels(spec, kind, layout)
    elif count == kind.gpus:
        labels |= {
            "nvidia.com/gpu.product": gpu_product(kind),
            "nvidia.com/gpu.count": str(count),
            "nvidia.com/gpu.memory": str(gpu_memory_mib(kind)),
        }
    return labels


def _mig_labels(spec: NodeGroupSpec, kind: InstanceType, layout: MigLayout) -> dict[str, str]:
    """Under the "single" strategy product and count are those of the devices, under "mixed" those of the GPUs."""
    labels = {MIG_STRATEGY_LABEL: spec.mig_strategy.value}
    if spec.mig_strategy is MigStrategy.SINGLE:
        product, count = f"{gpu_product(kind)}-MIG-{layout.devices[0]}", gpu_count(spec, kind)
    else:
        product, count = gpu_product(kind), kind.gpus
    return labels | {"nvidia.com/gpu.product": label_value(product), "nvidia.com/gpu.count": str(count)}


def _capacity(spec: NodeGroupSpec, kind: InstanceType) -> dict[str, Decimal]:
    disk_gb = spec.os_volume_size_gb or kind.storage_gb or _DEFAULT_OS_VOLUME_GB
    memory = kind.memory_gb * _GIB
    sizes = {
        CPU: Decimal(kind.cpus),
        MEMORY: memory * _VISIBLE_MEMORY,
        STORAGE: disk_gb * _GB * _VISIBLE_DISK,
        PODS: Decimal(_MAX_PODS),
    }
    sizes |= {resource: Decimal(count) for resource, count in _mig_resources(spec, kind).items()}
    sizes |= {resource: parse_quantity(text) for resource, text in spec.resources.items() if resource != GPU}
    sizes[MEMORY] = min(sizes[MEMORY], memory)
    count = gpu_count(spec, kind)
    if count:
        sizes[GPU] = Decimal(count)
    return {resource: _whole(resource, size) for resource, size in sizes.items()}


def _allocatable(spec: NodeGroupSpec, resource: str, capacity: Decimal) -> Decimal:
    """Capacity less what is held back: what the group says, which then is all of it, or what kubelets hold back."""
    held = parse_quantity(spec.reserved[resource]) if resource in spec.reserved else _held_back(resource, capacity)
    return min(capacity, max(Decimal(0), _whole(resource, capacity - held)))


def _held_back(resource: str, capacity: Decimal) -> Decimal:
    if resource == CPU:
        return _tiered(capacity, _CPU_TIERS, _CPU_BEYOND)
    if resource == MEMORY:
        return _tiered(capacity / _GIB, _MEMORY_TIERS, _MEMORY_BEYOND) * _GIB + _MEMORY_EVICTION
    return capacity * _STORAGE_EVICTION if resource == STORAGE else Decimal(0)


def _tiered(amount: Decimal, tiers: tuple[tuple[int, str], ...], beyond: str) -> Decimal:
    """The sum of a share of every tier, as income taxes are reckoned."""
    held, left = Decimal(0), amount
    for width, share in tiers:
        held += min(left, Decimal(width)) * Decimal(share)
        left = max(Decimal(0), left - width)
    return held + left * Decimal(beyond)


def _whole(resource: str, size: Decimal) -> Decimal:
    """Rounded down to what a kubelet counts in, never below zero."""
    step = _NODE_STEP.get(resource, Decimal(1))
    return max(Decimal(0), (size / step).to_integral_value(rounding=ROUND_DOWN) * step)
