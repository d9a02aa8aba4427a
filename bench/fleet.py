"""A whole loop of the autoscaler over a fleet, and what a fleet takes in memory."""

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from app.rpc.gen import externalgrpc_pb2 as pb
from bench.figures import Figure, of_values
from bench.history import MANY, Histories
from bench.houses import prepared
from bench.process import Served, served
from bench.scale import Scale

_QUESTIONS_A_NODE = 5
_LOOP_S = 10.0
_ALLOWED_MIB = 150.0

Call = Callable[[], object]


def figures(scale: Scale, histories: Histories) -> Iterator[Figure]:
    """Processor time of a loop, memory of a crowd."""
    yield from _loop(scale)
    yield from _memory(scale, histories)


def questions(server: Served) -> Sequence[Call]:
    """What Cluster Autoscaler asks in one loop: six questions a group, five a node."""
    stub = server.stub
    calls: list[Call] = []
    for group in [found.id for found in stub.NodeGroups(pb.NodeGroupsRequest()).nodeGroups]:
        nodes = pb.NodeGroupNodesRequest(id=group)
        calls += [
            lambda: stub.NodeGroups(pb.NodeGroupsRequest()),
            lambda group=group: stub.NodeGroupTargetSize(pb.NodeGroupTargetSizeRequest(id=group)),  # type: ignore[misc]
            lambda group=group: stub.NodeGroupTargetSize(pb.NodeGroupTargetSizeRequest(id=group)),  # type: ignore[misc]
            lambda nodes=nodes: stub.NodeGroupNodes(nodes),  # type: ignore[misc]
            lambda group=group: stub.NodeGroupTemplateNodeInfo(pb.NodeGroupTemplateNodeInfoRequest(id=group)),  # type: ignore[misc]
            lambda group=group: stub.NodeGroupGetOptions(pb.NodeGroupAutoscalingOptionsRequest(id=group)),  # type: ignore[misc]
        ]
        for instance in stub.NodeGroupNodes(nodes).instances:
            node = pb.ExternalGrpcNode(providerID=instance.id, name=instance.id.removeprefix("verda://"))
            asked = pb.NodeGroupForNodeRequest(node=node)
            calls += [lambda asked=asked: stub.NodeGroupForNode(asked)] * _QUESTIONS_A_NODE  # type: ignore[misc]
    return calls


def _loop(scale: Scale) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as scratch:
        database = Path(scratch, "fleet.db")
        sizes = {f"group-{number:02d}": scale.group_size for number in range(scale.groups)}
        prepared(database, **sizes).close()
        with served(database, "group-00") as server:
            calls = questions(server)
            _ask(calls)
            ours, theirs = [], []
            for _ in range(max(2, scale.few // 3)):
                ours.append(_cpu(server, calls))
                theirs.append(_cpu(server, [server.no_op] * len(calls)))
    mine, bare = sum(ours) / len(ours), sum(theirs) / len(theirs)
    name = f"a loop over {scale.groups} groups and {scale.groups * scale.group_size:,} nodes, processor time"
    yield of_values(name, f"{len(calls):,} no-ops", 1.2, mine, bare, "s", len(ours))
    yield of_values("the same, part of one core every 10 s", "a whole core", 1.0, mine / _LOOP_S, 1.0, "cores")


def _ask(calls: Sequence[Call]) -> None:
    for call in calls:
        call()


def _cpu(server: Served, calls: Sequence[Call]) -> float:
    before = server.cpu_s()
    _ask(calls)
    return server.cpu_s() - before


def _memory(scale: Scale, histories: Histories) -> Iterator[Figure]:
    with tempfile.TemporaryDirectory() as scratch:
        empty = Path(scratch, "empty.db")
        prepared(empty, gpu=0).close()
        with served(empty, "gpu") as server:
            for _ in range(scale.loops):
                _ask(questions(server))
            nothing = server.resident_mib()
    with served(histories.crowded, "gpu") as server:
        sizes = []
        for _ in range(scale.loops):
            _ask(_sparse(server))
            sizes.append(server.resident_mib())
    yield of_values(
        f"memory of {MANY:,} living instances and {scale.long_log:,} events, above that of an empty provider",
        "what is allowed",
        1.0,
        sizes[-1] - nothing,
        _ALLOWED_MIB,
        "MiB",
    )
    third = max(1, len(sizes) // 3)
    yield of_values(
        f"the same after {len(sizes)} loops", "after a third of them", 1.05, sizes[-1], sizes[third - 1], "MiB"
    )


def _sparse(server: Served) -> Sequence[Call]:
    """The questions of a loop, about one node in twenty."""
    calls = questions(server)
    return [*calls[:12], *calls[12 :: _QUESTIONS_A_NODE * 20]]
