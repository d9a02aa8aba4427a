"""What the autoscaler and the operator can wish of a node group, short."""

from app.domain.nodegroup.commands import ApplyConfiguration, DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.domain.nodegroup.events import (
    ScaleDownRequested,
    TargetSizeDecreased,
)
from app.domain.nodegroup.spec import NodeGroupSpec

from .facts import (
    CPU,
    CPU_TYPE,
    catalogue,
    configured,
    h100,
)

SAME_SHA = "5a"
both = h100.given(catalogue(CPU_TYPE), configured(CPU))


def increase(delta: int, *names: str, group: str = "h100") -> IncreaseSize:
    """A scale-up under these names."""
    return IncreaseSize(node_group=group, delta=delta, names=names)


def decrease(delta: int, group: str = "h100") -> DecreaseTargetSize:
    """A release of wishes; negative as in the protocol."""
    return DecreaseTargetSize(node_group=group, delta=delta)


def delete(*names: str, group: str = "h100") -> DeleteNodes:
    """A scale-down of these instances."""
    return DeleteNodes(node_group=group, instances=names)


def configuration(*specs: NodeGroupSpec, sha256: str = SAME_SHA, cluster_name: str = "c1") -> ApplyConfiguration:
    """A configuration with these groups."""
    return ApplyConfiguration(specs=specs, sha256=sha256, cluster_name=cluster_name)


def scale_down(count: int, new_target: int, *names: str) -> ScaleDownRequested:
    """The fact that these are given back."""
    return ScaleDownRequested(node_group="h100", count=count, new_target=new_target, instances=names)


def released(delta: int, new_target: int, *names: str) -> TargetSizeDecreased:
    """The fact that wishes are dropped."""
    return TargetSizeDecreased(node_group="h100", delta=delta, new_target=new_target, instances=names)
