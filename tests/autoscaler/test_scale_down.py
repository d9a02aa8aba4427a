"""Scaling down: nodes that are not needed, minimum sizes, many at once, deletions that are interrupted."""

from datetime import timedelta

import pytest

from .ca.flags import Flags
from .ca.objects import TO_BE_DELETED, fake_node
from .ca.releases import ENDS, Change, Release
from .conftest import MakeStage
from .faults import meanwhile
from .groups import base, gpu
from .stage.sights import Sight
from .stage.stage import Stage

UNMANAGED = None


def group_of(stage: Stage, name: str) -> str | None:
    """What NodeGroupForNode says about a node when it is asked anew."""
    stage.autoscaler.provider.refresh()
    group = stage.autoscaler.provider.node_group_for_node(stage.cluster.node(name))
    return UNMANAGED if group is None else group.id


def with_idle_nodes(stage: Stage, count: int) -> list[str]:
    """So many GPU nodes, whose pods end at second 200. Unneeded since 210, deleted at 825."""
    pods = [f"train-{number}" for number in range(count)]
    stage.cluster.submit(*pods, gpus=1)
    stage.until(200)
    stage.cluster.finish(*pods)
    return stage.node_names("gpu")


def test_an_empty_node_is_given_back(make_stage: MakeStage) -> None:
    """Scenario 5. Ten minutes unneeded, a taint, five seconds, one call: at that moment it belongs to no group."""
    stage = make_stage(gpu())
    (name,) = with_idle_nodes(stage, 1)
    stage.until(815)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert TO_BE_DELETED not in stage.cluster.node(name).taints
    stage.until(820)
    assert TO_BE_DELETED in stage.cluster.node(name).taints
    assert stage.calls("NodeGroupDeleteNodes") == []
    assert group_of(stage, name) == "gpu"
    stage.until(825)
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]
    assert stage.sight("gpu").books == "1 deleting"
    assert stage.sight("gpu").truth == "1 deleting"
    assert group_of(stage, name) is UNMANAGED
    stage.until(840)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert group_of(stage, name) is UNMANAGED
    stage.until(930)
    assert stage.cluster.nodes() == []
    stage.until(1000)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.story() == ["30 ScaledUpGroup gpu 1", "825 ScaleDown gpu 1"]
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]
    assert stage.failed_loops() == []


def test_many_go_in_calls_of_one_at_the_same_time(make_stage: MakeStage) -> None:
    """F06. Three nodes, three calls at once, the target lower by exactly three, three machines deleted."""
    stage = make_stage(gpu())
    with_idle_nodes(stage, 3)
    stage.until(825)
    assert stage.calls("NodeGroupDeleteNodes") == ["OK", "OK", "OK"]
    assert stage.sight("gpu").books == "3 deleting"
    stage.until(840)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.world.state.counters.deletes_committed == 3
    assert stage.world.state.counters.deletes_repeated == 0


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_group_that_goes_as_a_whole_goes_in_one_call(make_stage: MakeStage, release: Release) -> None:
    """All or nothing: with the option set, one call names every node (old releases cannot be told the option)."""
    options = {"zero_or_max_node_scaling": True, "force_for_new_autoscalers": True}
    stage = make_stage(gpu(autoscaling_options=options))
    stage.cluster.submit("train", gpus=1)
    stage.until(35)
    is_told = release.generation not in {"A", "B"}
    assert stage.story() == [f"30 ScaledUpGroup gpu {3 if is_told else 1}"]
    stage.until(200)
    stage.cluster.finish("train")
    stage.until(840)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]


def test_the_minimum_is_kept_and_failures_go_at_any_size(make_stage: MakeStage, release: Release) -> None:
    """Scenario 6, F05. Two wanted at least; one cannot be had and is deleted although that leaves one.

    The provider does not buy by itself: with the flag that asks for it the autoscaler raises the group again, after
    the rest that the failure earned. Up to 1.29 the node that did arrive ends that rest. Idle nodes stay at the
    minimum.
    """
    flags = Flags(enforce_node_group_min_size=True, frequent_loops=False)
    asked_each_time = base(ladder_cooldown=timedelta(0))
    stage = make_stage(asked_each_time, flags=flags, before=lambda cloud: cloud.trouble("no_capacity_503"))
    stage.until(5)
    assert stage.sight("base").books == "1 provisioning, 1 failed"
    stage.until(25)
    upcoming = "" if release.has(Change.UPCOMING_NEEDS_A_REQUEST) else "1 upcoming, "
    assert stage.sight("base") == Sight(
        f"target 1, 1 unregistered, {upcoming}InProgress", "1 provisioning", "1 provisioning"
    )
    raised_at = 320 if release.has(Change.REMEMBERS_BACKOFF) else 120
    stage.until(raised_at)
    assert stage.story() == [
        "0 ScaledUpGroup base 2",
        "10 ScaleUpFailed base out-of-stock 1",
        "10 DeleteFailed base 1",
        f"{raised_at} ScaledUpGroup base 1",
    ]
    stage.until(1300)
    assert stage.sight("base") == Sight("target 2, 2 ready, NoActivity", "2 running", "2 running")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]
    assert stage.failed_loops() == []


