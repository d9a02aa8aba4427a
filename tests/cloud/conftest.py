"""The toy server, and clients for it."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from app.cloud.verda import Limits, VerdaCloud

from .contract import CONFIG, SIDES, Side
from .toy import SECRET, Toy

MakeCloud = Callable[..., VerdaCloud]


@pytest.fixture
def toy() -> Iterator[Toy]:
    """A fresh server."""
    server = Toy()
    yield server
    server.close()


@pytest.fixture
def make_cloud(toy: Toy) -> Iterator[MakeCloud]:
    """Clients with short timeouts, closed at the end; keywords go to `Limits` or to the constructor."""
    made: list[VerdaCloud] = []
    limit_names = set(Limits.__dataclass_fields__)

    def make(**options: Any) -> VerdaCloud:
        limits = {name: options.pop(name) for name in limit_names & options.keys()}
        limits.setdefault("timeout", timedelta(seconds=2))
        options = {"base_url": toy.base_url, "client_id": "client", "client_secret": SECRET, **options}
        made.append(VerdaCloud(limits=Limits(**limits), **options))
        return made[-1]

    yield make
    for cloud in made:
        cloud.close()


@pytest.fixture
def cloud(make_cloud: MakeCloud) -> VerdaCloud:
    """The usual client."""
    return make_cloud()


@pytest.fixture(params=SIDES.values(), ids=list(SIDES))
def side(request: pytest.FixtureRequest) -> Iterator[Side]:
    """Either adapter."""
    with request.param(CONFIG) as made:
        yield made


@pytest.fixture(params=SIDES.values(), ids=list(SIDES))
def old_side(request: pytest.FixtureRequest) -> Iterator[Side]:
    """Either adapter, with the API as it was before March 2026."""
    with request.param({**CONFIG, "behaviour": {"repeat_delete": 403, "quoted_ids": True}}) as made:
        yield made
