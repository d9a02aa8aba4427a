"""The provider under test: real ledger on a SQLite file, real handlers, real jobs, stepped by hand."""

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, Future
from datetime import timedelta
from hashlib import sha256
from pathlib import Path
from string import ascii_lowercase
from typing import Any, Final

from app.clock import FakeClock, Ids
from app.domain.books import Books
from app.domain.envelope import Cause
from app.domain.nodegroup.commands import ApplyConfiguration
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.service import StartService
from app.kube.jobs.bench import Bench as ClusterBench
from app.kube.jobs.clean_up import CleanUp
from app.kube.jobs.cluster import TendCluster
from app.kube.jobs.join import Join, LearnTemplates, RepairProviderIds
from app.kube.jobs.prepare import PrepareNodes
from app.kube.troubles import Troubles
from app.ledger.ledger import Ledger
from app.ledger.serving import obstacles
from app.reconcile.jobs.job import Bench, Job
from app.reconcile.jobs.observe import Observe
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.sweep import Sweep
from app.reconcile.jobs.terminate import Terminate
from app.reconcile.jobs.upkeep import Catalog, Deadlines, Housekeeping
from app.reconcile.scheduler import Scheduled, Scheduler
from app.rpc.cloudprovider import CloudProvider
from app.rpc.interceptors import Edge
from app.rpc.server import RpcServer, build_server
from app.simulator.inprocess import InProcessCloud
from app.store.store import Store

from .kubernetes import Kubernetes
from .wires import Channel, Dial, Handlers, Port

DATABASE: Final = "provider.db"
GPU_LABEL: Final = "verda.com/gpu"
_CAUSE: Final = Cause(actor="service", correlation_id="stage")


class Killed(BaseException):
    """The process ends between two lines, without any clean-up."""


class NumberedIds:
    """Names that count up: `aaaaaaab`, `aaaaaaac`."""

    def __init__(self) -> None:
        self._count = 0

    def suffix(self) -> str:
        """Eight letters."""
        return self._word(8)

    def token(self) -> str:
        """Sixteen letters."""
        return self._word(16)

    def _word(self, length: int) -> str:
        self._count += 1
        number, letters = self._count, ""
        while number:
            number, digit = divmod(number, len(ascii_lowercase))
            letters = ascii_lowercase[digit] + letters
        return letters.rjust(length, "a")


class AtOnce(Executor):
    """A pool that is always free and never slow."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Do a piece of work; nobody waits for its result."""
        fn(*args, **kwargs)
        return Future()


