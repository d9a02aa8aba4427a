"""The website, put together from rooms that do not know each other: pages, gauges, and what each is told by whom."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from app.archive import StoredPast
from app.clock import Clock
from app.cloud.verda.cloud import VerdaCloud
from app.config.model import Config
from app.ledger.ledger import Ledger
from app.ledger.serving import Reason
from app.metrics import Metrics
from app.rpc.expiry import expiries
from app.store.space import file_sizes, free_bytes
from app.store.sqlite import sqlite_version
from app.web.book_metrics import book_metrics
from app.web.dashboard import Dashboard
from app.web.pages import Parts, build_pages
from app.web.process_metrics import Disk, Sources, Traffic, process_metrics
from app.web.server import WebServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Subjects:
    """What the website is about. `required` tells what keeps it from serving besides the state of its books.

    `optional` tells what hinders parts that scaling does not depend on.
    """

    config: Config
    ledger: Ledger
    cloud: VerdaCloud | None
    backend: str
    clock: Clock
    metrics: Metrics
    version: str
    is_alive: Callable[[], bool]
    required: Callable[[], Sequence[Reason]]
    optional: Callable[[], Sequence[Reason]]


def build_website(of: Subjects) -> WebServer:
    """The server of the HTTP port, bound and not started.

    Raises:
        ConfigurationError: the token's file holds none.
        WebError: the port is taken.
    """
    of.metrics.build.info({"version": of.version, "sqlite": sqlite_version(), "backend": of.backend})
    of.metrics.started.set(of.clock.now().timestamp())
    of.metrics.collect_with(lambda: book_metrics(of.ledger, of.clock.now(), of.optional()))
    sources = sources_of(of.config, of.cloud)
    of.metrics.collect_with(lambda: process_metrics(sources))
    dashboard = Dashboard(
        ledger=of.ledger,
        archive=StoredPast(database=of.config.database, clock=of.clock),
        clock=of.clock,
        version=of.version,
        optional=of.optional,
    )
    http = of.config.http
    pages = build_pages(
        Parts(
            ledger=of.ledger,
            registry=of.metrics.registry,
            is_alive=of.is_alive,
            dashboard=dashboard,
            required=of.required,
            optional=of.optional,
            token_file=http.token_file,
        )
    )
    return WebServer(pages, http.listen.host, http.listen.port)


def sources_of(config: Config, cloud: VerdaCloud | None) -> Sources:
    """The API's budget, the database's disk and the certificates, each as it is when asked."""
    certificates = certificate_files(config)
    return Sources(
        traffic=lambda: None if cloud is None else traffic_of(cloud),
        disk=lambda: Disk(files=file_sizes(config.database), free_bytes=free_bytes(config.database)),
        certificates=lambda: expiries(certificates),
    )


def traffic_of(cloud: VerdaCloud) -> Traffic:
    """What is left of the account's budget of requests."""
    return Traffic(requests_left=cloud.limiter.left(), hold_s=cloud.limiter.held_s(), circuit_open=cloud.circuit_open)


def certificate_files(config: Config) -> Mapping[str, Path]:
    """The certificates that people must renew, by the key that names them."""
    files: dict[str, Path] = {}
    if config.tls is not None:
        files |= {"tls.cert": config.tls.cert, "tls.client_ca": config.tls.client_ca}
    if config.expander is not None:
        files["expander.cert"] = config.expander.cert
    return files
