"""A provider without its edges: the ledger on a SQLite file, every job on it, the small cloud, a clock that is told."""

import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

from app.clock import FakeClock, SeededIds
from app.cloud.port import Cloud
from app.domain.books import Books
from app.domain.cloud import RecordCatalogue
from app.domain.decide import Command
from app.domain.envelope import Cause, Event, Recorded
from app.domain.ids import Mark, instance_name
from app.domain.instance.events import InstanceLost
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.nodegroup.commands import ApplyConfiguration, DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.observation import ObserveMachines
from app.domain.offering import Contract, InstanceType
from app.domain.service import StartService
from app.errors import StoreUnavailable
from app.ledger.ledger import Ledger
from app.reconcile.jobs.job import Bench, FirstLook, Job
from app.reconcile.jobs.observe import Observe
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.sweep import Sweep
from app.reconcile.jobs.terminate import Terminate
from app.reconcile.jobs.upkeep import Catalog, Deadlines, Housekeeping, WatchBalance
from app.store.store import Store

from .world import World

AUTOSCALER = Cause(actor="cluster-autoscaler", correlation_id="rpc-1")
TEN_SECONDS = timedelta(seconds=10)
H100_TYPE = InstanceType(
    name="1H100.80S.32V",
    cpus=32,
    memory_gb=Decimal(185),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="H100 SXM5 80GB",
    model="H100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("2.29"),
    spot_price=Decimal("0.8015"),
    currency="usd",
)


def spec(name: str = "h100", **settings: Any) -> NodeGroupSpec:
    """A node group of up to twenty machines, on demand, at two places."""
    values: dict[str, Any] = {
        "name": name,
        "min_size": 0,
        "max_size": 20,
        "instance_type": "1H100.80S.32V",
        "image": "ubuntu-24.04",
        "locations": ("FIN-01", "FIN-03"),
    }
    return NodeGroupSpec.model_validate(values | settings)


