"""What the tests of the store and of the ledger are made of: a group, a catalogue, a ledger on a file, plain looks."""

import resource
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from types import ModuleType
from typing import Any

from app.clock import FakeClock
from app.domain.books import Books
from app.domain.cloud import RecordCatalogue
from app.domain.envelope import Cause, Event, Recorded
from app.domain.nodegroup.commands import ApplyConfiguration, IncreaseSize
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.observation import ObserveMachines
from app.domain.offering import Contract, InstanceType
from app.domain.service import StartService
from app.ledger.ledger import Ledger
from app.store import schema
from app.store.store import Store

LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
"""Earlier than anything that ends in a test, so that nothing ended is left out of the books."""

CA = Cause(actor="cluster-autoscaler", correlation_id="rpc-1")
SERVICE = Cause(actor="service", correlation_id="start-1")

H100 = InstanceType(
    name="1H100.80S.30V",
    cpus=30,
    memory_gb=Decimal(120),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="H100 SXM5 80GB",
    model="H100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("2.40"),
    spot_price=Decimal("0.60"),
    currency="usd",
    supported_images=("ubuntu-24.04",),
)


def group(name: str = "gpu", **settings: Any) -> NodeGroupSpec:
    """A node group of H100 machines, three at most, at two places."""
    values: dict[str, Any] = {
        "name": name,
        "min_size": 0,
        "max_size": 3,
        "instance_type": H100.name,
        "image": "ubuntu-24.04",
        "locations": ("FIN-01", "FIN-03"),
        "contracts": (Contract.SPOT, Contract.ON_DEMAND),
    }
    return NodeGroupSpec.model_validate(values | settings)


def start(ledger: Ledger, *groups: NodeGroupSpec) -> None:
    """Everything a fresh installation records before it serves: six events."""
    ledger.execute(
        StartService(
            installation_id="inst1", version="0.1.0", host="pod-0", pid=7, sqlite_version="3.53.4", backend="simulator"
        ),
        SERVICE,
    )
    ledger.execute(
        ApplyConfiguration(specs=groups or (group(),), sha256="c0ffee", cluster_name="prod"),
        SERVICE,
    )
    ledger.execute(RecordCatalogue(types=(H100,)), SERVICE)
    ledger.execute(ObserveMachines(machines=(), backend="simulator", claim=False), SERVICE)


def one_more(name: str, node_group: str = "gpu") -> IncreaseSize:
    """The wish for one node of that name."""
    return IncreaseSize(node_group=node_group, delta=1, names=(name,))


@contextmanager
def opened(
    path: Path, clock: FakeClock | None = None, *, holder: str = "the test", module: ModuleType | None = None
) -> Iterator[Ledger]:
    """A ledger on a database file."""
    ledger = Ledger(Store(path, module=module), clock or FakeClock())
    ledger.open(holder)
    try:
        yield ledger
    finally:
        ledger.close()


def reopened(path: Path) -> Books:
    """The books as a new process would load them, with everything that ever ended."""
    store = Store(path)
    try:
        return store.open("the test again", LONG_AGO)
    finally:
        store.close()


def copied(path: Path, directory: Path) -> Path:
    """A copy of a closed database with its lock file; making one anew takes a hundred times as long."""
    for file in path.parent.glob(f"{path.name}*"):
        shutil.copy(file, directory)
    return directory / path.name


def plain(path: Path) -> closing[sqlite3.Connection]:
    """What a person at the `sqlite3` prompt has: no pragma of ours. Only on a store that is closed.

    Closing a second SQLite library's descriptor in one process would drop the locks of the first.
    """
    return closing(sqlite3.connect(path, isolation_level=None))


def altered(path: Path, statement: str) -> None:
    """Run a statement that the triggers would refuse, as somebody with the file can."""
    with plain(path) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute(statement)
        for _, sql in triggers:
            connection.execute(sql)


@contextmanager
def no_byte_written() -> Iterator[None]:
    """The system refuses every write to a file."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def rows(path: Path, query: str, *values: object) -> list[tuple[Any, ...]]:
    """The answer to a query on a closed database."""
    with plain(path) as connection:
        return connection.execute(query, values).fetchall()


def projections(path: Path) -> Mapping[str, Sequence[tuple[Any, ...]]]:
    """Every projection table of a closed database, whole, in the order of its key."""
    with plain(path) as connection:
        return {
            table.name: connection.execute(f"SELECT * FROM {table.name} ORDER BY 1").fetchall()  # noqa: S608 - our own
            for table in schema.PROJECTED
        }


def types_of(recorded: Sequence[Recorded[Event]]) -> list[str]:
    """The events' names in the log."""
    return [item.event.type for item in recorded]
