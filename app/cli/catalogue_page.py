"""The page that shows every instance type with the template node it becomes. `python -m app.cli.catalogue_page`."""

import sys
from collections.abc import Iterable

from app.domain.gpu import architecture, gpu_type
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.quantity import format_bytes, format_quantity
from app.domain.template import CPU, GPU, MEMORY, PODS, STORAGE, build_template
from app.simulator.config import SimulatorConfig
from app.simulator.inprocess import InProcessCloud
from app.simulator.world import World

_HEAD = """\
# Instance types and their templates

What the autoscaler is told of a node of each type, for a group with a system disk of 100 GB and no overrides.
The types are those of the catalogue in February 2026; at run time the live catalogue decides, and types that are not
here work as well. Capacity is what a kubelet reports, allocatable what is left for pods.

"""
_COLUMNS = (
    *("type", "GPU label", "arch", "GPUs", "CPU capacity", "CPU allocatable", "memory capacity", "memory allocatable"),
    *("disk capacity", "disk allocatable", "pods", "product label"),
)


def page(kinds: Iterable[InstanceType]) -> str:
    """The whole page."""
    rule = "|---" * len(_COLUMNS) + "|\n"
    return f"{_HEAD}| {' | '.join(_COLUMNS)} |\n{rule}" + "".join(_row(kind) for kind in kinds)


def _row(kind: InstanceType) -> str:
    spec = NodeGroupSpec(
        name="a",
        min_size=0,
        max_size=1,
        instance_type=kind.name,
        image="a",
        locations=("FIN-01",),
        os_volume_size_gb=100,
    )
    node = build_template(spec, kind, Contract.ON_DEMAND)
    cells = (
        f"`{kind.name}`",
        gpu_type(kind) or "-",
        architecture(kind),
        str(node.capacity.get(GPU, 0)),
        format_quantity(node.capacity[CPU]),
        format_quantity(node.allocatable[CPU]),
        format_bytes(node.capacity[MEMORY]),
        format_bytes(node.allocatable[MEMORY]),
        format_bytes(node.capacity[STORAGE]),
        format_bytes(node.allocatable[STORAGE]),
        format_quantity(node.capacity[PODS]),
        node.labels.get("nvidia.com/gpu.product", "-"),
    )
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page(InProcessCloud(World(SimulatorConfig())).instance_types()))
