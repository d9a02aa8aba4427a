"""One life of the provider's process: built on the database it finds, like the composition root builds it."""

import hashlib
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path

from app.clock import FakeClock, SeededIds
from app.domain.envelope import Cause, Event, Recorded
from app.domain.nodegroup.commands import ApplyConfiguration
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.service import StartService
from app.ledger.ledger import Ledger
from app.reconcile.jobs.job import Bench, FirstLook, Job
from app.reconcile.jobs.observe import Observe
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.scripts import ScriptDesk, Scripts
from app.reconcile.jobs.sweep import Sweep
from app.reconcile.jobs.terminate import Terminate
from app.reconcile.jobs.upkeep import Catalog, Deadlines, Housekeeping
from app.reconcile.scheduler import _WAKES as WAKES
from tests.simulation import setting
from tests.simulation.agenda import Agenda, Slot, StrandPool
from tests.simulation.cloud import MoodyCloud
from tests.simulation.effects import Disk, Effects, FragileStore
from tests.simulation.rpc import Rpc

_PROVISION = Provision.name


class Life:
    """The ledger, the jobs and the RPCs of one process. `die` and `stop` end it."""

    def __init__(
        self,
        *,
        path: Path,
        clock: FakeClock,
        ids: SeededIds,
        cloud: MoodyCloud,
        agenda: Agenda,
        effects: Effects,
        disk: Disk,
    ) -> None:
        self._clock = clock
        self._ids = ids
        self._cloud = cloud
        self._agenda = agenda
        self.store = FragileStore(path, effects, disk)
        self.ledger = Ledger(self.store, clock)

    def start(self, specs: Sequence[NodeGroupSpec], listener: Callable[[Sequence[Recorded[Event]]], None]) -> None:
        """Open the database, note the start and the configuration, have the jobs run.

        Raises:
            StoreError: the database cannot be opened or written.
            Crash: the process dies at its start.
        """
        self.ledger.subscribe(listener)
        self.ledger.subscribe(self._wake)
        self.ledger.open("simulation")
        cause = Cause(actor="service", correlation_id=self._ids.token())
        started = StartService(
            installation_id=self._ids.token(),
            version="0",
            host="simulation",
            pid=1,
            sqlite_version="0",
            backend=self._cloud.backend,
            once_reached=self.ledger.once_reached,
        )
        self.ledger.execute(started, cause)
        self.configure(specs)
        self.rpc = Rpc(self.ledger, self._clock, self._ids, StrandPool(self._agenda, "spelling"))
        now = self._agenda.now_ms
        self._agenda.slots = {
            job.name: Slot(job=job, every_ms=round(every.total_seconds() * 1000), due_ms=now)
            for job, every in self._jobs()
        }

    def configure(self, specs: Sequence[NodeGroupSpec]) -> None:
        """Note the configuration, at the start or because it has changed.

        Raises:
            StoreError: the database cannot be written.
            Crash: the process dies at it.
        """
        sha256 = hashlib.sha256("".join(spec.model_dump_json() for spec in specs).encode()).hexdigest()
        configured = ApplyConfiguration(specs=tuple(specs), sha256=sha256, cluster_name=setting.CLUSTER)
        self.ledger.execute(configured, Cause(actor="service", correlation_id=self._ids.token()))

    def _jobs(self) -> Sequence[tuple[Job, timedelta]]:
        first_look = FirstLook(self.ledger.head.position)
        bench = Bench(ledger=self.ledger, cloud=self._cloud, clock=self._clock, ids=self._ids, first_look=first_look)
        scripts = Scripts(bench=bench, look_every=timedelta(minutes=10))
        provision = Provision(
            bench=bench,
            desk=ScriptDesk(bench=bench, keeper=scripts, sources=setting.SCRIPTS),
            executor=StrandPool(self._agenda, "create"),
            parallel=setting.PARALLEL,
            wake=lambda: self._agenda.want(_PROVISION),
        )
        five, ten = timedelta(seconds=5), timedelta(seconds=10)
        return (
            (Observe(bench=bench, loss_brake=setting.LOSS_BRAKE), ten),
            (provision, five),
            (Terminate(bench=bench), five),
            (Catalog(bench=bench, every=timedelta(minutes=5)), ten),
            (Deadlines(bench=bench), five),
            (Housekeeping(bench=bench), timedelta(minutes=10)),
            (Sweep(bench=bench), timedelta(minutes=10)),
            (scripts, five),
        )

    def _wake(self, recorded: Sequence[Recorded[Event]]) -> None:
        for item in recorded:
            job = WAKES.get(type(item.event))
            if job is not None:
                self._agenda.want(job)

    def die(self) -> None:
        """Be killed: nothing in memory survives, nothing is noted."""
        self._agenda.drop()
        self.store.die()

    def stop(self) -> None:
        """End as the operator wishes; what is under way is left to the next start."""
        self._agenda.drop()
        self.ledger.close()
