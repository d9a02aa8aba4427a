"""Who is asked, and with whose eyes the answers are read. README.md tells how to run it."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests.protocol.clients import GENERATIONS, Client, compile_client

from .autoscaler import Autoscaler
from .cloud import Cloud
from .compatibility import Compatibility
from .provider import Stage, command_for
from .scenes import Blackout, Hanging, Penniless, Renamed, Retired, Revived, SwitchedOff
from .scenes_with_tls import Secured
from .service import Lender, Service
from .settings import BRISK, provider_settings, shared_groups
from .until import Patience

_ORDERS_PER_STAGE, _LISTINGS_PER_STAGE = 36, 80
"""The provider keeps to the API's limits, 60 orders and 120 listings a minute; before that we move on to a new one."""

CLOUDLESS = "needs the simulated cloud and a provider of our own, not --address"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Whom to ask."""
    group = parser.getgroup("conformance")
    group.addoption("--address", metavar="HOST:PORT", help="a running externalgrpc provider, instead of our own")
    group.addoption("--group", metavar="NAME", help="with --address: an empty node group to scale up and down")
    group.addoption("--compatibility", metavar="FILE", help="write which statement holds for which generation")
    group.addoption("--fault", metavar="NAME", help="start our provider with this deliberate fault, see faults.py")


def pytest_configure(config: pytest.Config) -> None:
    """Our own markers."""
    config.addinivalue_line("markers", "mutants: runs parts of the suite against deliberately broken providers")
    if page := config.getoption("--compatibility", None):
        config.pluginmanager.register(Compatibility(Path(page)))
    if config.getoption("--fault", None):
        Patience.seconds = 10.0
    address = config.getoption("--address", None)
    if bool(address) != bool(config.getoption("--group", None)):
        raise pytest.UsageError("--address and --group go together")
    if address and config.getoption("numprocesses", None):
        raise pytest.UsageError("--address does not go with -n: the tests take turns in one node group")


class Stages:
    """One stage at a time, replaced before its provider has used up the API's rate limit."""

    def __init__(self, make: Callable[[], Stage]) -> None:
        self._make = make
        self._exit = ExitStack()
        self._current: Stage | None = None

    def current(self) -> Stage:
        """A stage on which a test may order two dozen machines."""
        if self._current is None or self._is_used_up(self._current.cloud.truth()["requests_by_route"]):
            self.close()
            self._current = self._exit.enter_context(self._make())
        return self._current

    @staticmethod
    def _is_used_up(requests: Mapping[str, int]) -> bool:
        orders, listings = requests.get("POST /instances", 0), requests.get("GET /instances", 0)
        return orders > _ORDERS_PER_STAGE or listings > _LISTINGS_PER_STAGE

    def close(self) -> None:
        """End the stage."""
        self._current = None
        self._exit.close()


@pytest.fixture(scope="session")
def external(request: pytest.FixtureRequest) -> Service | None:
    """The provider somebody else runs, if the suite was pointed at one."""
    address = request.config.getoption("--address", None)
    return Service(address=address, own_group=request.config.getoption("--group")) if address else None


@pytest.fixture(scope="session")
def make_stage(
    request: pytest.FixtureRequest, external: Service | None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., Stage]:
    """A factory of stages with these node groups; sections of the configuration may be replaced."""
    if external is not None:
        pytest.skip(CLOUDLESS)
    command = command_for(request.config.getoption("--fault", None))

    def make(groups: Mapping[str, Mapping[str, Any]], **settings: Any) -> Stage:
        directory: Path = tmp_path_factory.mktemp("provider")
        return Stage(directory, provider_settings(groups, **settings), command)

    return make


@pytest.fixture(scope="session")
def stages(make_stage: Callable[..., Stage]) -> Iterator[Stages]:
    """The stages that tests take turns on."""
    stages = Stages(lambda: make_stage(shared_groups(), intervals={"observe": BRISK, "catalog": "10m"}))
    yield stages
    stages.close()


@pytest.fixture
def stage(stages: Stages) -> Stage:
    """A provider and a cloud that work, shared with other tests."""
    return stages.current()


