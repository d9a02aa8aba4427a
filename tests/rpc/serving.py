"""A gRPC server on a ledger of a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.clock import Clock, SeededIds, SystemClock
from app.ledger.ledger import Ledger
from app.rpc.server import RpcServer, build_server
from app.rpc.tls import TlsFiles


@contextmanager
def serving(ledger: Ledger, *, tls: TlsFiles | None = None, clock: Clock | None = None) -> Iterator[RpcServer]:
    """A server on a free port, which must tell the time by the ledger's clock; stopped in the end."""
    server = build_server(
        ledger=ledger,
        clock=clock or SystemClock(),
        ids=SeededIds(3),
        address="127.0.0.1:0",
        gpu_label="verda.com/gpu",
        observer=lambda _method, _code, _seconds: None,
        tls=tls,
    )
    server.start()
    try:
        yield server
    finally:
        server.stop(0.1)


def address_of(server: RpcServer) -> str:
    """Where clients find it."""
    return f"127.0.0.1:{server.port}"
