"""Metrics: names, labels and the registry. Nothing is global: a `Metrics` is made in bootstrap and handed round."""

from collections.abc import Callable, Iterable, Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, Info
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

PREFIX = "verda_ca"
_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5)
_SLOW = (0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)


class Metrics:
    """Everything that is counted as it happens; what can be read from the books is collected at scrape time."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.rpc_requests = self._counter("rpc_requests", "RPCs answered, by gRPC status.", "method", "code")
        self.rpc_duration = self._histogram("rpc_duration_seconds", "Time to answer an RPC.", _FAST, "method")
        self.job_runs = self._counter("job_runs", "Runs of background jobs (ok, store, error).", "job", "outcome")
        self.job_duration = self._histogram("job_duration_seconds", "Duration of job runs.", _SLOW, "job")
        self.api_calls = self._counter("api_calls", "Calls to the cloud, by outcome.", "operation", "outcome")
        self.api_duration = self._histogram("api_duration_seconds", "Duration of calls.", _SLOW, "operation")
        self.events = self._counter("events", "Events appended to the log.", "type")
        self.build = Info(f"{PREFIX}_build", "Versions, and which cloud is in use.", registry=self.registry)
        self.started = Gauge(
            f"{PREFIX}_start_time_seconds", "When this process began, seconds since 1970.", registry=self.registry
        )

    def _counter(self, name: str, words: str, *labels: str) -> Counter:
        return Counter(f"{PREFIX}_{name}", words, labels, registry=self.registry)

    def _histogram(self, name: str, words: str, buckets: Sequence[float], *labels: str) -> Histogram:
        return Histogram(f"{PREFIX}_{name}", words, labels, buckets=buckets, registry=self.registry)

    def observe_rpc(self, method: str, code: str, seconds: float) -> None:
        """Count an answered RPC."""
        self.rpc_requests.labels(method, code).inc()
        self.rpc_duration.labels(method).observe(seconds)

    def observe_job(self, job: str, outcome: str, seconds: float) -> None:
        """Count a run of a job."""
        self.job_runs.labels(job, outcome).inc()
        self.job_duration.labels(job).observe(seconds)

    def observe_api(self, operation: str, outcome: str, seconds: float) -> None:
        """Count a call to the cloud."""
        self.api_calls.labels(operation, outcome).inc()
        self.api_duration.labels(operation).observe(seconds)

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
