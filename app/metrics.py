"""Metrics: names, labels and the registry. Nothing is global: a `Metrics` is made in bootstrap and handed round."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

PREFIX = "verda_ca"
OK = "ok"
"""The outcome of a job's run or a call that went well."""

NOT_ALLOWED = "PERMISSION_DENIED"
"""The gRPC status of a caller whose certificate is not on the list."""

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_BOOT = (15, 30, 60, 90, 120, 180, 240, 300, 420, 600, 900, 1800, 3600)
_SLOW = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """What a metric is called on the wire, and what it says."""

    name: str
    kind: str
    words: str
    labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Computed:
    """A gauge that is computed at every scrape from what is true then."""

    short_name: str
    words: str
    labels: tuple[str, ...] = ()

    @property
    def description(self) -> Description:
        """For the page of metrics."""
        return Description(name=f"{PREFIX}_{self.short_name}", kind="gauge", words=self.words, labels=self.labels)

    def family(self) -> GaugeMetricFamily:
        """An empty family to add this scrape's values to."""
        return GaugeMetricFamily(f"{PREFIX}_{self.short_name}", self.words, labels=self.labels)

    def value(self, value: float) -> GaugeMetricFamily:
        """The one value of a gauge without labels."""
        family = self.family()
        family.add_metric((), value)
        return family


class Metrics:
    """Everything that is counted as it happens; what can be read from the books is collected at scrape time."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.described: list[Description] = []
        self.rpc_requests = self._counter("rpc_requests", "RPCs answered, by gRPC status.", "method", "code")
        self.rpc_last = self._gauge(
            "rpc_last_time_seconds", "When the autoscaler was last answered, since 1970; 0 if not since the start."
        )
        self.rpc_duration = self._histogram("rpc_duration_seconds", "Time to answer an RPC.", _FAST, "method")
        self.job_runs = self._counter("job_runs", "Runs of background jobs (ok, store, error).", "job", "outcome")
        self.job_duration = self._histogram("job_duration_seconds", "Duration of job runs.", _SLOW, "job")
        self.api_calls = self._counter("api_calls", "Calls to the cloud, by outcome.", "operation", "outcome")
        self.api_duration = self._histogram("api_duration_seconds", "Duration of calls.", _SLOW, "operation")
        self.joining = self._histogram(
            "node_joining_seconds",
            "Time from a machine seen running to its node registered, and to its node ready.",
            _BOOT,
            "node_group",
            "step",
        )
        self.scripts = self._gauge(
            "startup_scripts", "Startup scripts at Verda when they were last listed: ours, and all.", "owner"
        )
        self.scripts_limit = self._gauge("startup_scripts_limit", "Startup scripts that a project may have.")
        self.events = self._counter("events", "Events appended to the log.", "type")
        self.creation_failures = self._counter(
            "creation_failures", "Instances that could not be had, by reason.", "node_group", "code"
        )
        self.job_success = self._gauge(
            "job_last_success_time_seconds", "When a job last ended well, since 1970.", "job"
        )
        self.api_success = self._gauge(
            "api_last_success_time_seconds",
            "When a call to the cloud last went well, since 1970: the age of listing, catalogue and prices.",
            "operation",
        )
        self.suspicions = self._counter("suspicious_listings", "Listings that were not believed, by kind.", "kind")
        self.backup_time = self._gauge("backup_time_seconds", "When the newest backup was made, seconds since 1970.")
        self.backup_position = self._gauge("backup_log_position", "Position of the log that the newest backup has.")
        self.build = Info(f"{PREFIX}_build", "Versions, and which cloud is in use.", registry=self.registry)
        self._describe("build_info", "gauge", "Versions, and which cloud is in use.", ("version", "sqlite", "backend"))
        self.started = self._gauge("start_time_seconds", "When this process began, seconds since 1970.")

    def _describe(self, name: str, kind: str, words: str, labels: Sequence[str]) -> None:
        self.described.append(Description(name=f"{PREFIX}_{name}", kind=kind, words=words, labels=tuple(labels)))

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        self._describe(f"{name}_total", "counter", words, labels)
        return Counter(f"{PREFIX}_{name}", words, labels, registry=self.registry)

    def _gauge(self, name: str, words: str, *labels: str) -> Gauge:
        self._describe(name, "gauge", words, labels)
        return Gauge(f"{PREFIX}_{name}", words, labels, registry=self.registry)

    def _histogram(self, name: str, words: str, buckets: Sequence[float], *labels: str) -> Histogram:
        self._describe(name, "histogram", words, labels)
        return Histogram(f"{PREFIX}_{name}", words, labels, buckets=buckets, registry=self.registry)

    def observe_rpc(self, method: str, code: str, seconds: float, at: datetime) -> None:
        """Count an RPC that was answered at this time. Whoever may not ask is not the autoscaler."""
        self.rpc_requests.labels(method, code).inc()
        self.rpc_duration.labels(method).observe(seconds)
        if code != NOT_ALLOWED:
            self.rpc_last.set(at.timestamp())

    def observe_job(self, job: str, outcome: str, seconds: float, at: datetime) -> None:
        """Count a run of a job that ended at this time."""
        self.job_runs.labels(job, outcome).inc()
        self.job_duration.labels(job).observe(seconds)
        if outcome == OK:
            self.job_success.labels(job).set(at.timestamp())

    def observe_joining(self, node_group: str, event_type: str, seconds: float) -> None:
        """Count a machine that has become a node (`registered`) or a ready one (`ready`)."""
        step = "ready" if event_type.endswith("joined") else "registered"
        self.joining.labels(node_group, step).observe(seconds)

    def observe_api(self, operation: str, outcome: str, seconds: float, at: datetime) -> None:
        """Count a call to the cloud that ended at this time."""
        self.api_calls.labels(operation, outcome).inc()
        self.api_duration.labels(operation).observe(seconds)
        if outcome == OK:
            self.api_success.labels(operation).set(at.timestamp())

    def observe_scripts(self, ours: int, everybodys: int) -> None:
        """Tell how many startup scripts were listed."""
        self.scripts.labels("ours").set(ours)
        self.scripts.labels("all").set(everybodys)

    def observe_suspicion(self, kind: str) -> None:
        """Count a listing that is odd."""
        self.suspicions.labels(kind).inc()

    def observe_backup(self, made_at: datetime, position: int) -> None:
        """Remember the newest backup."""
        self.backup_time.set(made_at.timestamp())
        self.backup_position.set(position)

    def collect_with(self, collect: Callable[[], Iterable[Metric]]) -> None:
        """Have these metrics computed at every scrape."""
        self.registry.register(_Computed(collect))


class _Computed(Collector):
    def __init__(self, collect: Callable[[], Iterable[Metric]]) -> None:
        self._collect = collect

    def collect(self) -> Iterable[Metric]:
        return self._collect()

    def describe(self) -> Iterable[Metric]:
        return ()