def test_idle_nodes_go_down_to_the_minimum_and_no_further(make_stage: MakeStage) -> None:
    """Scenario 6. Three idle nodes, a minimum of one: two go. The minimum is the one NodeGroupForNode tells."""
    stage = make_stage(gpu(min_size=1))
    with_idle_nodes(stage, 3)
    stage.until(1500)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK", "OK"]


def test_a_machine_on_its_way_out_is_nobodys(make_stage: MakeStage, release: Release) -> None:
    """F17. The cloud takes five minutes to delete; meanwhile both programs restart.

    Old releases clear every taint at their start and see a node that looks fine again. It belongs to no group, so
    nothing is done to it, nothing counts it, and it is deleted once.
    """
    durations = {"preset": "fast", "ordering": 5, "provisioning": 85, "guest": 30, "deleting": 300}
    stage = make_stage(gpu(), cloud={"durations": durations})
    stage.kubelets.buries = False
    (name,) = with_idle_nodes(stage, 1)
    stage.until(830)
    stage.restart_autoscaler()
    untainted = not release.has(Change.ASKS_BEFORE_UNTAINTING)
    assert (TO_BE_DELETED not in stage.cluster.node(name).taints) == untainted
    stage.until(850)
    deleting = Sight("target 0, NoActivity", "1 deleting", "1 deleting")
    assert stage.sight("gpu") == deleting
    stage.restart_provider(killed=True)
    stage.until(900)
    assert stage.sight("gpu") == deleting
    assert group_of(stage, name) is UNMANAGED
    stage.until(1200)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]
    assert stage.world.state.counters.deletes_committed == 1
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
@pytest.mark.parametrize("moment", ["before the autoscaler's call", "before ours"])
def test_somebody_else_was_faster(make_stage: MakeStage, moment: str) -> None:
    """F28. A human deletes the machine in the console first: "already gone" is what was wanted."""
    stage = make_stage(gpu())
    (name,) = with_idle_nodes(stage, 1)
    stage.until(820)
    if moment == "before ours":
        stage.cloud.down = True
        stage.until(830)
    stage.cloud.trouble("human_delete", hostname=name)
    stage.cloud.down = False
    stage.until(900)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
@pytest.mark.parametrize(
    "preset", ["delete_lost", "delete_timeout_before_commit", "delete_timeout_after_commit", "delete_403_already"]
)
def test_a_deletion_is_repeated_until_the_machine_is_gone(make_stage: MakeStage, preset: str) -> None:
    """F28, F29. The autoscaler was told OK and never asks again; the rest is our business."""
    stage = make_stage(gpu())
    with_idle_nodes(stage, 1)
    stage.cloud.trouble(preset)
    stage.until(930)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_wish_is_deleted_while_its_order_is_on_the_way(make_stage: MakeStage) -> None:
    """The deletion wins: what the order brings is given back, and the next wish is another one."""
    stage = make_stage(gpu())

    def delete_it() -> None:
        (group,) = stage.autoscaler.provider.node_groups()
        (name,) = stage.node_names("gpu")
        group.delete_nodes([fake_node(f"verda://{name}", "unregistered")])
        assert stage.sight("gpu").books == "1 deleting"
        assert group.target_size() == 0

    stage.cloud.hook = meanwhile("create_instance", delete_it)
    stage.cluster.submit("train", gpus=1)
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.calls("NodeGroupIncreaseSize") == ["OK", "OK"]
    counters = stage.world.state.counters
    assert (counters.creates_committed, counters.deletes_committed) == (2, 1)


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_pod_in_time_keeps_its_node(make_stage: MakeStage) -> None:
    """A node that is needed once begins its ten minutes anew."""
    stage = make_stage(gpu())
    with_idle_nodes(stage, 1)
    stage.until(700)
    stage.cluster.submit("again", gpus=1)
    stage.until(710)
    stage.cluster.finish("again")
    stage.until(1300)
    assert stage.calls("NodeGroupDeleteNodes") == []
    stage.until(1340)
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]


@pytest.mark.parametrize("release", ENDS[-1:], ids=str, indirect=True)
def test_a_system_disk_that_stays_behind_is_cleared_away(make_stage: MakeStage) -> None:
    """F29. The cloud deletes the machine and keeps its disk, detached and billed."""
    stage = make_stage(gpu())
    with_idle_nodes(stage, 1)
    stage.cloud.trouble("os_volume_left")
    stage.until(1500)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.unwanted() == []
