"""A gRPC server on a ledger of a test."""

from collections.abc import Iterator
from contextlib import contextmanager

from app.clock import Clock, SeededIds, SystemClock
from app.ledger.ledger import Ledger
from app.rpc.server import build_server


@contextmanager
def served(ledger: Ledger, clock: Clock | None = None) -> Iterator[str]:
    """The address of a server on a ledger, which must tell the time by the ledger's clock."""
    server = build_server(
        ledger=ledger,
        clock=clock or SystemClock(),
        ids=SeededIds(3),
        address="127.0.0.1:0",
        gpu_label="verda.com/gpu",
        observer=lambda _method, _code, _seconds: None,
        tls=None,
    )
    server.start()
    try:
        yield f"127.0.0.1:{server.port}"
    finally:
        server.stop(0.1)
