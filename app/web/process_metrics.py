"""Metrics of what is around the books: the API's budget, the disk, the certificates. Computed at every scrape."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from prometheus_client.metrics_core import Metric

from app.metrics import Computed

BUDGET = Computed(
    "rate_limit_requests_left", "Requests that may go to the API now, of our share of the project's limit."
)
HELD = Computed("rate_limit_hold_seconds", "How long the API told us to stay away, from now.")
BREAKER = Computed("circuit_open", "1 while calls fail at once because the network to the API is down.")
SIZE = Computed("database_size_bytes", "Size of the database and of its write-ahead log.", ("file",))
FREE = Computed("database_free_bytes", "Free space on the database's file system.")
CERTIFICATE = Computed(
    "certificate_expiry_time_seconds", "When the first certificate of a file ends, seconds since 1970.", ("file",)
)
PROCESS_METRICS = (BUDGET, HELD, BREAKER, SIZE, FREE, CERTIFICATE)
"""Everything that `process_metrics` yields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Traffic:
    """How much the API lets us do at this moment."""

    requests_left: int
    hold_s: float
    circuit_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Disk:
    """Where the log lies; None for what cannot be told."""

    files: Mapping[str, int]
    free_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Who knows: each is asked at every scrape and must be quick."""

    traffic: Callable[[], Traffic | None]
    disk: Callable[[], Disk]
    certificates: Callable[[], Mapping[str, datetime]]


def process_metrics(sources: Sources) -> Iterable[Metric]:
    """The API's budget, the disk, the certificates; nothing for what cannot be told."""
    traffic = sources.traffic()
    if traffic is not None:
        yield BUDGET.value(traffic.requests_left)
        yield HELD.value(traffic.hold_s)
        yield BREAKER.value(1 if traffic.circuit_open else 0)
    disk = sources.disk()
    size = SIZE.family()
    for name, count in disk.files.items():
        size.add_metric([name], count)
    yield size
    if disk.free_bytes is not None:
        yield FREE.value(disk.free_bytes)
    ends = CERTIFICATE.family()
    for name, end in sources.certificates().items():
        ends.add_metric([name], end.timestamp())
    yield ends
