import logging
import threading
from datetime import timedelta

import pytest
from pydantic import SecretStr
from verda import VerdaClient, __version__  # type: ignore[import-untyped]  # the SDK ships no py.typed
from verda.authentication import AuthenticationService  # type: ignore[import-untyped]  # likewise
from verda.http_client import HTTPClient  # type: ignore[import-untyped]  # likewise

from app.cli.ports import free_port
from app.cloud.port import Cloud
from app.cloud.verda import DEFAULT_BASE_URL, CallReport, Limits, Outcome, VerdaCloud
from app.cloud.verda.sdk import check_sdk
from app.errors import ConfigurationError

from .conftest import MakeCloud
from .toy import INSTANCE, ORDER, SECRET, Toy, instance, ok


def test_construction_does_no_network(toy: Toy, make_cloud: MakeCloud) -> None:
    """A provider must start while Verda is down."""
    make_cloud()
    make_cloud(base_url=f"http://127.0.0.1:{free_port()}/v1")
    assert toy.all_seen == []


def test_a_trailing_slash_of_the_base_url_does_not_reach_the_wire(toy: Toy, make_cloud: MakeCloud) -> None:
    """The SDK would ask for `//instances`."""
    toy.on("GET", "/instances", ok([]))
    assert make_cloud(base_url=toy.base_url + "/").list_instances() == []
    assert [seen.path for seen in toy.all_seen] == ["/v1/oauth2/token", "/v1/instances"]


@pytest.mark.parametrize("base_url", ["", "api.verda.com/v1", "ftp://api.verda.com/v1", "https:///v1"])
def test_a_base_url_that_cannot_work_is_refused(base_url: str) -> None:
    """Better at start than as a network failure that looks temporary."""
    with pytest.raises(ValueError, match="base URL"):
        VerdaCloud(base_url=base_url, client_id="client", client_secret=SECRET)


@pytest.mark.parametrize(("client_id", "secret"), [("", SECRET), ("client", "")])
def test_missing_credentials_are_refused(client_id: str, secret: str) -> None:
    """Without them every call would fail as if the API refused us."""
    with pytest.raises(ValueError, match="client id and a client secret"):
        VerdaCloud(client_id=client_id, client_secret=secret)


@pytest.mark.parametrize("client_id", ["clïent", "cli\nent", "client\x00"])
def test_a_client_id_that_breaks_a_header_is_refused(client_id: str) -> None:
    """The SDK puts the beginning of it into every User-Agent."""
    with pytest.raises(ValueError, match="printable ASCII"):
        VerdaCloud(client_id=client_id, client_secret=SECRET)


@pytest.mark.parametrize("share", [0.0, -1.0, 1.01])
def test_a_share_of_the_rate_limit_that_makes_no_sense_is_refused(share: float) -> None:
    """None at all would stop everything, more than all would break the limit."""
    with pytest.raises(ValueError, match="share"):
        VerdaCloud(client_id="client", client_secret=SECRET, limits=Limits(rate_share=share))


def test_it_is_the_official_sdk_and_the_port() -> None:
    """What sends is replaced by subclassing, nothing is patched."""
    cloud: Cloud = VerdaCloud(client_id="client", client_secret=SecretStr(SECRET))
    assert isinstance(cloud, VerdaCloud)
    client = cloud._client
    assert isinstance(client, VerdaClient)
    assert isinstance(client._http_client, HTTPClient)
    assert isinstance(client._authentication, AuthenticationService)
    assert client.constants.base_url == DEFAULT_BASE_URL
    assert cloud.backend == "verda"


def test_the_backend_says_when_it_is_a_simulator(make_cloud: MakeCloud) -> None:
    """Nobody should ever wonder which one is real."""
    assert make_cloud(backend="simulator").backend == "simulator"


def test_the_installed_sdk_is_the_one_relied_on() -> None:
    """The lock file and this code agree."""
    check_sdk()


def test_a_changed_sdk_is_named_with_its_version_and_every_difference() -> None:
    """Private members may change in any release; better to say so at start than to fail at the first order."""

    class Changed:
        def _request(self, verb: str) -> None: ...

    with pytest.raises(ConfigurationError) as raised:
        check_sdk(((Changed, "_request", ("self", "method")), (Changed, "_build_path", ("self",))))
    words = str(raised.value)
    assert f"verda SDK {__version__}" in words
    assert "Changed._request: takes (self, verb) instead of (self, method)" in words
    assert "Changed._build_path: is missing" in words


