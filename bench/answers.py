"""How long RPCs take beside a no-op of the same server, all in one interleaved run."""

import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from app.rpc.gen import externalgrpc_pb2 as pb
from bench.append import same_rows
from bench.figures import Figure, interleaved, rate, seconds, slower
from bench.history import Histories
from bench.houses import prepared
from bench.process import Served, served
from bench.scale import Scale

_CALLERS = 64
_CREATING = pb.InstanceStatus.instanceCreating


def figures(scale: Scale, histories: Histories) -> Iterator[Figure]:
    """Readings, growth, and sixty-four deletions at once; then the readings over a long past."""
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch, "bench.db")
        prepared(database, ten=10, thousand=1000, growing=0).close()
        with served(database, "thousand") as server:
            readings = _readings(server, "thousand")
            for act in (server.no_op, server.constant, *readings.values()):
                interleaved(act, server.no_op, scale.rounds // 10)
            nodes = readings.pop("NodeGroupNodes")
            for name in ("NodeGroupTargetSize", "NodeGroups", "NodeGroupForNode"):
                pairs = interleaved(readings[name], server.no_op, scale.rounds)
                yield rate(name, "a no-op of the same server", 0.9, pairs)
                yield slower(f"{name}, 99th percentile", "the no-op's", 1.2, pairs, quantile=99)
            pairs = interleaved(nodes, server.constant, scale.rounds)
            yield rate("NodeGroupNodes, 1,000 instances", "the same bytes as a constant", 0.9, pairs)
            yield _growth(server, Path(scratch), scale)
            yield _crowd(server, scale)
    yield from _long_past(scale, histories)


def _readings(server: Served, group: str) -> dict[str, Callable[[], object]]:
    """The questions that the autoscaler asks again and again, by method."""
    stub = server.stub
    ((name, node),) = [
        (instance.id.removeprefix("verda://"), instance.id)
        for instance in stub.NodeGroupNodes(pb.NodeGroupNodesRequest(id=group)).instances[:1]
    ]
    ours = pb.NodeGroupForNodeRequest(node=pb.ExternalGrpcNode(providerID=node, name=name))
    return {
        "NodeGroupTargetSize": lambda: stub.NodeGroupTargetSize(pb.NodeGroupTargetSizeRequest(id=group)),
        "NodeGroups": lambda: stub.NodeGroups(pb.NodeGroupsRequest()),
        "NodeGroupForNode": lambda: stub.NodeGroupForNode(ours),
        "NodeGroupNodes": lambda: stub.NodeGroupNodes(pb.NodeGroupNodesRequest(id=group)),
        "NodeGroupTemplateNodeInfo": lambda: stub.NodeGroupTemplateNodeInfo(
            pb.NodeGroupTemplateNodeInfoRequest(id=group)
        ),
        "NodeGroupGetOptions": lambda: stub.NodeGroupGetOptions(pb.NodeGroupAutoscalingOptionsRequest(id=group)),
    }


def _long_past(scale: Scale, histories: Histories) -> Iterator[Figure]:
    """The same questions to two servers, of which one has a long log."""
    with served(histories.long, "ten") as old, served(histories.short, "ten") as young:
        ours, theirs = _readings(old, "ten"), _readings(young, "ten")
        for name, act in ours.items():
            interleaved(act, theirs[name], scale.rounds // 10)
            pairs = interleaved(act, theirs[name], scale.rounds)
            yield slower(f"{name} at {scale.long_log:,} events", f"at {scale.short_log:,} events", 1.1, pairs)
        more = pb.NodeGroupIncreaseSizeRequest(id="gpu", delta=1)
        less = pb.NodeGroupDecreaseTargetSizeRequest(id="gpu", delta=-1)
        pairs = []
        for _ in range(scale.rounds // 4):
            pairs.append(
                (
                    seconds(lambda: old.stub.NodeGroupIncreaseSize(more)),
                    seconds(lambda: young.stub.NodeGroupIncreaseSize(more)),
                )
            )
            for server in (old, young):
                server.stub.NodeGroupDecreaseTargetSize(less)
        name = f"NodeGroupIncreaseSize at {scale.long_log:,} events"
        yield slower(name, f"at {scale.short_log:,} events", 1.1, pairs)


def _growth(server: Served, directory: Path, scale: Scale) -> Figure:
    """One node more by RPC, beside a no-op and the transaction that it cannot do without."""
    more = pb.NodeGroupIncreaseSizeRequest(id="growing", delta=1)
    less = pb.NodeGroupDecreaseTargetSizeRequest(id="growing", delta=-1)
    pairs = []
    with same_rows(directory) as bare:
        for _ in range(scale.rounds):
            ours = seconds(lambda: server.stub.NodeGroupIncreaseSize(more))
            pairs.append((ours, seconds(server.no_op) + bare()))
            server.stub.NodeGroupDecreaseTargetSize(less)
    return slower("NodeGroupIncreaseSize by one", "a no-op and its rows by hand", 1.5, pairs)


def _crowd(server: Served, scale: Scale) -> Figure:
    """Sixty-four callers at once: deletions of one node each, beside no-ops."""
    pairs = []
    stub = server.stub
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
            pairs.append((ours, seconds(lambda: list(pool.map(lambda _: server.no_op(), range(_CALLERS))))))
    return rate(f"{_CALLERS} callers, one deletion each", "as many no-ops at once", 0.5, pairs, _CALLERS)
