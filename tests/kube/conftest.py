from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import structlog
from lightkube.config.kubeconfig import KubeConfig
from lightkube.config.models import Cluster, User
from structlog.typing import EventDict, WrappedLogger

from app.clock import SystemClock
from app.domain.offering import Contract
from app.kube.api import Limits
from app.kube.lightkube import LightkubeCluster
from tests.reconcile.house import House, copy_database, spec

from .apiserver import ApiServer
from .yard import Yard

TOKEN = "s3cr3t-t0k3n"


@pytest.fixture(autouse=True)
def lines() -> Iterator[list[EventDict]]:
    """What is logged from level info on, kept instead of printed."""
    kept: list[EventDict] = []

    def keep(_logger: WrappedLogger, method: str, event: EventDict) -> EventDict:
        if method != "debug":
            kept.append({**event, "level": method})
        raise structlog.DropEvent

    before = structlog.get_config()
    structlog.configure(processors=[keep])
    yield kept
    structlog.configure(**before)


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A scripted API server that answers."""
    server = ApiServer()
    server.start()
    yield server
    server.stop()


@pytest.fixture
def cluster(api: ApiServer) -> Iterator[LightkubeCluster]:
    """The adapter on that server; it does not follow the nodes until it is started."""
    config = KubeConfig.from_one(cluster=Cluster(server=api.url, insecure=True), user=User(token=TOKEN)).get()
    assert config is not None
    limits = Limits(read=timedelta(seconds=30), total=timedelta(seconds=60), silence=timedelta(seconds=60))
    adapter = LightkubeCluster(config, SystemClock(), limits)
    yield adapter
    adapter.close()


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database after the first start."""
    path = tmp_path_factory.mktemp("kube") / "verda.db"
    house = House(path=path)
    house.start(spec(), spec("spot", contracts=(Contract.SPOT,)))
    house.close()
    return path


@pytest.fixture
def yard(started: Path, tmp_path: Path) -> Iterator[Yard]:
    """A provider that serves the empty groups h100 and spot, beside a cluster in memory."""
    yard = Yard(House(path=copy_database(started, tmp_path)))
    yield yard
    yard.house.close()
