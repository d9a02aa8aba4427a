"""How long RPCs take beside a no-op of the same server, all in one interleaved run.

The server is a process of its own over a real database. `Refresh` does nothing, so it shows what gRPC itself costs; a
method that answers with constant bytes shows what it costs to carry them.
"""

import argparse
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc

from app.clock import SystemClock, SystemIds
from app.log import set_up_logging
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen.externalgrpc_pb2_grpc import CloudProviderStub
from app.rpc.server import RpcServer, build_server
from bench.append import bare_transaction
from bench.figures import Figure, interleaved, rate, seconds, slower
from bench.houses import prepared
from bench.scale import Scale

_CONSTANT = "/bench.Constant/Get"
_CALLERS = 64
_WATCHDOG_S = 1800


def serve(database: Path) -> None:
    """The server process: print the port, serve until standard input closes."""
    set_up_logging("error", "json")
    ledger = prepared(database, ten=10, thousand=1000, growing=0)
    clock = SystemClock()
    server = build_server(
        ledger=ledger,
        clock=clock,
        ids=SystemIds(),
        address="127.0.0.1:0",
        gpu_label="verda.com/gpu",
        observer=lambda _method, _code, _seconds: None,
    )
    _answer_with_a_constant(server)
    server.start()
    sys.stdout.write(f"{server.port}\n")
    sys.stdout.flush()
    sys.stdin.read()
    server.stop(0.5)
    ledger.close()


def _answer_with_a_constant(server: RpcServer) -> None:
    """The bytes of the thousand instances, from a handler that knows nothing."""
    answer = bytes(server.provider.NodeGroupNodes(pb.NodeGroupNodesRequest(id="thousand"), None))  # type: ignore[arg-type] # unused
    handler: Any = grpc.unary_unary_rpc_method_handler(lambda _request, _context: answer)
    service, method = _CONSTANT.strip("/").split("/")
    server.server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, {method: handler}),))


@contextmanager
def _running() -> Iterator[tuple[CloudProviderStub, Callable[[], object]]]:
    """A stub, and a call of the constant."""
    with tempfile.TemporaryDirectory() as scratch:
        command = [sys.executable, "-m", "bench.answers", "--serve", str(Path(scratch) / "bench.db")]
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
                yield stub, lambda: constant(b"", timeout=5)
            process.stdin.close()
            process.wait(10)
        finally:
            watchdog.cancel()
            process.kill()


def figures(scale: Scale) -> Iterator[Figure]:
    """Readings, growth, and sixty-four deletions at once."""
    with _running() as (stub, constant):
        refresh = pb.RefreshRequest()

        def no_op() -> object:
            return stub.Refresh(refresh, timeout=5)

        readings: dict[str, Callable[[], object]] = {
            "NodeGroupTargetSize": lambda: stub.NodeGroupTargetSize(pb.NodeGroupTargetSizeRequest(id="thousand")),
            "NodeGroups": lambda: stub.NodeGroups(pb.NodeGroupsRequest()),
            "NodeGroupForNode": lambda: stub.NodeGroupForNode(_foreign()),
        }
        for act in (no_op, *readings.values(), constant):
            interleaved(act, no_op, scale.rounds // 10)
        for name, act in readings.items():
            pairs = interleaved(act, no_op, scale.rounds)
            yield rate(name, "a no-op of the same server", 0.9, pairs)
            yield slower(f"{name}, 99th percentile", "the no-op's", 1.2, pairs, quantile=99)
        nodes = pb.NodeGroupNodesRequest(id="thousand")
        pairs = interleaved(lambda: stub.NodeGroupNodes(nodes), constant, scale.rounds)
        yield rate("NodeGroupNodes, 1,000 instances", "the same bytes as a constant", 0.9, pairs)
        yield _growth(stub, no_op, scale)
        yield _crowd(stub, no_op, scale)


def _foreign() -> pb.NodeGroupForNodeRequest:
    return pb.NodeGroupForNodeRequest(node=pb.ExternalGrpcNode(providerID="aws:///eu-1a/i-0", name="foreign"))


def _growth(stub: CloudProviderStub, no_op: Callable[[], object], scale: Scale) -> Figure:
    """One node more by RPC, beside a no-op and the transaction that it cannot do without."""
    more = pb.NodeGroupIncreaseSizeRequest(id="growing", delta=1)
    less = pb.NodeGroupDecreaseTargetSizeRequest(id="growing", delta=-1)
    pairs = []
    with tempfile.TemporaryDirectory() as scratch, bare_transaction(Path(scratch)) as bare:
        for _ in range(scale.rounds):
            ours = seconds(lambda: stub.NodeGroupIncreaseSize(more))
            pairs.append((ours, seconds(no_op) + seconds(bare)))
            stub.NodeGroupDecreaseTargetSize(less)
    return slower("NodeGroupIncreaseSize by one", "a no-op and a bare transaction", 1.5, pairs)


def _crowd(stub: CloudProviderStub, no_op: Callable[[], object], scale: Scale) -> Figure:
    """Sixty-four callers at once: deletions of one node each, beside no-ops."""
    pairs = []
    with ThreadPoolExecutor(_CALLERS) as pool:
        for _ in range(max(scale.few, scale.rounds // 50)):
            stub.NodeGroupIncreaseSize(pb.NodeGroupIncreaseSizeRequest(id="growing", delta=_CALLERS))
            listed = stub.NodeGroupNodes(pb.NodeGroupNodesRequest(id="growing")).instances
            wanted = [instance.id for instance in listed if instance.status.instanceState == _CREATING][-_CALLERS:]
            requests = [
                pb.NodeGroupDeleteNodesRequest(id="growing", nodes=[pb.ExternalGrpcNode(providerID=each, name=each)])
                for each in wanted
            ]
            ours = seconds(lambda: list(pool.map(stub.NodeGroupDeleteNodes, requests)))  # noqa: B023 - called at once
            pairs.append((ours, seconds(lambda: list(pool.map(lambda _: no_op(), range(_CALLERS))))))
    return rate(f"{_CALLERS} callers, one deletion each", "as many no-ops at once", 0.5, pairs, _CALLERS)


_CREATING = pb.InstanceStatus.instanceCreating


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--serve", type=Path, required=True)
    serve(parser.parse_args().serve)
