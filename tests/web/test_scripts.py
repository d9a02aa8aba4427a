"""The script server: a machine's script leaves once, for its token, and every fetch is in the log."""

import re
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from app.clock import SeededIds
from app.domain.cluster.joins import ObserveNodes
from app.domain.explain.group import explain_group
from app.domain.nodegroup.commands import DeleteNodes
from app.domain.offering import Contract
from app.errors import ClusterError, ClusterUnavailable
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.scripts import ScriptDesk, Scripts
from app.startup.sources import ScriptSource
from app.web.scripts import Shop, one_time_pages, plain_pages
from tests.reconcile.house import H100_TYPE, House, spec

SECRET = "abcdef.0123456789abcdef"
TEMPLATE = "#!/bin/sh\njoin {{ join_token }} {{ hostname }} {{ contract }} {{ location }}\n"
SOURCE = ScriptSource(template=TEMPLATE, values={"join_token": lambda: SECRET})
URL = "http://10.0.0.10:8088/script"


@pytest.fixture
def house(tmp_path: Path) -> Iterator[House]:
    """A provider whose machines fetch their scripts."""
    house = House(path=tmp_path / "provider.db")
    house.start(spec(startup_script="text", contracts=(Contract.SPOT,)))
    bench = house.provision.bench
    keeper = Scripts(bench=bench, look_every=house.books.groups["h100"].spec.startup_script_keep)
    desk = ScriptDesk(bench=bench, keeper=keeper, sources={"h100": SOURCE}, fetch_url=URL)
    house.provision = Provision(bench=bench, executor=house.executor, parallel=house.parallel, desk=desk)
    yield house
    house.close()


@pytest.fixture
def client(house: House) -> Iterator[TestClient]:
    """A machine's curl."""
    with TestClient(one_time_pages(house.ledger, SeededIds(3), lambda: {"h100": SOURCE})) as client:
        yield client


def bearer(token: str) -> dict[str, str]:
    """The header that shows a token."""
    return {"Authorization": f"Bearer {token}"}


def token_of(house: House, name: str) -> str:
    """What the uploaded stub carries."""
    text = next(text for stored, text in house.world.texts.values() if f":{name}:" in stored)
    assert SECRET not in text
    assert URL in text
    found = re.search(r"Authorization: Bearer ([a-z2-7]{32})", text)
    assert found is not None
    return found[1]


def test_a_machine_fetches_its_script_once(house: House, client: TestClient) -> None:
    """The real script with its secrets never rests at the cloud; the second fetch is refused and written down."""
    (name,) = house.grow()
    house.provision_until_quiet()
    token = token_of(house, name)
    first = client.get("/script", headers=bearer(token))
    assert (first.status_code, first.text) == (200, f"#!/bin/sh\njoin {SECRET} {name} spot FIN-01\n")
    assert first.headers["cache-control"] == "no-store"
    second = client.get("/script", headers=bearer(token))
    assert (second.status_code, second.text) == (410, "the script was fetched before\n")
    told = [item.event.sentence for item in house.log if item.event.type == "instance.script-fetched"]
    assert told == [
        f"the startup script of {name} was asked for from testclient: served",
        f"the startup script of {name} was asked for from testclient: already-fetched",
    ]


def test_a_fetch_survives_a_restart_and_so_does_a_token(house: House) -> None:
    """The machine may boot while we do."""
    (name, other) = house.grow(2)
    house.provision_until_quiet()
    tokens = token_of(house, name), token_of(house, other)
    with TestClient(one_time_pages(house.ledger, SeededIds(3), lambda: {"h100": SOURCE})) as client:
        assert client.get("/script", headers=bearer(tokens[0])).status_code == 200
    house.restart()
    with TestClient(one_time_pages(house.ledger, SeededIds(4), lambda: {"h100": SOURCE})) as client:
        assert client.get("/script", headers=bearer(tokens[0])).status_code == 410
        assert client.get("/script", headers=bearer(tokens[1])).status_code == 200


class Mint:
    """Makes tokens; refuses while there is `trouble`."""

    def __init__(self) -> None:
        self.made: list[tuple[str, timedelta]] = []
        self.trouble: ClusterError | None = None

    def mint(self, instance: str, ttl: timedelta) -> str:
        """One after the other."""
        if self.trouble is not None:
            raise self.trouble
        self.made.append((instance, ttl))
        return f"tokn0{len(self.made)}.0123456789abcdef"


def test_a_join_token_is_made_when_the_machine_asks_for_its_script(house: House) -> None:
    """Never before, never for a refusal, and tried again by curl when the API server does not answer."""
    source = ScriptSource(template=TEMPLATE, minted={"join_token": timedelta(minutes=10)})
    mint = Mint()
    (name,) = house.grow()
    house.provision_until_quiet()
    token = token_of(house, name)
    with TestClient(one_time_pages(house.ledger, SeededIds(3), lambda: {"h100": source}, mint)) as client:
        mint.trouble = ClusterUnavailable("the API server is too slow")
        assert client.get("/script", headers=bearer(token)).status_code == 503
        mint.trouble = None
        answer = client.get("/script", headers=bearer(token))
        assert (answer.status_code, answer.text) == (
            200,
            f"#!/bin/sh\njoin tokn01.0123456789abcdef {name} spot FIN-01\n",
        )
        assert client.get("/script", headers=bearer(token)).status_code == 410
    assert mint.made == [(name, timedelta(minutes=10))]
    with TestClient(one_time_pages(house.ledger, SeededIds(3), lambda: {"h100": source})) as client:
        (other,) = house.grow()
        house.provision_until_quiet()
        assert client.get("/script", headers=bearer(token_of(house, other))).status_code == 503


