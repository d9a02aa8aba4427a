"""Whether an autoscaler can reach this provider: the port, what it shows there, and when somebody last asked."""

import socket
import ssl
import urllib.request
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta

from prometheus_client.parser import text_string_to_metric_families

from app.certificates import shown_in
from app.cli.checks.finding import Finding, fine, unknown, warning, wrong
from app.config.model import Config
from app.config.values import Address
from app.domain.words import span
from app.errors import ConfigurationError
from app.metrics import NOT_ALLOWED, PREFIX
from app.web.guard import read_token

_PATIENCE_S = 10.0
_OFTEN = timedelta(minutes=1)
"""An autoscaler asks every ten seconds, or every minute where somebody wants it slow."""

_ITS_LOG = "see the autoscaler's log; it wants --cloud-provider=externalgrpc, and in its cloud.yaml this address"


def reach(config: Config, now: datetime) -> Iterator[Finding]:
    """The server as the autoscaler meets it, and the autoscaler as the server has met it."""
    address: Address = config.listen
    try:
        with socket.create_connection((address.host, address.port), _PATIENCE_S):
            pass
    except OSError as error:
        remedy = "start `serve`, or run this where it runs"
        yield unknown("server", f"nobody listens on {address}: {error.strerror or error}", remedy)
        return
    yield _server(config)
    yield _autoscaler(config, now)


def _server(config: Config) -> Finding:
    address: Address = config.listen
    if config.tls is None:
        return fine("server", f"something listens on {address}")
    try:
        pem = ssl.get_server_certificate((address.host, address.port), timeout=_PATIENCE_S).encode()
    except (OSError, ValueError) as error:
        remedy = "restart `serve` with this configuration, or see what else has the port"
        return wrong("server", f"{address} speaks no TLS: {error}", remedy)
    shown = shown_in(pem)
    try:
        on_disk = shown_in(config.tls.cert.read_bytes())
    except (OSError, ValueError):
        on_disk = None  # the check of the files says so
    if on_disk is not None and on_disk.der != shown.der:
        remedy = "see the log for `changed certificates are not usable`; key and certificate must belong together"
        return warning("server", f"{address} shows another certificate than {config.tls.cert} holds", remedy)
    names = ", ".join(shown.names) or "no name at all"
    return fine("server", f"{address} shows a certificate for {names}; the autoscaler must dial one of those")


def _autoscaler(config: Config, now: datetime) -> Finding:
    where = f"http://{config.http.listen}/metrics"
    try:
        told = _metrics(where, config)
    except (OSError, ValueError, ConfigurationError) as error:
        remedy = "see whether `serve` runs with this configuration"
        return unknown("autoscaler", f"{where} does not tell when it last asked: {error}", remedy)
    last, began = told.get(f"{PREFIX}_rpc_last_time_seconds", 0.0), told.get(f"{PREFIX}_start_time_seconds", 0.0)
    if last:
        ago = now - datetime.fromtimestamp(last, UTC)
        if ago <= _OFTEN:
            return fine("autoscaler", f"asked {span(ago)} ago")
        return warning("autoscaler", f"asked {span(ago)} ago, and no more", "see whether it runs and leads")
    if told.get(NOT_ALLOWED):
        remedy = "add a name of the autoscaler's certificate to tls.allowed_clients"
        return wrong("autoscaler", "only callers have asked whose certificates are not allowed", remedy)
    up = now - datetime.fromtimestamp(began, UTC)
    if up <= _OFTEN:
        return unknown("autoscaler", f"has not asked in the {span(up)} since the start", "look again in a minute")
    return warning("autoscaler", f"has not asked since the start {span(up)} ago", _ITS_LOG)


def _metrics(where: str, config: Config) -> Mapping[str, float]:
    """Every sample by its name, and under `NOT_ALLOWED` how many calls were refused for that."""
    request = urllib.request.Request(where)  # noqa: S310 - http, as it stands above
    if config.http.token_file is not None:
        request.add_header("Authorization", f"Bearer {read_token(config.http.token_file).decode()}")
    without_proxies = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # it is this machine or its pod
    with without_proxies.open(request, timeout=_PATIENCE_S) as answer:
        text = answer.read().decode()
    told: dict[str, float] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            told[sample.name] = sample.value
            if sample.labels.get("code") == NOT_ALLOWED:
                told[NOT_ALLOWED] = told.get(NOT_ALLOWED, 0.0) + sample.value
    return told
