"""The dashboard as it is served: what it says, to whom, and that nothing from outside can act on it."""

import base64
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path

import pytest

from app.domain.offering import Contract
from app.errors import ConfigurationError, OutcomeUnknown, Rejected, StoreUnavailable
from app.ledger.serving import Reason
from app.web.archive import DayCost, EventLine, SizeChange
from app.web.guard import read_token, shown_token
from tests.reconcile.house import House, spec
from tests.reconcile.world import does_not_list, refuses

from .site import Site

TOKEN = "0123456789abcdef0123"


class Unreadable:
    """An archive whose disk is gone."""

    def events(self, _limit: int) -> Sequence[EventLine]:
        """It cannot be read."""
        raise StoreUnavailable("the disk is gone")

    def size_changes(self, _since: datetime) -> Sequence[SizeChange]:
        """Never asked."""
        raise AssertionError

    def costs(self, _since: date) -> Sequence[DayCost]:
        """Never asked."""
        raise AssertionError


def test_a_first_day(house: House) -> None:
    """Two groups, nothing rented: empty is said in words, and the price of the first machine is there."""
    with Site(house) as site:
        page = site.page()
    assert page.rows("groups") == [
        ["h100", "1H100.80S.32V", "0", "0 to 20", "none", "$2.29", "-"],
        ["spot", "1H100.80S.32V", "0", "0 to 20", "none", "$0.80", "-"],
    ]
    assert "Nothing needs attention." in page.texts["health"]
    assert "ready Nodes wanted 0 Cost an hour $0.00" in page.texts["health"]
    assert "No instances: nothing is rented, and nothing is wanted." in page.texts["instances"]
    assert "No machine has cost anything." in page.texts["costs"]
    assert "cluster c1 , cloud simulator, version 1.2.3" in page.texts[""]


def test_groups_and_instances(house: House) -> None:
    """Two running for three hours at 2.29, one wanted: sizes, states, costs worked out by hand."""
    house.running(2)
    house.clock.advance(timedelta(hours=3) - timedelta(seconds=20))
    (wanted,) = house.grow(1)
    with Site(house) as site:
        page = site.page()
    assert page.rows("groups")[0] == [
        *("h100", "1H100.80S.32V", "3", "0 to 20", "1 requested 2 running", "$2.29", "$4.58")
    ]
    newest, second, first = page.rows("instances")
    assert newest == [wanted, "requested", "-", "-", "-", "0 s", "-", "-"]
    assert second[1:] == first[1:] == ["running", "1H100.80S.32V", "FIN-01", "on-demand", "3 h", "$2.29", "$6.87"]
    assert "3 instances" in page.texts["instances"]
    assert "Nodes wanted 3 Cost an hour $4.58" in page.texts["health"]


def test_notes_of_groups(house: House) -> None:
    """At its maximum; retired with a machine; a retired one without machines is not shown any more."""
    house.running(1)
    house.configure(spec(max_size=1))
    with Site(house) as site:
        assert [row[0] for row in site.page().rows("groups")] == ["h100 at its maximum"]
        house.configure(spec("other"))
        rows = site.page().rows("groups")
    assert [row[0] for row in rows] == ["h100 retired: it only shrinks", "other"]
    assert rows[0][3] == "0 to 1"


def test_health_names_reasons(house: House) -> None:
    """An outage is worth a look and keeps nobody from being ready; what optional parts say stands beside it."""
    house.world.on_list.append(does_not_list(OutcomeUnknown("maintenance", code="maintenance")))
    house.observe.run()
    odd = Reason(code="cluster-unreachable", message="the API server does not answer")
    with Site(house, optional=[odd]) as site:
        page = site.page()
    assert "cloud-unreachable the cloud does not answer since 2026-01-05" in page.texts["health"]
    assert "cluster-unreachable the API server does not answer" in page.texts["health"]
    assert "Why it is not ready" not in page.texts["health"]
    assert "<title>Ready - Verda cloud provider</title>" in page.html


def test_not_ready(tmp_path: Path) -> None:
    """A new database that has seen no cloud yet: the title, the state and the reasons say so."""
    house = House(path=tmp_path / "new.db")
    try:
        with Site(house) as site:
            page = site.page()
    finally:
        house.close()
    assert "<title>Not ready - Verda cloud provider</title>" in page.html
    assert "cloud-never-reached the cloud was never reached: no listing has come back yet" in page.texts["health"]
    assert "no-catalogue the catalogue of instance types was never read" in page.texts["health"]
    assert "There are no node groups in the configuration." in page.texts["groups"]


