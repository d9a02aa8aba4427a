"""F32, F38: nodes of ours are finished once they have registered: labels that kubelets may not set, start-up taints."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from structlog.typing import EventDict

from app.domain.cluster.node import Node, NodeTaint
from app.domain.instance.events import NodePreparationAttempted, NodePrepared
from app.domain.nodegroup.spec import LiftedWhen, NodeGroupSpec, StartupTaint, TaintEffect
from app.domain.offering import Contract
from app.errors import ClusterConflict, ClusterForbidden, ClusterUnavailable
from app.kube.lightkube import LightkubeCluster
from tests.reconcile.house import spec

from .apiserver import ApiServer, node_json
from .yard import Yard

ROLE = "node-role.kubernetes.io/gpu"
BOOTING = NodeTaint(key="example.com/booting", effect="NoSchedule")
CILIUM = NodeTaint(key="node.cilium.io/agent-not-ready", value="true", effect="NoExecute")
RIGHT = {
    "topology.kubernetes.io/region": "FIN",
    "topology.kubernetes.io/zone": "FIN-01",
    "verda.com/contract": "on-demand",
}
"""What a kubelet says that was told what was obtained."""
GPU = {"nvidia.com/gpu": "1"}


@pytest.fixture(autouse=True)
def labelling(yard: Yard) -> None:
    """With `kubernetes.label_nodes`."""
    yard.labels = True
    yard.begin()


def group(until: LiftedWhen | None = None, **settings: Any) -> NodeGroupSpec:
    """H100 with a label of a role, and two start-up taints, of which the first may be ours to take off."""
    ours = StartupTaint(key=BOOTING.key, effect=TaintEffect.NO_SCHEDULE, until=until)
    theirs = StartupTaint(key=CILIUM.key, value=CILIUM.value, effect=TaintEffect.NO_EXECUTE)
    return spec(labels={ROLE: "", "example.com/team": "ml"}, startup_taints=(ours, theirs), **settings)


def node_of(yard: Yard, spec: NodeGroupSpec, **more: Any) -> str:
    """A machine of such a group that has joined."""
    yard.house.configure(spec, *(one.spec for one in yard.house.books.groups.values() if one.name != spec.name))
    (name,) = yard.house.running()
    yard.join(name, **{"labels": RIGHT, **more})
    return name


def labels(yard: Yard, name: str) -> Mapping[str, str]:
    """On the node."""
    return now(yard, name).labels


def now(yard: Yard, name: str) -> Node:
    """The node as it is."""
    node = yard.cluster.node(name)
    assert node is not None
    return node


def changes(yard: Yard) -> list[tuple[str, tuple[str, ...]]]:
    """What was attempted and done, by the log."""
    return [
        (item.event.type.rpartition("-")[2], item.event.changes)
        for item in yard.house.log
        if isinstance(item.event, NodePreparationAttempted | NodePrepared)
    ]


def test_a_label_that_a_kubelet_may_not_set_is_set_once(yard: Yard, lines: list[EventDict]) -> None:
    """Intent, deed and outcome once each; labels that the kubelet sets itself are its own business."""
    name = node_of(yard, group())
    yard.tend(4)
    assert labels(yard, name) == {**RIGHT, ROLE: ""}
    done = (f"label {ROLE}=",)
    assert changes(yard) == [("attempted", done), ("prepared", done)]
    assert [line["node"] for line in lines if line["event"] == "node prepared"] == [name]
    assert ("NodePrepared", f"node {name} is prepared: label {ROLE}=") in [
        (one.reason, one.message) for one in yard.cluster.announced
    ]


def test_somebody_who_takes_a_label_off_or_sets_another_is_not_fought(yard: Yard) -> None:
    """A second controller or a person: no endless row of events, whatever they do, and over a restart too."""
    name = node_of(yard, group())
    yard.tend(2)
    yard.cluster.put(replace(now(yard, name), labels=RIGHT))
    yard.tend(3)
    yard.restart()
    yard.tend(3)
    assert labels(yard, name) == RIGHT
    assert len(changes(yard)) == 2
    other = node_of(yard, group(), labels={**RIGHT, ROLE: "theirs"})
    yard.tend(3)
    assert labels(yard, other)[ROLE] == "theirs"


def test_the_contract_and_the_location_obtained_are_on_the_node(yard: Yard) -> None:
    """F32. Spot was out of stock, and the script is one that knows nothing: the labels tell what is paid for."""
    name = node_of(yard, group(contracts=(Contract.SPOT, Contract.ON_DEMAND)), labels={"verda.com/contract": "spot"})
    instance = yard.house.instance(name)
    yard.house.ledger._books = yard.house.books.with_instance(
        replace(instance, contract=Contract.ON_DEMAND, location="FIN-03")
    )
    yard.tend(2)
    expected = {**RIGHT, "topology.kubernetes.io/zone": "FIN-03", ROLE: ""}
    assert labels(yard, name) == expected


def test_a_group_s_own_word_about_its_zone_wins(yard: Yard) -> None:
    """As it does in the template; and it is not ours to repeat, for the kubelet sets it itself."""
    settings = group().model_copy(update={"labels": {"topology.kubernetes.io/zone": "rack-7"}})
    name = node_of(yard, settings, labels={**RIGHT, "topology.kubernetes.io/zone": "elsewhere"})
    yard.tend(2)
    assert labels(yard, name)["topology.kubernetes.io/zone"] == "elsewhere"


def test_a_new_label_of_the_group_reaches_nodes_that_are_there(yard: Yard) -> None:
    """Only what is new is told again."""
    name = node_of(yard, group())
    yard.tend(2)
    yard.house.configure(group().model_copy(update={"labels": {ROLE: "", "k8s.io/tier": "a"}}))
    yard.tend(2)
    assert labels(yard, name) == {**RIGHT, ROLE: "", "k8s.io/tier": "a"}
    assert changes(yard)[2:] == [("attempted", ("label k8s.io/tier=a",)), ("prepared", ("label k8s.io/tier=a",))]


def test_without_the_key_no_label_is_touched(yard: Yard) -> None:
    """Off by default."""
    yard.labels = False
    yard.begin()
    name = node_of(yard, group(), labels={})
    yard.tend(3)
    assert labels(yard, name) == {}
    assert changes(yard) == []


@pytest.mark.parametrize(
    ("until", "ready", "allocatable", "outcome"),
    [
        (LiftedWhen.READY, "not ready", GPU, "stays"),
        (LiftedWhen.READY, "ready", {}, "goes"),
        (LiftedWhen.GPUS, "not ready", GPU, "stays"),
        (LiftedWhen.GPUS, "ready", {}, "stays"),
        (LiftedWhen.GPUS, "ready", {"nvidia.com/gpu": "0"}, "stays"),
        (LiftedWhen.GPUS, "ready", {"nvidia.com/gpu": "what?"}, "stays"),
        (LiftedWhen.GPUS, "ready", GPU, "goes"),
        (None, "ready", GPU, "stays"),
    ],
)
def test_a_start_up_taint_goes_when_its_condition_is_met(
    yard: Yard, until: LiftedWhen | None, ready: str, allocatable: dict[str, str], outcome: str
) -> None:
    """Worked out by hand. The agent's own taint and strangers' are never touched."""
    stranger = NodeTaint(key="example.com/booting", value="theirs", effect="NoExecute")
    name = node_of(
        yard,
        group(until),
        ready=ready == "ready",
        allocatable=allocatable,
        taints=(CILIUM, BOOTING, stranger),
        labels={**RIGHT, ROLE: ""},
    )
    yard.tend(3)
    assert now(yard, name).taints == ((CILIUM, BOOTING, stranger) if outcome == "stays" else (CILIUM, stranger))
    if outcome == "goes":
        done = ("without taint example.com/booting=:NoSchedule",)
        assert changes(yard) == [("attempted", done), ("prepared", done)]


def test_a_taint_that_somebody_puts_back_stays(yard: Yard) -> None:
    """It was ours to take off once."""
    name = node_of(yard, group(LiftedWhen.READY), taints=(BOOTING,))
    yard.tend(2)
    yard.cluster.put(replace(now(yard, name), taints=(BOOTING,)))
    yard.tend(3)
    assert now(yard, name).taints == (BOOTING,)


def test_every_device_of_a_mixed_mig_layout_is_waited_for(yard: Yard) -> None:
    """One kind of slice is there and the other is not yet."""
    settings = group(LiftedWhen.GPUS).model_copy(update={"resources": {"nvidia.com/mig-1g.10gb": "2"}})
    name = node_of(yard, settings, allocatable=GPU, taints=(BOOTING,))
    yard.tend(3)
    assert now(yard, name).taints == (BOOTING,)
    yard.cluster.put(replace(now(yard, name), allocatable={**GPU, "nvidia.com/mig-1g.10gb": "2"}))
    yard.tend(2)
    assert now(yard, name).taints == ()


@pytest.mark.parametrize("why", ["not ours", "claimed twice", "older than the machine", "being deleted"])
def test_only_nodes_that_are_ours_beyond_doubt_are_touched(yard: Yard, why: str) -> None:
    """The provider id is ours by the log, one node alone has it, it is younger than the machine, which is wanted."""
    more: dict[str, Any] = {}
    if why == "older than the machine":
        more["created_at"] = yard.house.now - timedelta(days=1)
    if why == "not ours":
        more["provider_id"] = "aws:///i-0abc"
    name = node_of(yard, group(LiftedWhen.READY), taints=(BOOTING,), **more)
    if why == "claimed twice":
        yard.join("other", provider_id=f"verda://{name}")
    if why == "being deleted":
        yard.house.delete(name)
    before = now(yard, name)
    yard.tend(3)
    assert now(yard, name) == before
    assert changes(yard) == []


def test_a_node_that_was_made_anew_is_prepared_anew(yard: Yard) -> None:
    """After `kubectl delete node` the kubelet registers again: what was done to the old object is gone with it."""
    name = node_of(yard, group())
    yard.tend(2)
    yard.cluster.drop(name)
    yard.join(name, uid="the-second", labels=RIGHT)
    yard.tend(2)
    assert labels(yard, name) == {**RIGHT, ROLE: ""}
    assert [what for what, _ in changes(yard)] == ["attempted", "prepared"] * 2


def test_a_lost_race_is_tried_again_and_holds_up_nobody(yard: Yard) -> None:
    """Nodes that start change every few seconds. One intent, however often it takes."""
    first, second = node_of(yard, group()), node_of(yard, group())
    yard.cluster.forbidden["change_node"] = ClusterConflict("changed")
    yard.tend(3)
    assert [what for what, _ in changes(yard)] == ["attempted", "attempted"]
    assert yard.troubles.reasons() == ()
    yard.cluster.forbidden.clear()
    yard.tend(2)
    assert ROLE in labels(yard, first)
    assert ROLE in labels(yard, second)
    assert [what for what, _ in changes(yard)] == ["attempted", "attempted", "prepared", "prepared"]


def test_a_kill_between_deed_and_record_is_noticed(yard: Yard) -> None:
    """The picture shows that it is done: the outcome is written down, and nothing is done twice."""
    name = node_of(yard, group())
    yard.tend(1)
    yard.cluster.forbidden["change_node"] = ClusterUnavailable("gone in the middle")
    yard.house.configure(group().model_copy(update={"labels": {ROLE: "", "k8s.io/tier": "a"}}))
    yard.tend(1)
    yard.cluster.put(replace(now(yard, name), labels={**labels(yard, name), "k8s.io/tier": "a"}))  # it had arrived
    yard.restart()
    yard.tend(2)
    assert [what for what, _ in changes(yard)] == ["attempted", "prepared"] * 2
    assert not yard.house.instance(name).node_preparing


def test_what_is_not_granted_is_one_reason(yard: Yard) -> None:
    """The rest of the cluster side goes on."""
    name = node_of(yard, group())
    yard.cluster.forbidden["change_node"] = ClusterForbidden("cannot patch nodes")
    yard.tend(3)
    (reason,) = yard.troubles.reasons()
    assert reason.message.startswith("the cluster side cannot prepare nodes: cannot patch nodes")
    assert yard.house.instance(name).node_ready_at is not None
    yard.cluster.forbidden.clear()
    yard.tend(1)
    assert yard.troubles.reasons() == ()
    assert ROLE in labels(yard, name)


@pytest.mark.parametrize(
    ("status", "code"),
    [(403, "cluster-forbidden"), (409, None), (422, "cluster-refused"), (500, "cluster-unavailable")],
)
def test_on_a_real_line(yard: Yard, api: ApiServer, cluster: LightkubeCluster, status: int, code: str | None) -> None:
    """The API's own JSON: refused first, done then. The patch names exactly what was read and what changes."""
    yard.house.configure(group(LiftedWhen.GPUS))
    (name,) = yard.house.running()
    node = node_json(name, f"verda://{name}", spec={"taints": [_json(CILIUM), _json(BOOTING)]})
    node["metadata"]["creationTimestamp"] = f"{yard.house.now:%Y-%m-%dT%H:%M:%SZ}"
    written = api.put(node)
    yard.other = cluster
    yard.begin()
    cluster.start()
    api.wait_for_watches(1)
    api.refusals["patch"] = (status, "not now")
    yard.job.run()
    assert [reason.code for reason in yard.troubles.reasons()] == ([code] if code else [])
    api.refusals.clear()
    yard.job.run()
    assert yard.troubles.reasons() == ()
    after = api.object(name)[1]
    assert after["metadata"]["labels"] == {"kubernetes.io/hostname": name, ROLE: "", **RIGHT}
    assert after["spec"]["taints"] == [_json(CILIUM)]
    assert api.bodies[-2:] != []
    (patch,) = [body for body in api.bodies[-2:] if isinstance(body, list)]
    assert [(one["op"], one["path"]) for one in patch] == [
        ("test", "/metadata/uid"),
        ("test", "/metadata/resourceVersion"),
        ("add", "/metadata/labels/node-role.kubernetes.io~1gpu"),
        ("add", "/metadata/labels/topology.kubernetes.io~1region"),
        ("add", "/metadata/labels/topology.kubernetes.io~1zone"),
        ("add", "/metadata/labels/verda.com~1contract"),
        ("remove", "/spec/taints/1"),
    ]
    assert patch[1]["value"] == written["metadata"]["resourceVersion"]


def _json(taint: NodeTaint) -> dict[str, str]:
    return {"key": taint.key, "value": taint.value, "effect": taint.effect}
