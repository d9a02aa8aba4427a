"""Section 2 of the statements: NodeGroups and NodeGroupForNode."""

from collections.abc import Callable

import grpc
import pytest

from .autoscaler import FAKE_NODE, RUNNING, Autoscaler, refused
from .cloud import BROKEN, Cloud
from .provider import Stage
from .scenes import Blackout, Renamed, failed, grow, hold_slots
from .service import Lease, Service
from .settings import GPU_LABEL, KINDS, name_for, shared_groups
from .until import until

FOREIGN = [
    "aws:///eu-1a/i-0",
    "robot://123",
    "k3s://gpu-7k2m4q9x",
    "verda://",
    "verda:///x/y",
    "verda://gpu-aaaaaaaa",
    "verda://00000000-0000-4000-8000-000000000000",
    "gpu",
    "a" * 10_000,
    "\x01\x02\x7f",
]


def test_011_every_group_is_listed_once_and_in_the_same_order(ca: Autoscaler) -> None:
    """Statement 11: unique ids, limits that make sense, words for people."""
    groups = ca.groups()
    assert groups
    for name, group in groups.items():
        assert name == group.id != ""
        assert 0 <= group.minSize <= group.maxSize
        assert group.debug
    assert all(list(ca.groups()) == list(groups) for _ in range(5))


@pytest.mark.usefixtures("stage")
def test_011_the_groups_are_those_of_the_configuration(ca: Autoscaler) -> None:
    """Statement 11, F10: but not the one whose instance type nobody sells, for it has no template."""
    limits = {name: (group.minSize, group.maxSize) for name, group in ca.groups().items()}
    configured = {name: (kind.get("min_size", 0), kind["max_size"]) for name, kind in shared_groups().items()}
    assert configured.pop("unknown-type") == (0, 2)
    assert limits == configured
    assert list(limits) == list(configured)


def test_012_groups_are_listed_while_the_cloud_is_away(blackout: Blackout, visit: Callable[[str], Autoscaler]) -> None:
    """Statement 12: an error would look like a cluster without groups."""
    groups = visit(blackout.stage.address).groups()
    assert list(groups) == list(blackout.before)


def test_013_a_node_is_answered_with_its_whole_group(ca: Autoscaler, lease: Lease, service: Service) -> None:
    """Statement 13: the minimum that gates scale-down comes from here; a bare id would mean zero."""
    group = lease() if service.is_external else lease("base")
    ca.increase(group, 1)
    (instance_id,) = ca.live(group)
    answer = ca.group_of(ca.real(instance_id))
    listed = ca.groups()[group]
    assert answer.id == group
    assert (answer.minSize, answer.maxSize, answer.debug) == (listed.minSize, listed.maxSize, listed.debug)
    if not service.is_external:
        assert (answer.minSize, answer.maxSize) == (2, 4)


