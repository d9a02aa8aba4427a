"""The composition root: builds every part from the configuration, starts, drains and stops them. Nobody else does."""

import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from importlib.metadata import version
from pathlib import Path

from app.admin.protocol import socket_of
from app.admin.server import AdminServer
from app.clock import Clock, Ids, SystemClock, SystemIds
from app.cloud.own import placed
from app.cloud.port import SCRIPT_QUOTA
from app.cloud.verda.calls import CallReport
from app.cloud.webhook import Placed
from app.clouds import Backend, backend_of, build_clouds
from app.config import scripts
from app.config.load import LoadedConfig
from app.config.model import Config
from app.config.secrets import secrets_of
from app.config.specs import to_specs
from app.domain.cluster.learning import DiscardTemplates
from app.domain.envelope import Cause, Event, Recorded
from app.domain.instance.events import CreateFailed, NodeJoined, NodeRegistered
from app.domain.nodegroup.commands import ApplyConfiguration
from app.domain.ownership import OrphanPolicy
from app.domain.service import StartService
from app.kube.side import ClusterSide
from app.ledger.backups import Backup, BackupPlan, default_directory
from app.ledger.ledger import Ledger, open_ledger
from app.ledger.serving import Reason, obstacles
from app.log import get_logger, set_up_logging
from app.metrics import Metrics
from app.reconcile.jobs.job import Bench, FirstLook
from app.reconcile.jobs.observe import Observe
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.scripts import ScriptDesk, Scripts
from app.reconcile.jobs.sweep import Sweep
from app.reconcile.jobs.terminate import Terminate
from app.reconcile.jobs.upkeep import Backups, Catalog, Deadlines, Housekeeping, WatchBalance
from app.reconcile.scheduler import Scheduled, Scheduler
from app.reload import Origin, Reload
from app.rpc import expander as grpc_expander
from app.rpc.server import RpcServer, build_server
from app.rpc.tls import ServerFiles, TlsFiles
from app.simulator.config import SimulatorConfig
from app.simulator.http import Simulator
from app.startup.tokens import standing_tokens
from app.store.sqlite import sqlite_version
from app.web.scripts import one_time_pages
from app.web.server import WebServer
from app.website import Subjects, build_website

DISTRIBUTION = "verda-cloud-provider"
_RPC_GRACE_S = 2.0
_CREATE_GRACE_S = 1.0
_WORK_INTERVAL = timedelta(seconds=5)

_log = get_logger()


def plan_of(config: Config, clock: Clock) -> BackupPlan:
    """Where copies of the database go and when they are made."""
    return BackupPlan(
        database=config.database,
        directory=config.backup.directory or default_directory(config.database),
        every=config.backup.every,
        keep=config.backup.keep,
        clock=clock,
    )


