"""A house that has just started for the first time and serves the empty groups h100 and spot."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import structlog
from structlog.typing import EventDict, WrappedLogger

from app.domain.offering import Contract

from .house import House, copy_database, spec

MakeHouse = Callable[..., House]


def _drop(_logger: WrappedLogger, _name: str, _event: EventDict) -> EventDict:
    raise structlog.DropEvent


@pytest.fixture(autouse=True)
def _no_log_lines() -> Iterator[None]:
    """Jobs log a lot, and their threads may end after the test; a test that wants to see lines captures them."""
    before = structlog.get_config()
    structlog.configure(processors=[_drop])
    yield
    structlog.configure(**before)


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database after the first start."""
    path = tmp_path_factory.mktemp("started") / "verda.db"
    house = House(path=path)
    house.start(spec(), spec("spot", contracts=(Contract.SPOT,)))
    house.close()
    return path


@pytest.fixture
def make_house(started: Path, tmp_path: Path) -> Iterator[MakeHouse]:
    """A house with other settings, closed at the end."""
    built: list[House] = []

    def make(**settings: Any) -> House:
        built.append(House(path=copy_database(started, tmp_path), **settings))
        return built[-1]

    yield make
    for house in built:
        house.close()


@pytest.fixture
def house(make_house: MakeHouse) -> House:
    """The usual house."""
    return make_house()
