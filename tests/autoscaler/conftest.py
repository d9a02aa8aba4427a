import logging
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest
import structlog

from app.clock import FakeClock
from app.domain.nodegroup.spec import NodeGroupSpec
from app.ledger.ledger import open_ledger
from app.simulator.inprocess import InProcessCloud
from tests.protocol.clients import GENERATIONS, Client, compile_client

from .ca.flags import Flags
from .ca.releases import RELEASES, Release
from .stage.process import DATABASE
from .stage.stage import Stage
from .stage.wires import Port

_MEMORY = Path("/dev/shm")


class MakeStage(Protocol):
    """Raises the curtain."""

    def __call__(
        self,
        *specs: NodeGroupSpec,
        flags: Flags | None = None,
        cloud: Mapping[str, Any] | None = None,
        port: Port | None = None,
        kubernetes: bool = False,
        before: Callable[[InProcessCloud], object] = ...,
    ) -> Stage:
        """`before` is done to the cloud after the provider has started and before the autoscaler does."""
        ...


class StageFor(Protocol):
    """Raises the curtain for any release."""

    def __call__(
        self,
        release: Release,
        *specs: NodeGroupSpec,
        flags: Flags | None = None,
        cloud: Mapping[str, Any] | None = None,
        port: Port | None = None,
        kubernetes: bool = False,
        before: Callable[[InProcessCloud], object] = ...,
    ) -> Stage:
        """`before` is done to the cloud after the provider has started and before the autoscaler does."""
        ...


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Client]:
    """The messages of every generation of the protocol, by its letter."""
    return {letter: compile_client(letter, tmp_path_factory.mktemp(f"generation-{letter}")) for letter in GENERATIONS}


@pytest.fixture(params=RELEASES, ids=str)
def release(request: pytest.FixtureRequest) -> Release:
    """Each release in turn."""
    chosen: Release = request.param
    return chosen


@pytest.fixture(autouse=True)
def quiet() -> Iterator[list[Any]]:
    """Keep what is logged at level info and above instead of printing it."""
    lines: list[Any] = []

    def keep(_logger: object, _method: str, event: Any) -> Any:
        lines.append(dict(event))
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(
        processors=[structlog.processors.add_log_level, keep],
        wrapper_class=structlog.make_filtering_bound_logger(logging.INFO),
    )
    yield lines
    structlog.configure(**before)


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """Where databases are: in memory where that is possible, because it is not the disk that is tested here."""
    if not _MEMORY.is_dir():
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_MEMORY, prefix="autoscaler-") as name:
        yield Path(name)


@pytest.fixture(scope="session")
def blank(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a database that was made and closed: making one takes longer than most scenarios."""
    directory = tmp_path_factory.mktemp("blank")
    open_ledger(directory / DATABASE, FakeClock(), "blank").close()
    return directory


@pytest.fixture
def stage_for(directory: Path, blank: Path, clients: Mapping[str, Client]) -> Iterator[StageFor]:
    """Stages for any release, looked over when the test is done."""
    stages: list[Stage] = []

    def make(release: Release, *specs: NodeGroupSpec, **settings: Any) -> Stage:
        home = shutil.copytree(blank, directory / f"stage-{len(stages)}")
        stage = Stage(home, clients, release, specs, **settings)
        stages.append(stage)
        return stage

    yield make
    for stage in stages:
        stage.settle()
        left = stage.unwanted()
        stage.process.stop()
        assert left == []


@pytest.fixture
def make_stage(stage_for: StageFor, release: Release) -> MakeStage:
    """A stage for the release of the test. Whatever the test does, nothing unwanted may be left in the cloud."""

    def make(*specs: NodeGroupSpec, **settings: Any) -> Stage:
        return stage_for(release, *specs, **settings)

    return make
