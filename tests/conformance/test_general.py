"""Section 1 of the statements: the service as a whole."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import grpc
import pytest

from tests.protocol.clients import Client

from .autoscaler import METHODS, OPTIONAL, Autoscaler, refused
from .cloud import Cloud
from .provider import Stage
from .scenes import Hanging, Renamed, Revived, grow, thousand
from .scenes_with_tls import Secured
from .service import Lease, Service
from .settings import GPU_LABEL, name_for
from .until import until
from .wire import with_unknown_fields

OK = grpc.StatusCode.OK
MIB = 1024 * 1024
WRITES = {"NodeGroupIncreaseSize", "NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes"}


def test_001_the_fifteen_methods_are_there_and_no_other(ca: Autoscaler, service: Service, lease: Lease) -> None:
    """Statement 1: no method was ever added to or removed from the protocol; four of them are optional."""
    required = set(METHODS) - set(OPTIONAL) if service.is_external else set(METHODS)
    calls = ca.harmless(lease())
    broken = {grpc.StatusCode.UNIMPLEMENTED, grpc.StatusCode.INTERNAL, grpc.StatusCode.UNKNOWN}
    assert not [method for method in required if ca.status(method, calls[method]) in broken]
    for unknown in ("HasInstance", "NodeGroupForceDeleteNodes", "NodeGroupAtomicIncreaseSize", "nodeGroups"):
        assert ca.status(unknown) is grpc.StatusCode.UNIMPLEMENTED, unknown


@pytest.mark.parametrize("trouble", ["hang", "error"])
def test_002_a_cloud_in_trouble_delays_no_answer(
    hanging: Hanging, visit: Callable[[str], Autoscaler], generation: str, trouble: str
) -> None:
    """Statement 2: below a second (99th percentile) and within the deadline, also while the cloud hangs for 60 s."""
    hanging.trouble(trouble)
    ca, group, wishes = visit(hanging.stage.address), name_for("gpu", generation), name_for("small", generation)
    took: list[float] = []

    def timed(call: Callable[[], object]) -> None:
        began = time.monotonic()
        call()
        took.append(time.monotonic() - began)

    for _ in range(3):
        timed(lambda: ca.increase(wishes, 1))
    for method, request in ca.harmless(group).items():
        for _ in range(6):
            timed(partial(ca.status, method, request))
    for wish in ca.live(wishes):
        timed(partial(ca.delete, wishes, [ca.fake(wish)]))
    assert len(took) == 3 + 15 * 6 + 3
    assert sorted(took)[-2] < 1.0
    assert max(took) < 5.0


def test_002_a_database_that_cannot_be_written_delays_no_reading(
    ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud
) -> None:
    """Statement 2, F55: not even that of a node whose spelling of the provider id is to be written down."""
    group = lease("gpu")
    (instance_id,) = grow(ca, group, 1)
    shown = instance_id.replace("verda://", "verda:///")
    node = ca.node(shown, cloud.machine(instance_id)["hostname"])
    calls = {method: request for method, request in ca.harmless(group).items() if method not in WRITES}
    calls["NodeGroupForNode"] = ca.request("NodeGroupForNode", node=node).SerializeToString()
    with stage.provider.database_locked():
        for method, request in calls.items():
            ca.raw(method, request, timeout=1.0)
    until("the spelling is written down", lambda: ca.group_of(node).id == group and ca.live(group) == [shown])


def test_003_everything_is_answered_before_the_first_refresh(
    renamed: Renamed, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 3: the autoscaler asks for groups and instances, from 1.30 on for nodes too, before it refreshes."""
    ca, group = visit(renamed.stage.address), name_for("gpu", generation)
    assert list(ca.groups()) == [name_for("gpu", letter) for letter in "ABCDE"]
    assert ca.sizes(group)[0] == len(ca.live(group))
    assert not ca.group_of(ca.node("aws:///eu-1a/i-0", "foreign")).id
    assert ca.template(group).metadata.labels["node.kubernetes.io/instance-type"] == "1A100.22V"
    assert ca.call("GPULabel").label == GPU_LABEL
    assert "a100" in ca.call("GetAvailableGPUTypes").gpuTypes
    assert not ca.call("NodeGroupGetOptions", id=group, defaults=ca.flags()).HasField("nodeGroupAutoscalingOptions")
    assert ca.node_price(ca.node(name=f"template-node-for-{group}-42")) == pytest.approx(1.29)
    assert renamed.stage.provider.metrics("verda_ca_rpc_requests_total", method="Refresh") == 0


