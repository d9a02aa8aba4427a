"""Certificates that change under load: clients that go on calling, on connections that they keep and on new ones."""

import threading
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc
import pytest
import trustme

from app.ledger.ledger import Ledger
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen.externalgrpc_pb2_grpc import CloudProviderStub
from app.rpc.server import RpcServer
from tests.store.harness import opened, start

from .authority import Authority, Identity
from .serving import serving

_CLIENTS = 4
_CALLS_A_CONNECTION = 20
_PATIENCE_S = 120


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    """A fresh authority."""
    return Authority(tmp_path)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    """Books with one node group."""
    with opened(tmp_path / "provider.db") as ledger:
        start(ledger)
        yield ledger


@pytest.fixture
def server(authority: Authority, ledger: Ledger) -> Iterator[RpcServer]:
    """A server that lets in whoever has a certificate of the authority."""
    with serving(ledger, tls=authority.files) as server:
        yield server


def ask(channel: grpc.Channel) -> list[str]:
    """The names of the node groups."""
    stub = CloudProviderStub(channel)  # type: ignore[no-untyped-call] # generated without types
    return [group.id for group in stub.NodeGroups(pb.NodeGroupsRequest(), timeout=_PATIENCE_S).nodeGroups]


class Crowd:
    """Clients that call without a pause. `identity` is what they show from their next connection on."""

    def __init__(self, port: int, identity: Identity, *, keep_connections: bool = False) -> None:
        self.identity = identity
        self.failures: list[str] = []
        self.calls = 0
        self._port = port
        self._keep = keep_connections
        self._changed = threading.Condition()
        self._connections = dict.fromkeys(range(_CLIENTS), 0)
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(_CLIENTS)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(_PATIENCE_S)

    def until_all_have_reconnected(self) -> None:
        """Everybody ends the connection that it has, makes another, and has had answers on that."""
        with self._changed:
            before = dict(self._connections)
            done = self._changed.wait_for(
                lambda: self.failures or all(self._connections[each] >= before[each] + 2 for each in before),
                timeout=_PATIENCE_S,
            )
            assert done, "nobody reconnects"

    def _run(self, number: int) -> None:
        while not self._stop.is_set():
            with self.identity.connect(self._port) as channel:
                if self._keep:
                    channel.subscribe(lambda state: self._see(number, state))
                while not self._stop.is_set():
                    for _ in range(_CALLS_A_CONNECTION):
                        self._call(channel)
                    if not self._keep:
                        self._connected(number)
                        break

    def _see(self, number: int, state: grpc.ChannelConnectivity) -> None:
        if state is grpc.ChannelConnectivity.READY:
            self._connected(number)

    def _connected(self, number: int) -> None:
        with self._changed:
            self._connections[number] += 1
            self._changed.notify_all()

    def _call(self, channel: grpc.Channel) -> None:
        try:
            answer = ask(channel)
        except grpc.RpcError as error:
            self._fail(f"{error.code()}: {error.details()}")
        else:
            self.calls += 1
            if answer != ["gpu"]:
                self._fail(f"answered {answer}")

    def _fail(self, words: str) -> None:
        with self._changed:
            self.failures.append(words)
            self._changed.notify_all()


@pytest.mark.timeout(300)
def test_renewed_certificates_fail_no_call(authority: Authority, server: RpcServer) -> None:
    """F65, the weekly case: one authority, files written over, key before certificate, while clients come and go."""
    with Crowd(server.port, authority.identity()) as crowd:
        for _ in range(5):
            authority.issue_server()
            crowd.until_all_have_reconnected()
    assert crowd.failures == []
    assert crowd.calls >= 5 * 2 * _CLIENTS * _CALLS_A_CONNECTION


@pytest.mark.timeout(300)
def test_a_new_authority_takes_three_steps_and_fails_no_call(authority: Authority, server: RpcServer) -> None:
    """F65, as docs/operations.md has it: both authorities in the bundles, new certificates, the old authority out."""
    old, new = authority.ca, trustme.CA()
    with Crowd(server.port, authority.identity(old)) as crowd:
        authority.believe(old, new)
        crowd.identity = authority.identity(old, new)
        crowd.until_all_have_reconnected()
        authority.ca = new
        authority.issue_server()
        crowd.until_all_have_reconnected()
        crowd.identity = authority.identity(new)
        crowd.until_all_have_reconnected()
        authority.believe(new)
        crowd.until_all_have_reconnected()
    assert crowd.failures == []
    with authority.identity(old, new, ca=old).connect(server.port) as stranger, pytest.raises(grpc.RpcError):
        ask(stranger)


@pytest.mark.timeout(300)
def test_connections_that_are_kept_are_sent_away_and_fail_no_call(
    authority: Authority, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F65: the autoscaler keeps one connection for ever. The server ends it now and then, in the midst of calls."""
    monkeypatch.setattr("app.rpc.server.CONNECTION_AGE_MS", 100)
    with serving(ledger, tls=authority.files) as server:
        with Crowd(server.port, authority.identity(), keep_connections=True) as crowd:
            for _ in range(3):
                authority.issue_server()
                crowd.until_all_have_reconnected()
        assert crowd.failures == []


def test_files_that_change_while_they_are_read_are_not_mixed(
    authority: Authority, server: RpcServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The old certificate with the new key would fail this handshake, though every file is good by now."""
    whole = Path.read_bytes
    swapped = False

    def read_bytes(path: Path) -> bytes:
        nonlocal swapped
        content = whole(path)
        if path == authority.files.cert and not swapped:
            swapped = True
            authority.issue_server()
        return content

    authority.issue_server()
    monkeypatch.setattr(Path, "read_bytes", read_bytes)
    with authority.client(server.port) as channel:
        assert ask(channel) == ["gpu"]
    assert swapped