@pytest.fixture
def cloud(stage: Stage) -> Iterator[Cloud]:
    """The stage's cloud; what a test broke is mended afterwards."""
    yield stage.cloud
    stage.cloud.clear()


@pytest.fixture
def service(request: pytest.FixtureRequest, external: Service | None) -> Service:
    """Whoever is asked: the one at --address, or our own."""
    if external is not None:
        return external
    stage: Stage = request.getfixturevalue("stage")
    return Service(address=stage.address)


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Client]:
    """The messages of each generation, by its letter."""
    return {letter: compile_client(letter, tmp_path_factory.mktemp(f"generation-{letter}")) for letter in GENERATIONS}


@pytest.fixture(params=GENERATIONS)
def generation(request: pytest.FixtureRequest) -> str:
    """Each generation of the protocol in turn."""
    letter: str = request.param
    return letter


@pytest.fixture
def visit(clients: Mapping[str, Client], generation: str) -> Iterator[Callable[[str], Autoscaler]]:
    """An autoscaler of the generation for a provider at any address."""
    with ExitStack() as channels:
        yield lambda address: channels.enter_context(Autoscaler(clients[generation], address))


@pytest.fixture
def ca(service: Service, visit: Callable[[str], Autoscaler]) -> Autoscaler:
    """An autoscaler of the generation at the provider under test."""
    return visit(service.address)


@pytest.fixture
def lease(service: Service, clients: Mapping[str, Client]) -> Iterator[Callable[..., str]]:
    """A node group of a kind with nothing in it, for this test alone."""
    with Autoscaler(clients["E"], service.address) as caretaker:
        lender = Lender(service, caretaker)
        yield lender.lease
        lender.take_back()


@pytest.fixture(scope="session")
def blackout(make_stage: Callable[..., Stage], clients: Mapping[str, Client]) -> Iterator[Blackout]:
    """A provider whose cloud has gone away."""
    with Blackout.play(make_stage, clients) as scene:
        yield scene


@pytest.fixture(scope="session")
def hanging(make_stage: Callable[..., Stage], clients: Mapping[str, Client]) -> Iterator[Hanging]:
    """A provider whose cloud accepts every call and does not answer for a minute."""
    with Hanging.play(make_stage, clients) as scene:
        yield scene


@pytest.fixture(scope="session")
def renamed(make_stage: Callable[..., Stage]) -> Iterator[Renamed]:
    """A provider whose provider ids hold the cloud's own ids, and which nobody has ever sent a Refresh."""
    with Renamed.play(make_stage, "verda://{instance_id}") as scene:
        yield scene


@pytest.fixture(scope="session")
def relabelled(make_stage: Callable[..., Stage]) -> Iterator[Renamed]:
    """A provider whose provider ids are what the operator's distribution of Kubernetes makes of host names."""
    with Renamed.play(make_stage, "k3s://{group}/{hostname}.internal") as scene:
        yield scene


@pytest.fixture(scope="session")
def switched_off(make_stage: Callable[..., Stage], clients: Mapping[str, Client]) -> Iterator[SwitchedOff]:
    """A provider some of whose machines were just switched off."""
    with SwitchedOff.play(make_stage, clients) as scene:
        yield scene


@pytest.fixture(scope="session")
def penniless(make_stage: Callable[..., Stage], clients: Mapping[str, Client]) -> Iterator[Penniless]:
    """A provider whose account has run out of money."""
    with Penniless.play(make_stage, clients) as scene:
        yield scene


@pytest.fixture(scope="session")
def revived(make_stage: Callable[..., Stage], clients: Mapping[str, Client]) -> Iterator[Revived]:
    """A provider that was killed right after its answers and started again."""
    with Revived.play(make_stage, clients) as scene:
        yield scene


@pytest.fixture(scope="session")
def secured(make_stage: Callable[..., Stage], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A provider that speaks mutual TLS alone."""
    with Secured.play(make_stage, tmp_path_factory.mktemp("certificates")) as scene:
        yield scene


@pytest.fixture(scope="session")
def retired(make_stage: Callable[..., Stage], clients: Mapping[str, Client]) -> Iterator[Retired]:
    """A provider whose configuration has lost groups that still have machines."""
    with Retired.play(make_stage, clients) as scene:
        yield scene
