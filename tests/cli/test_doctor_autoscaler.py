"""`doctor` on the way between autoscaler and provider: what the port shows, and when somebody last asked."""

import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from prometheus_client import generate_latest

from app.cli.checks import autoscaler
from app.cli.checks.finding import Finding, Verdict
from app.config.load import load
from app.config.model import Config
from app.metrics import Metrics
from app.rpc.server import RpcServer
from app.rpc.tls import TlsFiles
from tests.rpc.authority import Authority
from tests.rpc.serving import serving
from tests.store.harness import opened

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
TOKEN = "0123456789abcdef0123"


class Told:
    """An HTTP port that tells these metrics to whoever has the token."""

    def __init__(self) -> None:
        self.metrics = Metrics()
        registry = self.metrics.registry

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                allowed = self.headers["Authorization"] == f"Bearer {TOKEN}"
                body = generate_latest(registry) if allowed else b""
                self.send_response(200 if allowed else 401)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Nothing: the test's output is not a log."""

        self._server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.server_address[1]
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02})
        self._thread.start()

    def close(self) -> None:
        """Be gone."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def told() -> Iterator[Told]:
    """What the server tells of itself, who began at ten o'clock."""
    made = Told()
    made.metrics.started.set((NOON - timedelta(hours=2)).timestamp())
    yield made
    made.close()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """Who signs the server's certificate."""
    return Authority(tmp_path)


def served(directory: Path, tls: TlsFiles | None) -> Iterator[RpcServer]:
    """A server on a free port."""
    with opened(directory / "provider.db") as ledger, serving(ledger, tls=tls) as server:
        yield server


@pytest.fixture
def server(tmp_path: Path, authority: Authority) -> Iterator[RpcServer]:
    """With mutual TLS."""
    yield from served(tmp_path, authority.files)


def configuration(directory: Path, server: RpcServer, told: Told, files: TlsFiles | None) -> Config:
    """Of that server."""
    (directory / "token").write_text(TOKEN)
    settings: dict[str, Any] = {
        "listen": f"127.0.0.1:{server.port}",
        "http": {"listen": f"127.0.0.1:{told.port}", "token_file": str(directory / "token")},
        "node_groups": {},
    }
    if files is not None:
        settings["tls"] = {"cert": str(files.cert), "key": str(files.key), "client_ca": str(files.client_ca)}
    (directory / "config.yaml").write_text(yaml.safe_dump(settings))
    return load(directory / "config.yaml", environ={}).config


@pytest.fixture
def config(tmp_path: Path, server: RpcServer, told: Told, authority: Authority) -> Config:
    """As the doctor reads it."""
    return configuration(tmp_path, server, told, authority.files)


def looked(config: Config) -> dict[str, Finding]:
    """What the doctor finds at noon."""
    return {finding.check: finding for finding in autoscaler.reach(config, NOON)}


def test_who_asked_lately_is_well(config: Config, told: Told) -> None:
    """The names of the certificate are told, because the autoscaler must dial one of them."""
    told.metrics.observe_rpc("Refresh", "OK", 0.001, NOON - timedelta(seconds=8))
    found = looked(config)
    assert {finding.verdict for finding in found.values()} == {Verdict.FINE}
    assert found["server"].seen == (
        f"{config.listen} shows a certificate for localhost, 127.0.0.1; the autoscaler must dial one of those"
    )
    assert found["autoscaler"].seen == "asked 8 s ago"


def test_who_has_fallen_silent_is_told(config: Config, told: Told) -> None:
    """The last call was five minutes ago, at whatever it ended."""
    told.metrics.observe_rpc("Refresh", "UNAVAILABLE", 0.001, NOON - timedelta(minutes=5))
    found = looked(config)["autoscaler"]
    assert (found.verdict, found.seen) == (Verdict.WARNING, "asked 5 min ago, and no more")


def test_who_never_asked_is_told_what_it_needs(config: Config, told: Told) -> None:
    """A minute after the start everybody would have."""
    found = looked(config)["autoscaler"]
    assert (found.verdict, found.seen) == (Verdict.WARNING, "has not asked since the start 2 h ago")
    assert "--cloud-provider=externalgrpc" in found.remedy
    told.metrics.started.set((NOON - timedelta(seconds=20)).timestamp())
    assert looked(config)["autoscaler"].verdict is Verdict.UNKNOWN


def test_a_caller_who_is_not_on_the_list_is_not_the_autoscaler(config: Config, told: Told) -> None:
    """It reaches the port, and still the cluster does not grow."""
    told.metrics.observe_rpc("Refresh", "PERMISSION_DENIED", 0.001, NOON)
    found = looked(config)["autoscaler"]
    assert found.verdict is Verdict.WRONG
    assert "tls.allowed_clients" in found.remedy


def test_a_certificate_that_could_not_be_taken_is_found(config: Config, authority: Authority) -> None:
    """The server goes on with the old one, which ends some day."""
    authority.ca.issue_cert("localhost").cert_chain_pems[0].write_to_path(authority.files.cert)  # and the key stays
    found = looked(config)["server"]
    assert found.verdict is Verdict.WARNING
    assert found.seen.endswith(f"shows another certificate than {authority.files.cert} holds")


def test_a_port_that_speaks_plain_text_is_found(tmp_path: Path, told: Told, authority: Authority) -> None:
    """A server that still runs with the configuration before."""
    for server in served(tmp_path, None):
        found = looked(configuration(tmp_path, server, told, authority.files))["server"]
        assert found.verdict is Verdict.WRONG
        assert "speaks no TLS" in found.seen


def test_pages_that_do_not_answer_leave_it_open(config: Config, tmp_path: Path) -> None:
    """No guess about the autoscaler; the token is not told."""
    (tmp_path / "token").write_text("another-token-altogether")
    found = looked(config)["autoscaler"]
    assert found.verdict is Verdict.UNKNOWN
    assert "401" in found.seen
    assert "another-token" not in found.seen + found.remedy