class App:
    """A whole provider, built but not started. `start` and `stop` may each be called once."""

    def __init__(
        self, loaded: LoadedConfig, *, simulator: Simulator | None = None, origin: Origin | None = None
    ) -> None:
        """Open the database and bind the ports; calls no cloud. With an `origin` the configuration is read again.

        Raises:
            ConfigurationError: no credentials.
            StoreError: the database cannot be used.
            ListenError, WebError: a port is taken.
        """
        self._config = loaded.config
        self._clock: Clock = SystemClock()
        self._ids: Ids = SystemIds()
        self.metrics = Metrics()
        self._simulator = simulator
        self._plan = plan_of(self._config, self._clock)
        backend = backend_of(self._config, simulator)
        self._clouds = build_clouds(self._config, backend, self._clock, self._observe_api, self._own_machines)
        self._cloud = self._clouds.all
        kubernetes = self._config.kubernetes
        self._cluster = ClusterSide(kubernetes, self._clock) if kubernetes.enabled else None
        with contextlib.ExitStack() as undo:
            self.ledger = self._open_ledger(loaded, backend)
            undo.callback(self.ledger.close)
            self.rpc = self._build_rpc()
            undo.callback(self.rpc.server.stop, None)
            self._expander = self._build_expander()
            self.reload = self._build_reload(loaded, origin)
            self._mint = None if self._cluster is None else self._cluster.mint(self.ledger, self._ids)
            self._executor = ThreadPoolExecutor(self._config.verda.parallel_creates, thread_name_prefix="create")
            self.scheduler = self._build_scheduler()
            self.web = self._build_web()
            self.script_server = self._build_script_server()
            self._admin = AdminServer(
                self.ledger, self._ids, socket_of(Path(self._config.database)), self._cloud.list_instances
            )
            undo.pop_all()
        self.ledger.subscribe(self._on_recorded)

    def _own_machines(self) -> Sequence[Placed]:
        """Those that are on by the books; nobody asks before there are any."""
        return placed(self.ledger.books)

    def _observe_api(self, report: CallReport) -> None:
        self.metrics.observe_api(report.operation, report.outcome, report.duration_s, self._clock.now())

    def _observe_job(self, job: str, outcome: str, seconds: float) -> None:
        self.metrics.observe_job(job, outcome, seconds, self._clock.now())

    def _open_ledger(self, loaded: LoadedConfig, backend: Backend) -> Ledger:
        host, pid = socket.gethostname(), os.getpid()
        holder = f"process {pid} on {host}, started {self._clock.now():%Y-%m-%dT%H:%M:%SZ}"
        trusted = frozenset(self._config.database_network_filesystems)
        ledger = open_ledger(Path(self._config.database), self._clock, holder, trusted, self._plan)
        try:
            cause = Cause(actor="service", correlation_id=self._ids.token())
            ledger.execute(self._start_command(backend, host, pid, ledger.once_reached), cause)
            _apply(loaded, ledger, cause)
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _observe_backup(self, backup: Backup) -> None:
        self.metrics.observe_backup(backup.manifest.made_at, backup.manifest.position)

    def _start_command(self, backend: Backend, host: str, pid: int, once_reached: int | None) -> StartService:
        return StartService(
            installation_id=self._ids.token(),
            version=version(DISTRIBUTION),
            host=host,
            pid=pid,
            sqlite_version=sqlite_version(),
            backend=backend.name,
            once_reached=once_reached,
        )

    def _build_reload(self, loaded: LoadedConfig, origin: Origin | None) -> Reload | None:
        if origin is None:
            return None
        return Reload(
            origin,
            loaded,
            self.ledger,
            apply=lambda changed, cause: _apply(changed, self.ledger, cause),
            follow=self._follow,
            token=self._ids.token,
            servable=self._clouds.servable,
        )

    def _follow(self, loaded: LoadedConfig) -> None:
        """What a changed configuration means outside the books."""
        self._desk.replace_sources(scripts.sources(loaded.config))
        self._clouds.follow(loaded.config)
        log_as_configured(loaded)

    def _build_rpc(self) -> RpcServer:
        return build_server(
            ledger=self.ledger,
            clock=self._clock,
            ids=self._ids,
            address=str(self._config.listen),
            gpu_label=self._config.gpu_label,
            observer=self._observe_rpc,
            tls=self._tls_files(),
        )

    def _observe_rpc(self, method: str, code: str, seconds: float) -> None:
        self.metrics.observe_rpc(method, code, seconds, self._clock.now())

    def _build_expander(self) -> grpc_expander.ExpanderServer | None:
        expander = self._config.expander
        if expander is None:
            return None
        files = ServerFiles(cert=expander.cert, key=expander.key)
        return grpc_expander.build_expander(self.ledger, self._clock, str(expander.listen), files)

    def _tls_files(self) -> TlsFiles | None:
        tls = self._config.tls
        if tls is None:
            return None
        return TlsFiles(cert=tls.cert, key=tls.key, client_ca=tls.client_ca, allowed_clients=tls.allowed_clients)

    def _build_scheduler(self) -> Scheduler:
        bench = Bench(
            ledger=self.ledger,
            cloud=self._cloud,
            clock=self._clock,
            ids=self._ids,
            first_look=FirstLook(self.ledger.head.position),
        )
        every = self._config.intervals
        keeper = Scripts(bench=bench, look_every=every.housekeeping, observer=self.metrics.observe_scripts)
        self._desk = ScriptDesk(
            bench=bench,
            keeper=keeper,
            sources=scripts.sources(self._config),
            fetch_url=self._config.startup_script_server.url,
            mint=self._mint,
        )
        self.metrics.scripts_limit.set(SCRIPT_QUOTA)
        self.provision = Provision(
            bench=bench,
            desk=self._desk,
            executor=self._executor,
            parallel=self._config.verda.parallel_creates,
            wake=lambda: self.scheduler.wake(Provision.name),
        )
        observe = Observe(
            bench=bench,
            loss_brake=self._config.loss_brake,
            claim=self._config.claim == "auto",
            list_lag=self._config.verda.list_lag,
            orphans=OrphanPolicy(self._config.orphans),
            orphan_grace=self._config.orphan_grace,
            suspicious=self.metrics.observe_suspicion,
            wake=lambda: self.scheduler.wake(Provision.name),
        )
        copies = Backups(bench=bench, plan=self._plan, proven=self._observe_backup)
        return Scheduler(
            (
                *self._cluster_jobs(),
                *self._reload_jobs(),
                Scheduled(job=observe, every=every.observe),
                Scheduled(job=self.provision, every=_WORK_INTERVAL),
                Scheduled(job=Terminate(bench=bench), every=_WORK_INTERVAL),
                Scheduled(job=Catalog(bench=bench, every=every.catalog), every=every.observe),
                Scheduled(job=WatchBalance(bench=bench), every=every.catalog),
                Scheduled(job=Deadlines(bench=bench), every=_WORK_INTERVAL),
                Scheduled(job=Housekeeping(bench=bench), every=every.housekeeping),
                Scheduled(job=keeper, every=_WORK_INTERVAL),
                Scheduled(job=Sweep(bench=bench), every=every.housekeeping),
                Scheduled(job=copies, every=min(every.housekeeping, self._plan.every)),
            ),
            self._clock,
            self._observe_job,
        )

    def _cluster_jobs(self) -> Sequence[Scheduled]:
        if self._cluster is None or self._mint is None:
            return ()
        job = self._cluster.job(self.ledger, self._ids, self._mint, lambda: standing_tokens(self._desk.sources))
        return (Scheduled(job=job, every=self._config.intervals.observe),)

    def _reload_jobs(self) -> Sequence[Scheduled]:
        return () if self.reload is None else (Scheduled(job=self.reload, every=_WORK_INTERVAL),)

    def read_configuration_again(self) -> None:
        """Look at the configuration's files now, also if the main one seems unchanged."""
        if self.reload is not None:
            self.reload.ask()
            self.scheduler.wake(Reload.name)

    def _build_web(self) -> WebServer:
        if self.reload is not None:
            self.metrics.collect_with(self.reload.metrics)
        return build_website(
            Subjects(
                config=self._config,
                ledger=self.ledger,
                cloud=self._clouds.rented,
                backend=self._cloud.backend,
                clock=self._clock,
                metrics=self.metrics,
                version=version(DISTRIBUTION),
                is_alive=self.scheduler.is_alive,
                required=self.rpc.traffic.farewell,
                optional=self._optional_reasons,
            )
        )

    def _build_script_server(self) -> WebServer | None:
        address = self._config.startup_script_server.listen
        if address is None:
            return None
        pages = one_time_pages(self.ledger, self._ids, lambda: self._desk.sources, self._mint)
        return WebServer(pages, address.host, address.port)

    def _optional_reasons(self) -> Sequence[Reason]:
        cluster = () if self._cluster is None else self._cluster.reasons()
        return (*cluster, *(() if self.reload is None else self.reload.reasons()))

    def _on_recorded(self, recorded: Sequence[Recorded[Event]]) -> None:
        for item in recorded:
            self.metrics.events.labels(item.event.type).inc()
            if isinstance(item.event, CreateFailed):
                self.metrics.creation_failures.labels(item.event.node_group, item.event.code).inc()
            if isinstance(item.event, NodeRegistered | NodeJoined):
                self.metrics.observe_joining(item.event.node_group, item.event.type, item.event.waited_s)
        self.rpc.update_health()
        self.scheduler.on_recorded(recorded)

    @property
    def backend(self) -> str:
        """`verda` or `simulator`."""
        return self._cloud.backend

    def obstacles(self) -> tuple[Reason, ...]:
        """Why RPCs cannot be answered yet."""
        return obstacles(self.ledger.books)

    def start(self) -> None:
        """Answer RPCs and pages, run the jobs."""
        self.web.start()
        if self.script_server is not None:
            self.script_server.start()
        self.rpc.start()
        if self._expander is not None:
            self._expander.start()
        if self._cluster is not None:
            self._cluster.start()
        self.scheduler.start()
        self._admin.start()
        _log.info("started", backend=self.backend, grpc=str(self._config.listen), position=self.ledger.head.position)

    def stop(self) -> None:
        """Answer what is under way, begin nothing new, leave no effect without its record, close the database.

        A create call that does not end in time is left: its intent is in the log, and the next start looks for it.
        """
        _log.info("stopping", creates_in_flight=self.provision.in_flight)
        self.rpc.refuse()
        self._admin.stop()
        self.scheduler.stop()
        self.rpc.stop(_RPC_GRACE_S)
        if self._expander is not None:
            self._expander.stop(_RPC_GRACE_S)
        if self.script_server is not None:
            self.script_server.stop()
        self._executor.shutdown(wait=False, cancel_futures=True)
        self.provision.wait_idle(_CREATE_GRACE_S)
        self.ledger.close()
        if self._clouds.rented is not None:
            self._clouds.rented.close()
        if self._cluster is not None:
            self._cluster.close()
        self.web.stop()
        _log.info("stopped")