class Inline(Executor):
    """Does what is submitted before it returns."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Call it now."""
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class Trap(Store):
    """The store, with a trap that springs when certain facts are about to be written."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.on_append: Callable[[Sequence[Recorded[Event]]], None] = lambda _: None
        self.on_appended: Callable[[Sequence[Recorded[Event]]], None] = lambda _: None

    def append(self, recorded: Sequence[Recorded[Event]], books: Books) -> None:
        """Spring the trap, or write."""
        self.on_append(recorded)
        super().append(recorded, books)
        self.on_appended(recorded)


def refuses_to_write(_recorded: Sequence[Recorded[Event]]) -> None:
    """For a trap: the disk is full."""
    raise StoreUnavailable("the disk is full")


@dataclass(kw_only=True)
class House:
    """One process after another on one database; `restart` is a kill and a new start."""

    path: Path
    clock: FakeClock = field(default_factory=FakeClock)
    executor: Executor = field(default_factory=Inline)
    parallel: int = 10
    loss_brake: float = 0.2
    ledger: Ledger = field(init=False)
    trap: Trap = field(init=False)
    world: World = field(init=False)
    ids: SeededIds = field(default_factory=lambda: SeededIds(7))
    log: list[Recorded[Event]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Open, with an empty cloud beside it."""
        self.world = World(clock=self.clock, types=(H100_TYPE,))
        self.open()

    def open(self) -> None:
        """A new process takes the database over. What jobs remember is fresh."""
        self.trap = Trap(self.path)
        self.ledger = Ledger(self.trap, self.clock)
        self.ledger.open("the test")
        self.ledger.subscribe(self.log.extend)
        first_look = FirstLook(self.ledger.head.position)
        bench = Bench(ledger=self.ledger, cloud=self.cloud, clock=self.clock, ids=self.ids, first_look=first_look)
        self.observe = Observe(bench=bench, loss_brake=self.loss_brake)
        self.provision = Provision(bench=bench, executor=self.executor, parallel=self.parallel)
        self.terminate = Terminate(bench=bench)
        self.catalog = Catalog(bench=bench, every=timedelta(minutes=5))
        self.balance = WatchBalance(bench=bench)
        self.deadlines = Deadlines(bench=bench)
        self.housekeeping = Housekeeping(bench=bench)
        self.sweep = Sweep(bench=bench)

    def close(self) -> None:
        """Let go of the database."""
        self.ledger.close()

    def restart(self) -> None:
        """Everything that was only in memory is lost."""
        self.close()
        self.open()

    @property
    def cloud(self) -> Cloud:
        """What the jobs talk to."""
        return self.world

    # --- wishes

    def execute(self, command: Command) -> Sequence[Recorded[Event]]:
        """As the autoscaler would through an RPC."""
        return self.ledger.execute(command, AUTOSCALER)

    def start(self, *groups: NodeGroupSpec) -> None:
        """Everything that a first start records before it serves."""
        self.execute(
            StartService(
                installation_id="inst1", version="1", host="pod-0", pid=1, sqlite_version="3", backend="simulator"
            )
        )
        self.configure(*groups)
        self.execute(RecordCatalogue(types=(H100_TYPE,)))
        self.execute(ObserveMachines(machines=(), backend="simulator", claim=False))

    def configure(self, *groups: NodeGroupSpec) -> None:
        """The node groups from now on."""
        sha256 = repr(groups)
        self.execute(ApplyConfiguration(specs=groups, sha256=sha256, cluster_name="c1"))

    def grow(self, delta: int = 1, group: str = "h100") -> tuple[str, ...]:
        """Scale up; the names of the new instances."""
        names = tuple(instance_name(group, self.ids.suffix()) for _ in range(delta))
        self.execute(IncreaseSize(node_group=group, delta=delta, names=names))
        return names

    def delete(self, *names: str, group: str = "h100") -> None:
        """Scale down."""
        self.execute(DeleteNodes(node_group=group, instances=names))

    def shrink(self, delta: int, group: str = "h100") -> None:
        """Release wishes."""
        self.execute(DecreaseTargetSize(node_group=group, delta=-delta))

    # --- time

    def tick(self, *jobs: Job) -> None:
        """Every job once, or these, then ten seconds pass."""
        for job in jobs or (self.provision, self.terminate, self.observe, self.deadlines):
            job.run()
        self.clock.advance(TEN_SECONDS)

    def ticks(self, count: int, *jobs: Job) -> None:
        """So many times ten seconds."""
        for _ in range(count):
            self.tick(*jobs)

    def look(self, times: int = 1) -> None:
        """So many listings, ten seconds apart."""
        self.ticks(times, self.observe)

    def provision_until_quiet(self) -> None:
        """Run the job as often as the facts it records would wake it."""
        before = -1
        while before != self.position():
            before = self.position()
            self.provision.run()

    def running(self, count: int = 1, group: str = "h100") -> tuple[str, ...]:
        """Scale up until all run and have been seen running for a while."""
        names = self.grow(count, group)
        while any(self.state(name) == "requested" for name in names):
            self.provision.run()
        self.world.boot()
        self.ticks(2, self.observe)
        assert {self.state(name) for name in names} == {"running"}
        return names

    # --- looks

    @property
    def books(self) -> Books:
        """The current books."""
        return self.ledger.books

    @property
    def now(self) -> datetime:
        """The time."""
        return self.clock.now()

    def instance(self, name: str) -> Instance:
        """The instance of that name."""
        return self.books.instances[name]

    def state(self, name: str) -> str:
        """Where the instance stands."""
        return str(self.instance(name).state)

    def has_seen_the_cloud(self) -> bool:
        """It serves from then on."""
        return self.books.cloud.first_reached_at is not None

    def target(self, group: str = "h100") -> int:
        """The group's target size."""
        return self.books.target_size(group)

    def told(self, name: str) -> list[str]:
        """What the log has about an instance since the house was built, as event types without the category."""
        return [item.event.type.partition(".")[2] for item in self.log if item.stream == f"instance-{name}"]

    def lost(self) -> dict[str, str]:
        """Which instances the log calls lost, and why."""
        return {item.event.instance: str(item.event.end) for item in self.log if isinstance(item.event, InstanceLost)}

    def types(self) -> list[str]:
        """All event types since the house was built."""
        return [item.event.type for item in self.log]

    def position(self) -> int:
        """The end of the log."""
        return self.ledger.head.position

    def machine(self, hostname: str, instance_id: str = "id-by-hand", **settings: Any) -> Machine:
        """A machine of ours as an earlier process might have made it."""
        group = hostname.rpartition("-")[0]
        values: dict[str, Any] = {
            "instance_id": instance_id,
            "hostname": hostname,
            "status": "running",
            "description": Mark(cluster="c1", installation="inst1", group=group).text(),
            "instance_type": "1H100.80S.32V",
            "image": "ubuntu-24.04",
            "location": "FIN-01",
            "contract": Contract.ON_DEMAND,
            "price_per_hour": Decimal("2.29"),
            "created_at": self.clock.now(),
        }
        return Machine(**(values | settings))


def copy_database(source: Path, directory: Path) -> Path:
    """A copy of a closed database; making one anew takes many times as long."""
    for file in source.parent.glob(f"{source.name}*"):
        shutil.copy(file, directory)
    return directory / source.name