def test_004_fields_of_a_future_release_are_ignored(ca: Autoscaler, lease: Lease) -> None:
    """Statement 4: a request with fields nobody has defined is answered as if they were not there."""
    group = lease()
    for method, request in ca.harmless(group).items():
        assert ca.status(method, with_unknown_fields(request)) is ca.status(method, request), method
    request = ca.request("NodeGroupTargetSize", id=group).SerializeToString()
    assert ca.raw("NodeGroupTargetSize", with_unknown_fields(request)) == ca.raw("NodeGroupTargetSize", request)


def test_004_a_write_with_unknown_fields_is_done(ca: Autoscaler, lease: Lease) -> None:
    """Statement 4: the same holds for requests that change something."""
    group = lease()
    more = ca.request("NodeGroupIncreaseSize", id=group, delta=1).SerializeToString()
    ca.raw("NodeGroupIncreaseSize", with_unknown_fields(more))
    assert ca.target(group) == 1


def test_005_sixty_calls_at_once_leave_everything_consistent(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 5: deletions come one call a node, the instance cache is filled in parallel with everything else."""
    group = lease("gpu")
    first = grow(ca, group, 4)
    calls: list[tuple[str, Callable[[], object]]] = [
        *[("increase", lambda: ca.increase(group, 1))] * 6,
        *[("delete", partial(ca.delete, group, [ca.real(each)])) for each in first[:3]],
        *[("decrease", lambda: ca.decrease(group, -1))] * 3,
        *[("read", lambda: ca.sizes(group)), ("read", ca.groups), ("read", lambda: ca.template(group))] * 6,
        *[("read", lambda: ca.group_of(ca.fake(first[3]))), ("read", lambda: ca.call("Refresh"))] * 6,
        *[("read", lambda: ca.call("NodeGroupGetOptions", id=group, defaults=ca.flags()))] * 6,
        *[("read", lambda: ca.call("GetAvailableGPUTypes")), ("read", lambda: ca.call("GPULabel"))] * 6,
    ]
    assert len(calls) == 60
    together = threading.Barrier(len(calls))

    def make(named: tuple[str, Callable[[], object]]) -> tuple[str, grpc.StatusCode]:
        together.wait(30)
        try:
            named[1]()
        except grpc.RpcError as error:
            return named[0], error.code()
        return named[0], OK

    with ThreadPoolExecutor(len(calls)) as pool:
        results = Counter(pool.map(make, calls))
    released = results["decrease", OK]
    assert results["decrease", grpc.StatusCode.FAILED_PRECONDITION] == 3 - released
    assert {name: results[name, OK] for name in ("increase", "delete", "read")} == {
        "increase": 6,
        "delete": 3,
        "read": 48,
    }
    assert ca.target(group) == len(ca.live(group)) == 4 + 6 - 3 - released
    assert all(ca.group_of(ca.fake(each)).id == group for each in ca.live(group))
    assert ca.group_of(ca.node(name=first[3].removeprefix("verda://"))).id == group
    assert not ca.group_of(ca.node("aws:///eu-1a/i-0", "foreign")).id
    assert {machine["delete_requests"] for machine in cloud.machines(group)} <= {0, 1, 2, 3}


def test_006_what_was_answered_survives_a_kill(
    revived: Revived, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 6: kill -9 right after OK to an increase, a deletion, a decrease; sizes and ids are the same after."""
    ca, kept = visit(revived.stage.address), revived.kept[generation]
    grown, halved = name_for("gpu", generation), name_for("spot", generation)
    assert ca.target(grown) == 3
    assert len(ca.live(grown)) == 3
    assert kept.first in ca.live(grown)
    assert ca.target(halved) == 1
    assert ca.live(halved) == kept.pair[1:]
    assert ca.target(name_for("small", generation)) == 1
    assert len(set(ca.live(name_for("small", generation))) & set(kept.wishes)) == 1
    assert ca.target(name_for("base", generation)) == 0


def test_007_plain_text_is_served_where_it_is_configured(ca: Autoscaler) -> None:
    """Statement 7: without `cert` in its cloud-config the autoscaler speaks plain text."""
    assert ca.groups()


def test_007_mutual_tls_lets_in_whom_it_knows(secured: Secured, clients: Mapping[str, Client], generation: str) -> None:
    """Statement 7: with `cert` in its cloud-config the autoscaler demands TLS of a server whose name it verifies."""
    address, authority = secured.stage.address, secured.authority
    with Autoscaler(clients[generation], address, secured.client.credentials(authority)) as ca:
        assert ca.groups()
    strangers = (
        secured.stranger.credentials(authority),
        grpc.ssl_channel_credentials(authority.cert.read_bytes()),
        None,
    )
    for credentials in strangers:
        with Autoscaler(clients[generation], address, credentials) as ca:
            assert ca.status("NodeGroups") is grpc.StatusCode.UNAVAILABLE


def test_008_no_answer_comes_near_the_clients_limit(ca: Autoscaler, lease: Lease) -> None:
    """Statement 8: the client refuses answers above 4 MiB; below one there is room to grow."""
    for method, request in ca.harmless(lease()).items():
        if ca.status(method, request) is OK:
            assert len(ca.raw(method, request)) < MIB, method


@pytest.mark.parametrize("generation", ["E"])
def test_008_a_thousand_instances_fit(hanging: Hanging, visit: Callable[[str], Autoscaler], generation: str) -> None:
    """Statement 8: 1000 is the largest scale-up the autoscaler asks for by default (`--max-nodes-per-scaleup`)."""
    hanging.trouble("hang")
    ca, group = visit(hanging.stage.address), name_for("crowd", generation)
    with thousand(ca, group):
        answer = ca.raw("NodeGroupNodes", ca.request("NodeGroupNodes", id=group).SerializeToString())
        assert len(ca.response("NodeGroupNodes", answer).instances) == 1000
        assert len(answer) < MIB


def test_009_no_metadata_is_asked_for(ca: Autoscaler, lease: Lease) -> None:
    """Statement 9: the autoscaler sends no header of its own, no credentials; other callers not even a deadline."""
    denials = {grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED}
    statuses = {method: ca.status(method, request) for method, request in ca.harmless(lease()).items()}
    assert not denials & set(statuses.values())
    assert {statuses[method] for method in ("NodeGroups", "NodeGroupTargetSize", "NodeGroupNodes", "Refresh")} == {OK}
    assert ca.raw("Refresh", timeout=None) == b""


@pytest.mark.parametrize("name", ["no-such-group", ""])
def test_010_a_group_nobody_knows_is_refused_by_every_method(ca: Autoscaler, lease: Lease, name: str) -> None:
    """Statement 10: and nothing changes by it."""
    group = lease()
    before = ca.sizes(group)
    codes = (grpc.StatusCode.NOT_FOUND, *((grpc.StatusCode.INVALID_ARGUMENT,) if not name else ()))
    for method in ("TargetSize", "Nodes", "TemplateNodeInfo"):
        with refused(*codes):
            ca.call(f"NodeGroup{method}", id=name)
    with refused(*codes):
        ca.call("NodeGroupGetOptions", id=name, defaults=ca.flags())
    with refused(*codes):
        ca.increase(name, 1)
    with refused(*codes):
        ca.decrease(name, -1)
    with refused(*codes, grpc.StatusCode.INVALID_ARGUMENT):
        ca.delete(name, [ca.fake("verda://no-such-group-aaaaaaaa")])
    assert ca.sizes(group) == before