def test_filters_and_pages(house: House) -> None:
    """By group and by state, a hundred a page; nonsense in the address shows what there is."""
    house.configure(spec(max_size=250), spec("spot", contracts=(Contract.SPOT,)))
    house.grow(205)
    house.grow(2, "spot")
    with Site(house) as site:
        first = site.page()
        assert "207 instances, page 1 of 3" in first.texts["instances"]
        assert len(first.rows("instances")) == 100
        assert first.rows("instances")[0][0].startswith("spot-")
        assert len(site.page("/?page=3").rows("instances")) == 7
        for odd in ("/?page=99", "/?page=3&x=<script>"):
            assert len(site.page(odd).rows("instances")) == 7
        for odd in ("/?page=-1", "/?page=two", "/?page=", f"/?page={'9' * 5000}"):
            assert len(site.page(odd).rows("instances")) == 100
        assert [row[0][:5] for row in site.page("/?group=spot").rows("instances")] == ["spot-", "spot-"]
        assert "207 instances" in site.page("/?state=requested").texts["instances"]
        assert "No such instances." in site.page("/?state=running&group=h100").texts["instances"]
        last = [a["href"] for tag, a in site.page("/?group=h100").attributes if tag == "a"][-3]
    assert last == "/?group=h100&state=&page=3#instances"


def test_the_past(house: House) -> None:
    """A machine of two hours: its events in words, the target size going up and down, its cost on its day."""
    (name,) = house.running(1)
    house.clock.advance(timedelta(hours=2) - timedelta(seconds=20))
    house.delete(name)
    house.ticks(4)
    assert house.state(name) == "gone"
    with Site(house) as site:
        page = site.page()
    assert page.rows("costs") == [["2026-01-05", "$4.58", "", "h100 $4.58"]]
    assert "h100 0 now, 0 to 1" in page.texts["sizes"]
    labels = [a["aria-label"] for tag, a in page.attributes if tag == "svg" and "aria-label" in a]
    assert labels[0] == "Target size of h100: between 0 and 1 in the last 24 hours, 0 now"
    assert f"{name} to be deleted (scale-down)" in page.texts["events"]
    events = page.texts["events"]
    assert events.index(f"{name} to be deleted") < events.index(f"{name} wanted")


def test_books_are_shown_while_the_past_cannot_be_read(house: House) -> None:
    """A page that fails as a whole would be of no use when it is needed most."""
    house.running(1)
    with Site(house, archive=Unreadable()) as site:
        page = site.page()
    assert "The past cannot be read: the disk is gone" in page.texts["past-trouble"]
    assert page.rows("groups")[0][2] == "1"


def test_words_from_the_cloud_stay_words(house: House) -> None:
    """An error message is the cloud's, and it must not become part of the page."""
    nasty = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"
    house.world.on_create.append(refuses(Rejected(nasty, code="invalid_request")))
    house.grow(1)
    house.provision_until_quiet()
    odd = Reason(code="odd", message=nasty)
    with Site(house, optional=[odd]) as site:
        page = site.page("/?group=<script>alert(3)</script>")
        shown = site.page()
    for one in (page, shown):
        assert [a for tag, a in one.attributes if tag == "script"] == [{"src": "/static/dashboard.js", "defer": None}]
        assert [tag for tag, _ in one.attributes if tag == "img"] == []
    assert nasty in shown.texts["health"]
    assert nasty in shown.rows("instances")[0][0]


def test_nothing_from_elsewhere(house: House) -> None:
    """Clusters may be offline: every address on the page is of this server, and the browser is told to hold to it."""
    with Site(house) as site:
        answer = site.get()
        addresses = [a.get("href") or a.get("src") for _, a in site.page().attributes if "href" in a or "src" in a]
        assert all(address is not None and address[0] in "/#" for address in addresses)
        for path in {address for address in addresses if address and address.startswith("/static/")}:
            assert site.get(path).status == 200
        assert site.get("/static/../pages.py").status == 404
        assert site.get("/no-such-page").status == 404
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_it_is_read_only(house: House) -> None:
    """No method but GET and HEAD does anything."""
    with Site(house) as site:
        before = house.position()
        statuses = [_status(site, method) for method in ("POST", "PUT", "DELETE", "PATCH")]
    assert statuses == [405] * 4
    assert house.position() == before


