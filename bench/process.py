"""A provider's RPC server as a process of its own, over a real database, and a client of it.

`Refresh` does nothing, so it shows what gRPC itself costs; a method that answers with constant bytes shows what it
costs to carry them.
"""

import argparse
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc

from app.clock import SystemClock, SystemIds
from app.ledger.ledger import open_ledger
from app.log import set_up_logging
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen.externalgrpc_pb2_grpc import CloudProviderStub
from app.rpc.server import RpcServer, build_server

_CONSTANT = "/bench.Constant/Get"
_WATCHDOG_S = 3600


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A running server. `constant` calls for the bytes of what `constant_of` had when it started."""

    stub: CloudProviderStub
    constant: Callable[[], object]
    pid: int

    def no_op(self) -> object:
        """The cheapest call there is."""
        return self.stub.Refresh(pb.RefreshRequest(), timeout=5)

    def cpu_s(self) -> float:
        """Processor time that the server has used."""
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_mib(self) -> float:
        """Memory that the server occupies."""
        pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@contextmanager
def served(database: Path, constant_of: str) -> Iterator[Served]:
    """Serve a prepared database; the constant is the list of that group."""
    command = [sys.executable, "-m", "bench.process", str(database), constant_of]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    watchdog = threading.Timer(_WATCHDOG_S, process.kill)
    watchdog.start()
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        with grpc.insecure_channel(f"127.0.0.1:{int(process.stdout.readline())}") as channel:
            constant = channel.unary_unary(
                _CONSTANT, request_serializer=bytes, response_deserializer=pb.NodeGroupNodesResponse.FromString
            )
            stub = CloudProviderStub(channel)  # type: ignore[no-untyped-call] # generated without types
            yield Served(stub=stub, constant=lambda: constant(b"", timeout=5), pid=process.pid)
        process.stdin.close()
        process.wait(10)
    finally:
        watchdog.cancel()
        process.kill()


def _serve(database: Path, constant_of: str) -> None:
    """The server process: print the port, serve until standard input closes."""
    set_up_logging("error", "json")
    clock = SystemClock()
    ledger = open_ledger(database, clock, "bench")
    server = build_server(
        ledger=ledger,
        clock=clock,
        ids=SystemIds(),
        address="127.0.0.1:0",
        gpu_label="verda.com/gpu",
        observer=lambda _method, _code, _seconds: None,
    )
    _answer_with_a_constant(server, constant_of)
    server.start()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(0.5)
    ledger.close()


def _answer_with_a_constant(server: RpcServer, group: str) -> None:
    """The bytes of a list of instances, from a handler that knows nothing."""
    answer = server.provider.NodeGroupNodes(pb.NodeGroupNodesRequest(id=group), None).data  # type: ignore[arg-type] # unused
    handler: Any = grpc.unary_unary_rpc_method_handler(lambda _request, _context: answer)
    service, method = _CONSTANT.strip("/").split("/")
    server.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("database", type=Path)
    parser.add_argument("constant_of")
    given = parser.parse_args()
    _serve(given.database, given.constant_of)