def test_no_repr_shows_the_secret(make_cloud: MakeCloud) -> None:
    """Reprs end in logs and tracebacks."""
    cloud = make_cloud()
    things: list[object] = [cloud, cloud._client, cloud._http, cloud._client._authentication, cloud._transport]
    for thing in things:
        assert SECRET not in repr(thing)
        assert SECRET not in repr(vars(thing))


def test_the_environment_changes_nothing(
    toy: Toy, make_cloud: MakeCloud, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """A proxy variable would break loopback, and a netrc entry would silently replace the token."""
    netrc = tmp_path_factory.mktemp("home") / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{free_port()}")
    toy.on("GET", "/instances", ok([]))
    make_cloud().list_instances()
    assert toy.seen("GET", "/instances")[0].headers["Authorization"] == "Bearer token-1"


def test_connections_are_kept_for_reads_and_fresh_for_orders(toy: Toy, make_cloud: MakeCloud) -> None:
    """A kept connection may be dead without our knowing, which would leave the outcome of an order unknown."""
    toy.on("GET", "/instances", ok([]))
    toy.on("POST", "/instances", ok(INSTANCE, 202))
    cloud = make_cloud()
    for _ in range(3):
        cloud.list_instances()
        cloud.create_instance(ORDER)
    reads = {seen.connection for seen in toy.seen("GET", "/instances")}
    others = [seen.connection for seen in toy.all_seen if seen.method == "POST"]
    assert len(reads) == 1
    assert len(set(others) - reads) == len(others) == 4


def test_cookies_are_not_kept(toy: Toy, make_cloud: MakeCloud) -> None:
    """A load balancer's cookie must not pin all calls to one sick replica."""
    toy.on("GET", "/instances", ok([], Set_Cookie="replica=7; Path=/"))
    cloud = make_cloud()
    cloud.list_instances()
    cloud.list_instances()
    assert all("Cookie" not in seen.headers for seen in toy.all_seen)


def test_a_kept_connection_that_the_server_closed_is_replaced(toy: Toy, make_cloud: MakeCloud) -> None:
    """Servers drop idle connections all the time."""
    toy.on("GET", "/instances", ok([], Connection="close"), ok([]))
    cloud = make_cloud()
    cloud.list_instances()
    cloud.list_instances()
    assert len({seen.connection for seen in toy.seen("GET", "/instances")}) == 2


def test_every_call_is_reported(toy: Toy, make_cloud: MakeCloud) -> None:
    """Metrics and logs hang on this."""
    reports: list[CallReport] = []
    toy.on("GET", "/instances", ok([]), ok({}), ok("x", 418))
    cloud = make_cloud(observer=reports.append)
    cloud.list_instances()
    for _ in range(2):
        with pytest.raises(Exception, match=r"unreadable|HTTP 418"):
            cloud.list_instances()
    assert [(each.operation, each.outcome, each.status, each.code) for each in reports] == [
        ("list_instances", Outcome.OK, 200, ""),
        ("list_instances", Outcome.UNKNOWN, 200, "unreadable_answer"),
        ("list_instances", Outcome.UNKNOWN, 418, "http_418"),
    ]
    assert all(0 < each.duration_s < 2 for each in reports)


def test_an_observer_that_fails_does_not_cost_us_the_answer(toy: Toy, make_cloud: MakeCloud) -> None:
    """A mistake in somebody's metrics must not lose the id of a machine that bills."""

    def broken(_: CallReport) -> None:
        raise RuntimeError("no such label")

    toy.on("GET", "/instances", ok([instance()]))
    assert len(make_cloud(observer=broken).list_instances()) == 1


def test_many_threads_share_one_client(toy: Toy, make_cloud: MakeCloud, caplog: pytest.LogCaptureFixture) -> None:
    """Jobs run side by side; they share the token, and no connection is thrown away with a warning."""
    toy.on("GET", "/instances", ok([instance()]))
    cloud = make_cloud(timeout=timedelta(seconds=5))
    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.append(len(cloud.list_instances()))) for _ in range(16)]
    with caplog.at_level(logging.WARNING):
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert found == [1] * 16
    assert toy.logins == 1
    assert caplog.records == []