class Process:
    """One installation of the provider over its lives. The cloud and the database outlive each of them."""

    def __init__(
        self, directory: Path, cloud: InProcessCloud, clock: FakeClock, ids: Ids, kubernetes: Kubernetes | None = None
    ) -> None:
        self.outcomes: Counter[tuple[str, str]] = Counter()
        self.answers: Counter[tuple[str, str]] = Counter()
        self._path = directory / DATABASE
        self._cloud = cloud
        self._clock = clock
        self._ids = ids
        self._kubernetes = kubernetes
        self.troubles = Troubles()
        self._store: Store | None = None
        self._ledger: Ledger | None = None
        self._scheduler: Scheduler | None = None
        self._handlers: Handlers | None = None
        self._server: RpcServer | None = None
        self._channel: Channel | None = None

    @property
    def ledger(self) -> Ledger:
        """The ledger of the living process."""
        assert self._ledger is not None, "the provider is not running"
        return self._ledger

    @property
    def books(self) -> Books:
        """What the provider knows."""
        return self.ledger.books

    @property
    def is_alive(self) -> bool:
        """It runs."""
        return self._ledger is not None

    @property
    def handlers(self) -> Handlers | None:
        """What answers calls, None while it does not run."""
        return self._handlers

    @property
    def channel(self) -> Channel | None:
        """A real connection, None while it does not run or if no port is open."""
        return self._channel

    def start(self, specs: Sequence[NodeGroupSpec], port: Port | None = None) -> None:
        """Open the database, apply the configuration, run every job once, answer."""
        self._store = Store(self._path)
        self._ledger = ledger = Ledger(self._store, self._clock)
        ledger.open("stage")
        ledger.execute(
            StartService(
                installation_id=self._ids.token(),
                version="0",
                host="stage",
                pid=1,
                sqlite_version="0",
                backend=self._cloud.backend,
            ),
            _CAUSE,
        )
        self.configure(specs)
        self._scheduler = self._build_scheduler(ledger)
        ledger.subscribe(self._scheduler.on_recorded)
        edge = Edge(self._clock, self._ids, gate=lambda: obstacles(ledger.books), observer=self._observe_call)
        self._handlers = Handlers(CloudProvider(ledger, self._clock, self._ids, GPU_LABEL), edge)
        if port is not None:
            self._server = build_server(
                ledger=ledger,
                clock=self._clock,
                ids=self._ids,
                address="127.0.0.1:0",
                gpu_label=GPU_LABEL,
                observer=self._observe_call,
                tls=port.tls,
            )
            self._server.start()
            self.redial(port.dial)
        self.run_all()

    def redial(self, dial: Dial) -> None:
        """Have the autoscaler connect in another way."""
        assert self._server is not None, "the provider does not listen"
        if self._channel is not None:
            self._channel.close()
        self._channel = Channel(dial(self._server.port))

    def configure(self, specs: Sequence[NodeGroupSpec]) -> None:
        """Bring a configuration into effect, as a start or a reload does."""
        digest = sha256(repr(specs).encode()).hexdigest()
        command = ApplyConfiguration(specs=tuple(specs), sha256=digest, cluster_name="stage")
        self.ledger.execute(command, _CAUSE)

    def _build_scheduler(self, ledger: Ledger) -> Scheduler:
        bench = Bench(ledger=ledger, cloud=self._cloud, clock=self._clock, ids=self._ids)
        second = timedelta(seconds=1)  # nothing runs by itself here
        jobs: Sequence[Job] = (
            Observe(bench=bench, loss_brake=0.2, claim=False),
            Catalog(bench=bench, every=timedelta(minutes=5)),
            Provision(bench=bench, executor=AtOnce(), parallel=8, wake=self._wake_provision),
            Terminate(bench=bench),
            Deadlines(bench=bench),
            Housekeeping(bench=bench),
            Sweep(bench=bench),
            *self._cluster_jobs(ledger),
        )
        return Scheduler([Scheduled(job=job, every=second) for job in jobs], self._clock, self._observe_run)

    def _cluster_jobs(self, ledger: Ledger) -> Sequence[Job]:
        if self._kubernetes is None:
            return ()
        bench = ClusterBench(ledger=ledger, cluster=self._kubernetes, clock=self._clock, ids=self._ids)
        works = (
            Join(bench=bench, repairs=True),
            RepairProviderIds(bench=bench),
            LearnTemplates(bench=bench),
            PrepareNodes(bench=bench, labels=True),
            CleanUp(bench=bench, grace=timedelta(minutes=5), most=10),
        )
        return (TendCluster(bench=bench, works=works, troubles=self.troubles),)

    def _wake_provision(self) -> None:
        if self._scheduler is not None:
            self._scheduler.wake(Provision.name)

    def _observe_run(self, job: str, outcome: str, _seconds: float) -> None:
        self.outcomes[job, outcome] += 1

    def _observe_call(self, method: str, code: str, _seconds: float) -> None:
        self.answers[method, code] += 1

    def run_all(self) -> None:
        """Every job once, and what that wakes."""
        self.run("observe", "catalog", "provision", "terminate", "deadlines", "housekeeping", "sweep")

    def run(self, *names: str) -> None:
        """These jobs once, and what that wakes."""
        assert self._scheduler is not None
        for name in names:
            self._scheduler.runners[name]()
        self.run_wanted()

    def run_wanted(self) -> None:
        """Whatever was woken, until nothing is left to do."""
        while self._scheduler is not None and any(runner.is_wanted for runner in self._scheduler.runners.values()):
            for runner in list(self._scheduler.runners.values()):
                if runner.is_wanted:
                    runner()

    def stop(self) -> None:
        """End in order."""
        if self._ledger is not None:
            self._let_go()
            self._ledger.close()
            self._ledger = None

    def kill(self) -> None:
        """End as with kill -9: what is committed is there, nothing else, and nobody notes a clean end."""
        if self._ledger is not None and self._store is not None:
            self._let_go()
            self._store._disconnect()
            self._store._lock.release()
            self._ledger = None

    def _let_go(self) -> None:
        if self._channel is not None:
            self._channel.close()
        if self._server is not None:
            self._server.server.stop(None).wait(5)
        self._channel = self._server = self._handlers = self._scheduler = None