def _status(site: Site, method: str) -> int:
    import http.client  # noqa: PLC0415 - nobody else needs a method of its own

    connection = http.client.HTTPConnection(site.url.removeprefix("http://"), timeout=30)
    connection.request(method, "/")
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    """A file with the token, as a Secret gives it, with a line's end."""
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return path


def bearer(token: str) -> dict[str, str]:
    """As Prometheus shows it."""
    return {"Authorization": f"Bearer {token}"}


def basic(user: str, token: str) -> dict[str, str]:
    """As a browser shows it."""
    return {"Authorization": "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()}


def test_a_provider_that_stops_lives_and_is_not_ready(house: House) -> None:
    """Whoever sends it calls turns away before it refuses them."""
    stopping = Reason(code="stopping", message="the provider is stopping")
    with Site(house, required=[stopping]) as site:
        assert site.get("/healthz").status == 200
        answer = site.get("/readyz")
        assert (answer.status, '"code":"stopping"' in answer.text) == (503, True)


def test_token_opens_everything_but_health_which_is_open(house: House, token_file: Path) -> None:
    """A kubelet has none; everybody else shows it as bearer or as the password that a browser asks for."""
    with Site(house, token_file=token_file) as site:
        assert site.get("/healthz").status == 200
        assert site.get("/readyz").status == 200
        for path in ("/", "/metrics", "/metrics/", "/static/dashboard.css", "/no-such-page"):
            refused = site.get(path)
            assert refused.status == 401, path
            assert "h100" not in refused.text
            assert refused.headers["www-authenticate"].partition(" ")[0] in {"Basic", "Bearer"}
        for headers in (bearer(TOKEN), {"Authorization": f"bearer  {TOKEN} "}, basic("", TOKEN), basic("me", TOKEN)):
            assert site.get("/", headers).status == 200
            assert site.get("/metrics", headers).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer(""),
        bearer(TOKEN[:-1]),
        bearer(TOKEN + "0"),
        bearer("é" * 20),
        basic("me", "wrong-password-0123"),
        {"Authorization": "Basic %%%"},
        {"Authorization": "Basic " + base64.b64encode(TOKEN.encode()).decode()},
        {"Authorization": f"Digest {TOKEN}"},
        {"Authorization": TOKEN},
        {"Cookie": f"token={TOKEN}"},
    ],
)
def test_anything_else_is_refused(house: House, token_file: Path, headers: dict[str, str]) -> None:
    """Near misses, other schemes, broken encodings."""
    with Site(house, token_file=token_file) as site:
        assert site.get("/", {key: value.encode().decode("latin-1") for key, value in headers.items()}).status == 401


def test_a_new_token_holds_at_once_and_none_lets_nobody_in(house: House, token_file: Path) -> None:
    """Rotation without a restart; a file that goes missing must not open the pages."""
    with Site(house, token_file=token_file) as site:
        token_file.write_text("another-token-of-this-length")
        assert site.get("/", bearer(TOKEN)).status == 401
        assert site.get("/", bearer("another-token-of-this-length")).status == 200
        for damage in (lambda: token_file.write_text(""), token_file.unlink):
            damage()
            assert site.get("/", bearer("")).status == 401
            assert site.get("/", bearer("another-token-of-this-length")).status == 401


@pytest.mark.parametrize(
    "content", [None, b"", b"short", b"\n\n", "zu kurz für ASCII äöü".encode(), b"with\x00zero" * 3]
)
def test_what_is_no_token_is_refused_at_start(tmp_path: Path, content: bytes | None) -> None:
    """With the key and the remedy, never with what the file holds."""
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        read_token(path)
    (problem,) = caught.value.problems
    assert problem.path == "http.token_file"
    assert str(path) in problem.message
    assert "short" not in problem.message


def test_passwords_may_hold_colons() -> None:
    """Only the first one ends the user's name."""
    assert shown_token(basic("a", "b:c")["Authorization"]) == b"b:c"