def test_013_a_running_machine_is_answered_with_its_group(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 13: by the provider id that its kubelet computes."""
    group = lease("gpu")
    grow(ca, group, 1)
    (machine,) = cloud.alive(group)
    assert ca.group_of(ca.node(f"verda://{machine['hostname']}", machine["hostname"])).id == group


def test_013_a_provider_id_of_any_configured_form_is_ours(
    relabelled: Renamed, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 13: whatever the operator's `provider_id_template` says, real and fake nodes are known by it."""
    ca, group = visit(relabelled.stage.address), name_for("gpu", generation)
    (instance_id,) = grow(ca, group, 1)
    (machine,) = relabelled.stage.cloud.alive(group)
    assert instance_id == f"k3s://{group}/{machine['hostname']}.internal"
    for node in (ca.node(instance_id, machine["hostname"]), ca.fake(instance_id), ca.node(name=machine["hostname"])):
        assert ca.group_of(node).id == group
    assert not ca.group_of(ca.node(f"k3s://{machine['hostname']}", machine["hostname"])).id
    ca.delete(group, [ca.fake(instance_id)])
    assert ca.target(group) == 0
    until("the machine is gone", lambda: not relabelled.stage.cloud.alive(group))
    ca.delete(group, [ca.fake(instance_id)])


@pytest.mark.parametrize("provider_id", FOREIGN, ids=lambda text: repr(text[:16]))
def test_014_nodes_of_others_belong_to_no_group(ca: Autoscaler, provider_id: str) -> None:
    """Statement 14, F07: OK with an empty id; an error would stop the autoscaler's loop."""
    answer = ca.group_of(ca.node(provider_id, "control-plane-1", labels={GPU_LABEL: "a100"}))
    assert not answer.id


def test_014_nodes_of_others_leave_no_trace_in_the_log(ca: Autoscaler, stage: Stage) -> None:
    """Statement 14, F07: each is asked for many times a minute."""
    said = stage.provider.log.read_text()
    for provider_id in FOREIGN:
        ca.group_of(ca.node(provider_id, "control-plane-1"))
    assert "NodeGroupForNode" not in stage.provider.log.read_text()[len(said) :]


def test_015_a_node_without_provider_id_is_known_by_its_name(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 15: kubelets without `--provider-id` exist."""
    group = lease("gpu")
    grow(ca, group, 1)
    (machine,) = cloud.alive(group)
    assert ca.group_of(ca.node(name=machine["hostname"])).id == group


@pytest.mark.parametrize(
    "name", ["", "control-plane-1", "gpu", "gpu-aaaaaaaa", "n" * 10_000], ids=lambda text: text[:13]
)
def test_015_an_unknown_name_without_provider_id_is_no_error(ca: Autoscaler, name: str) -> None:
    """Statement 15: nor is a node with neither."""
    assert not ca.group_of(ca.node(name=name)).id


def test_016_a_fake_node_is_as_good_as_the_real_one(ca: Autoscaler, lease: Lease) -> None:
    """Statement 16: for machines without a node the autoscaler makes one up of the instance's id, without labels."""
    group = lease()
    ca.increase(group, 1)
    (instance_id,) = ca.live(group)
    for reason in ("unregistered", "create-error"):
        assert ca.group_of(ca.fake(instance_id, reason)) == ca.group_of(ca.real(instance_id))
        assert ca.group_of(ca.fake(instance_id, reason)).id == group


def test_016_a_wish_without_machine_and_a_failed_one_have_fake_nodes_too(
    ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud
) -> None:
    """Statement 16: "no group" for a placeholder once crashed the autoscaler."""
    waiting, broken = lease("gpu"), lease("sold-out")
    ca.increase(broken, 1)
    instance = failed(ca, broken)
    assert ca.group_of(ca.fake(instance.id, "create-error")).id == broken
    with cloud.orders_held(2):
        hold_slots(stage, ca, waiting, 3)
        assert {ca.group_of(ca.fake(each)).id for each in ca.live(waiting)} == {waiting}
        assert not cloud.alive(waiting)


def test_017_the_provider_id_decides_whatever_the_labels_say(ca: Autoscaler, lease: Lease) -> None:
    """Statement 17: labels and names can be wrong or stale; so can the name of another machine."""
    mine, other = lease("gpu"), lease("spot")
    ca.increase(other, 1)
    ca.increase(mine, 1)
    (instance_id,), (stranger,) = ca.live(mine), ca.live(other)
    labels = {
        **dict(ca.template(other).metadata.labels),
        "verda.com/node-group": other,
        "cloud.verda.com/node-group": other,
        "node-group": other,
    }
    answer = ca.group_of(ca.node(instance_id, stranger.removeprefix("verda://"), labels=labels))
    assert answer.id == mine
    assert not ca.group_of(ca.node("aws:///eu-1a/i-0", instance_id.removeprefix("verda://"), labels=labels)).id


def test_018_a_deleted_node_is_nobodys_at_once(ca: Autoscaler, lease: Lease) -> None:
    """Statement 18, F17: else it hides nodes that are coming, and a restarted autoscaler takes it for healthy."""
    group = lease()
    ca.increase(group, 2)
    gone, left = ca.live(group)
    ca.delete(group, [ca.real(gone)])
    for node in (ca.real(gone), ca.fake(gone), ca.node(gone)):
        assert not ca.group_of(node).id
    assert ca.group_of(ca.real(left)).id == group


def test_018_a_machine_proven_gone_is_nobodys(ca: Autoscaler, lease: Lease) -> None:
    """Statement 18: also when it is no longer listed."""
    group = lease("gpu")
    (instance_id,) = grow(ca, group, 1)
    ca.delete(group, [ca.real(instance_id)])
    until("the machine is gone", lambda: not ca.instances(group))
    assert not ca.group_of(ca.real(instance_id)).id


def test_018_trouble_at_the_cloud_makes_no_node_nobodys(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 18, F25: while its machine exists a node stays in its group, through failing and wrong listings."""
    group = lease("gpu")
    (instance_id,) = grow(ca, group, 1)
    (machine,) = cloud.alive(group)
    listing = {"method": "GET", "path": "/v1/instances"}
    cloud.fault("before_commit", BROKEN, times=1, method="GET", path=f"/v1/instances/{machine['id']}")
    cloud.preset("list_empty", times=2)
    cloud.preset("list_hole", id=machine["id"], times=1)
    cloud.fault("before_commit", BROKEN, times=1, **listing)
    listings = cloud.listings()

    def is_over() -> bool:
        assert ca.group_of(ca.real(instance_id)).id == group
        return cloud.listings() > listings + 4

    until("four wrong listings and a right one", is_over)
    assert ca.sizes(group) == (1, {instance_id: RUNNING})


def test_018_a_cloud_that_is_away_makes_no_node_nobodys(
    blackout: Blackout, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 18: nor when it does not answer at all."""
    ca, group = visit(blackout.stage.address), name_for("gpu", generation)
    assert {ca.group_of(ca.real(each)).id for each in blackout.before[group][1]} == {group}


@pytest.mark.usefixtures("stage")
def test_019_no_answer_names_a_group_that_is_not_listed(ca: Autoscaler) -> None:
    """Statement 19: the autoscaler would look it up and find nothing."""
    groups = ca.groups()
    nodes = [ca.fake(each) for group in groups for each in ca.states(group)]
    nodes += [ca.node(f"verda://unknown-type-{number}aaaaaaa") for number in range(3)]
    nodes += [ca.node(labels={"node.kubernetes.io/instance-type": KINDS["unknown-type"]["instance_type"]})]
    assert {ca.group_of(node).id for node in nodes} <= {"", *groups}


def test_020_a_request_without_node_is_refused(ca: Autoscaler) -> None:
    """Statement 20: it is a mistake of the caller, not a node of nobody."""
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        ca.call("NodeGroupForNode")
    assert not ca.group_of(ca.node(annotations={FAKE_NODE: "unregistered"})).id