@pytest.mark.parametrize("fetched", ["fetched", "never fetched"])
def test_a_machine_that_never_joins_tells_how_far_it_got(house: House, client: TestClient, fetched: str) -> None:
    """F41. Whether it asked for its script parts what is wrong with the machine from what is wrong with the join."""
    house.configure(spec(startup_script="text", contracts=(Contract.SPOT,), never_joined_breaker=1))
    (name,) = house.grow()
    house.provision_until_quiet()
    token = token_of(house, name)
    house.world.boot()
    house.look(2)
    told = "; it never fetched its startup script: it has not got that far, or does not reach the script server"
    if fetched == "fetched":
        at = f"{house.now:%Y-%m-%d %H:%M:%S} UTC from testclient"
        assert client.get("/script", headers=bearer(token)).status_code == 200
        told = f"; it fetched its startup script at {at}, so it booted and reached us: what comes after that fails"
    house.clock.advance(timedelta(minutes=30))
    house.execute(ObserveNodes(nodes=(), repairs=False))
    doubt = house.instance(name).node_problem
    assert doubt is not None
    assert doubt.endswith(f"--provider-id=verda://{name}{told}")
    house.execute(DeleteNodes(node_group="h100", instances=(name,), unregistered=frozenset({name})))
    assert house.books.groups["h100"].joining.message == doubt
    page = explain_group(house.books, house.books.groups["h100"], (), house.now).lines
    assert [line for line in page if f"Of the last one: {doubt}." in line] != []


def test_nobody_else_gets_anything(house: House, client: TestClient) -> None:
    """No token, a wrong one, another scheme; and whoever guesses cannot fill the log."""
    house.grow()
    house.provision_until_quiet()
    before = house.position()
    answers = [
        client.get("/script"),
        client.get("/script", headers=bearer("x" * 32)),
        client.get("/script", headers={"Authorization": "Basic eDp4"}),
        client.get("/script?token=x"),
        client.post("/script", headers=bearer("x")),
    ]
    assert [answer.status_code for answer in answers] == [401, 403, 401, 401, 405]
    assert all(SECRET not in answer.text for answer in answers)
    assert house.position() == before


def test_a_machine_that_nobody_wants_gets_nothing(house: House, client: TestClient) -> None:
    """It must not join while it is being deleted; and a leaked token is told ten times at most."""
    (name,) = house.grow()
    house.provision_until_quiet()
    token = token_of(house, name)
    house.delete(name)
    assert client.get("/script", headers=bearer(token)).status_code == 410
    for _ in range(12):
        client.get("/script", headers=bearer(token))
    assert house.types().count("instance.script-fetched") == 10


def test_no_token_and_no_secret_is_in_the_database(house: House, client: TestClient) -> None:
    """Only the token's digest, which opens nothing."""
    (name,) = house.grow()
    house.provision_until_quiet()
    token = token_of(house, name)
    client.get("/script", headers=bearer(token))
    house.close()
    content = b"".join(path.read_bytes() for path in house.path.parent.glob(f"{house.path.name}*"))
    assert token.encode() not in content
    assert SECRET.encode() not in content
    house.open()


def shop(token: str | None) -> TestClient:
    """A server without books."""
    group = spec(startup_script="text")
    made = Shop(
        specs={"h100": group}, sources={"h100": SOURCE}, catalogue={H100_TYPE.name: H100_TYPE}, cluster="c", token=token
    )
    return TestClient(plain_pages(made))


def test_a_server_without_books_serves_by_group_and_host_name() -> None:
    """As the older tool's did: what is asked for is in the address."""
    client = shop(None)
    answer = client.get("/script?node_group=h100&hostname=h100-a2b3c4d5&location=FIN-03&contract=spot")
    assert answer.text == f"#!/bin/sh\njoin {SECRET} h100-a2b3c4d5 spot FIN-03\n"
    assert client.get("/script?node_group=h100&hostname=x").text.endswith(" on-demand FIN-01\n")
    assert client.get("/script?node_group=nowhere&hostname=x").status_code == 404
    assert client.get("/script?node_group=h100").status_code == 404
    assert client.get("/script?node_group=h100&hostname=x&contract=lease").status_code == 503


def test_a_server_without_books_may_ask_for_a_token() -> None:
    """One for all, so it is worth less than a machine's own."""
    client = shop("shared")
    query = "/script?node_group=h100&hostname=x"
    assert client.get(query).status_code == 403
    assert client.get(query, headers=bearer("wrong")).status_code == 403
    assert client.get(query, headers=bearer("shared")).status_code == 200


@pytest.mark.parametrize("shown", ["sh\u00e4red".encode(), b"\xff\xfe", b"shared\xa0", b"\xe4"])
def test_odd_bytes_in_the_place_of_a_token_are_a_wrong_token(shown: bytes, client: TestClient) -> None:
    """A header may hold any byte above 127; whoever sends one learns nothing and breaks nothing."""
    header = {b"Authorization": b"Bearer " + shown}
    for asked in (shop("shared"), client):
        assert asked.get("/script?node_group=h100&hostname=x", headers=header).status_code == 403
