"""A server that is told to stop: what it has let in is answered and in the log, what still comes is refused."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from app.clock import SystemClock
from app.ledger.ledger import Ledger
from app.rpc.client import CallFailed, Client
from app.rpc.server import RpcServer
from app.store.store import Store
from tests.ledger.flaky import Flaky
from tests.store.harness import group, reopened, start

from .serving import serving

LONGEST_WAIT_S = 60
CALLERS = 10


@dataclass(frozen=True, kw_only=True)
class Service:
    """A served ledger on a disk that can be held up."""

    server: RpcServer
    ledger: Ledger
    disk: Flaky
    path: Path

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.server.port}"

    def wait_for_the_line(self, count: int) -> None:
        """Until so many commands wait behind the one that is being written."""
        pause = threading.Event()
        for _ in range(LONGEST_WAIT_S * 1000):
            if len(self.ledger._line._waiting) == count:
                return
            pause.wait(0.001)
        raise AssertionError("they do not wait")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """With the group `gpu`."""
    path = tmp_path / "provider.db"
    disk = Flaky(store=Store(path))
    ledger = Ledger(disk, SystemClock())
    ledger.open("the test")
    start(ledger, group(max_size=10 * CALLERS))
    with serving(ledger) as server:
        yield Service(server=server, ledger=ledger, disk=disk, path=path)
        disk.gate.set()
    ledger.close()


def test_what_was_let_in_is_answered_and_what_comes_is_refused(service: Service) -> None:
    """Ten wishes wait for the disk when it is told to stop: each is answered OK and in the log; the eleventh is not."""
    with ThreadPoolExecutor(CALLERS + 1) as threads, Client(service.address, LONGEST_WAIT_S) as client:
        client.target_size("gpu")
        service.disk.gate.clear()
        wishes = [threads.submit(client.increase_size, "gpu", 1)]
        assert service.disk.appending.wait(LONGEST_WAIT_S)
        wishes += [threads.submit(client.increase_size, "gpu", 1) for _ in range(CALLERS - 1)]
        service.wait_for_the_line(CALLERS - 1)
        service.server.refuse()
        stopping = threads.submit(service.server.stop, LONGEST_WAIT_S)
        refusals = []
        for ask in (lambda: client.increase_size("gpu", 1), lambda: client.target_size("gpu")):
            with pytest.raises(CallFailed) as refused:
                ask()
            refusals.append((refused.value.status, "the provider is stopping" in refused.value.message))
        service.disk.gate.set()
        assert [wish.result(LONGEST_WAIT_S) for wish in wishes] == [None] * CALLERS
        stopping.result(LONGEST_WAIT_S)
    assert refusals == [("UNAVAILABLE", True)] * 2
    service.ledger.close()
    assert reopened(service.path).target_size("gpu") == CALLERS


def test_it_is_not_serving_before_it_stops(service: Service) -> None:
    """Whoever watches its health turns away before the port is closed."""
    service.server.refuse()
    service.server.update_health()
    with grpc.insecure_channel(service.address) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)
        answer = stub.Check(health_pb2.HealthCheckRequest(), timeout=LONGEST_WAIT_S)
    assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
    assert [reason.code for reason in service.server.traffic.farewell()] == ["stopping"]