def _apply(loaded: LoadedConfig, ledger: Ledger, cause: Cause) -> None:
    """Bring the groups and the budget of the books in line with a configuration."""
    config = loaded.config
    configured = ApplyConfiguration(
        specs=to_specs(config),
        sha256=loaded.sha256,
        cluster_name=config.cluster_name or ledger.books.installation.installation_id,
        max_hourly_cost=config.max_hourly_cost,
        balance_runway_s=None if config.balance_runway is None else int(config.balance_runway.total_seconds()),
    )
    ledger.execute(configured, cause)
    if not config.kubernetes.learn_templates:
        ledger.execute(DiscardTemplates(), cause)


def log_as_configured(loaded: LoadedConfig) -> None:
    """Level and form of the log, which never holds a secret of this configuration."""
    log = loaded.config.logging
    secrets = {*secrets_of(loaded.config)} - {loaded.config.verda.client_id}  # a pair of one word hides nothing
    set_up_logging(log.level, log.format, secrets=secrets)


def embedded_simulator(host: str, port: int, state_file: Path) -> Simulator:
    """A simulator for trying things out: real time, about 20 s to a running machine, its world kept in a file.

    Raises:
        OSError: the address is taken.
    """
    config = SimulatorConfig.model_validate({"durations": {"preset": "demo"}, "state_file": state_file})
    return Simulator(config, host=host, port=port)


def wait_until_serving(app: App, stop: threading.Event) -> bool:
    """Wait until RPCs can be answered or a stop is asked for; whether they can."""
    while app.obstacles():
        if stop.wait(0.05):
            return False
    return True
