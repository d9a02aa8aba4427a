"""Ledgers and logs to measure with."""

from decimal import Decimal
from pathlib import Path
from typing import Final

from app.clock import SystemClock, SystemIds
from app.domain.cloud import RecordCatalogue
from app.domain.envelope import Cause
from app.domain.nodegroup.commands import ApplyConfiguration, IncreaseSize
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.observation import ObserveMachines
from app.domain.offering import InstanceType
from app.domain.service import StartService
from app.ledger.ledger import Ledger, open_ledger

CAUSE: Final = Cause(actor="bench", correlation_id="bench")
KIND: Final = InstanceType(
    name="1A100.22V",
    cpus=22,
    memory_gb=Decimal(120),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="A100 SXM4 80GB",
    model="A100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("1.290"),
    spot_price=Decimal("0.4515"),
    currency="usd",
)


def group(name: str, max_size: int) -> NodeGroupSpec:
    """A node group of that name."""
    return NodeGroupSpec(
        name=name, min_size=0, max_size=max_size, instance_type=KIND.name, image="ubuntu-24.04", locations=("FIN-01",)
    )


def prepared(path: Path, **sizes: int) -> Ledger:
    """A ledger that serves: a group of each name, able to grow to 5,000, with so many instances wanted."""
    ledger = open_ledger(path, SystemClock(), "bench")
    start = StartService(
        installation_id="bench", version="0", host="bench", pid=1, sqlite_version="", backend="simulator"
    )
    ledger.execute(start, CAUSE)
    specs = tuple(group(name, 5000) for name in sizes)
    ledger.execute(ApplyConfiguration(specs=specs, sha256="bench", cluster_name="bench"), CAUSE)
    ledger.execute(RecordCatalogue(types=(KIND,)), CAUSE)
    ledger.execute(ObserveMachines(machines=(), backend="simulator", claim=False), CAUSE)
    for name, size in sizes.items():
        grow(ledger, name, size)
    return ledger


def grow(ledger: Ledger, name: str, count: int) -> tuple[str, ...]:
    """Want so many more; their names."""
    ids = SystemIds()
    names = tuple({f"{name}-{ids.suffix()}" for _ in range(count)})
    if names:
        ledger.execute(IncreaseSize(node_group=name, delta=len(names), names=names), CAUSE)
    return names
