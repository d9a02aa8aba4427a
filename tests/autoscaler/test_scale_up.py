"""Scaling up: from zero, with GPUs that come late, in bursts, up to the maximum."""

from datetime import timedelta

from .ca.releases import Change, Release
from .conftest import MakeStage
from .groups import base, gpu, spare
from .stage.sights import Sight


def test_a_gpu_pod_gets_one_node_from_zero(make_stage: MakeStage) -> None:
    """Scenario 1. One IncreaseSize; the slot is listed from the first moment; one node, nothing upcoming, healthy."""
    stage = make_stage(gpu())
    stage.cluster.submit("train", gpus=1)
    stage.until(25)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    stage.until(40)
    assert stage.sight("gpu") == Sight(
        "target 1, 1 unregistered, 1 upcoming, InProgress", "1 provisioning", "1 provisioning"
    )
    stage.until(140)
    assert stage.sight("gpu") == Sight("target 1, 1 unregistered, 1 upcoming, InProgress", "1 running", "1 running")
    stage.until(150)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.cluster.pending() == []
    (name,) = stage.node_names("gpu")
    assert stage.cluster.node(name).provider_id == f"verda://{name}"
    stage.until(600)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.calls("NodeGroupIncreaseSize") == ["OK"]
    assert stage.calls("NodeGroupDeleteNodes") == stage.calls("NodeGroupDecreaseTargetSize") == []
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]
    assert stage.failed_loops() == []


def test_gpus_that_appear_late_buy_no_second_node(make_stage: MakeStage) -> None:
    """Scenario 4, F34. A node with the GPU label that shows no GPU yet is upcoming, not ready, for five minutes."""
    stage = make_stage(gpu())
    stage.kubelets.gpu_delay = timedelta(minutes=5)
    stage.cluster.submit("train", gpus=1)
    stage.until(150)
    waiting = Sight("target 1, 1 not started, 1 upcoming, InProgress", "1 running", "1 running")
    assert stage.sight("gpu") == waiting
    stage.until(440)
    assert stage.sight("gpu") == waiting
    assert stage.cluster.pending() == ["train"]
    stage.until(450)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.cluster.pending() == []
    assert stage.calls("NodeGroupIncreaseSize") == ["OK"]
    assert stage.failed_loops() == []


def test_a_node_without_the_gpu_label_is_bought_twice(make_stage: MakeStage) -> None:
    """F34. What the kubelet's label is for: without it the node counts as ready, and as one without GPUs."""
    stage = make_stage(gpu())
    stage.kubelets.gpu_delay = timedelta(minutes=5)
    stage.kubelets.labels_left_out = frozenset({"verda.com/gpu"})
    stage.cluster.submit("train", gpus=1)
    stage.until(160)
    assert stage.cluster.pending() == ["train"]
    assert stage.calls("NodeGroupIncreaseSize") == ["OK", "OK"]
    assert stage.world.state.counters.creates_requested == 2


def test_bursts_are_served_up_to_the_maximum(make_stage: MakeStage) -> None:
    """Scenario 10. Two pods, then four more: two nodes, then the one that is left. Nobody asks for more than that."""
    stage = make_stage(gpu(max_size=3))
    stage.cluster.submit("first-1", "first-2", gpus=1)
    stage.until(40)
    assert stage.sight("gpu") == Sight(
        "target 2, 2 unregistered, 2 upcoming, InProgress", "2 provisioning", "2 provisioning"
    )
    stage.cluster.submit("second-1", "second-2", "second-3", "second-4", gpus=1)
    stage.until(80)
    assert stage.sight("gpu") == Sight(
        "target 3, 3 unregistered, 3 upcoming, InProgress", "3 provisioning", "3 provisioning"
    )
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 3, 3 ready, NoActivity", "3 running", "3 running")
    assert stage.cluster.pending() == ["second-2", "second-3", "second-4"]
    assert stage.calls("NodeGroupIncreaseSize") == ["OK", "OK"]
    stage.cluster.finish("first-1", "first-2")
    stage.until(310)
    assert stage.cluster.pending() == ["second-4"]
    assert stage.world.state.counters.creates_requested == 3
    assert stage.failed_loops() == []


def test_one_burst_is_one_call(make_stage: MakeStage) -> None:
    """Eight pods of three cores need four machines of eight: one request for all of them, not one a pod."""
    stage = make_stage(base(min_size=0))
    stage.cluster.submit(*(f"web-{number}" for number in range(8)), cpu="3")
    stage.until(20)
    assert stage.sight("base") == Sight(
        "target 4, 4 unregistered, 4 upcoming, InProgress", "4 provisioning", "4 provisioning"
    )
    assert stage.calls("NodeGroupIncreaseSize") == ["OK"]
    stage.until(200)
    assert stage.cluster.pending() == []
    assert stage.sight("base") == Sight("target 4, 4 ready, NoActivity", "4 running", "4 running")


def test_calls_come_in_the_order_of_the_loop(make_stage: MakeStage, release: Release) -> None:
    """The background thread asks first. From 1.30 the very first loop asks for every node before it refreshes."""
    stage = make_stage(gpu(), spare())
    stage.cluster.submit("train", gpus=1)
    stage.until(220)
    stage.restart_autoscaler()
    calls = [rpc.method for rpc in stage.autoscaler.provider.rpcs]
    background = ["NodeGroups", "NodeGroupNodes", "NodeGroupNodes"]
    first_loop = ["NodeGroupForNode"] if release.has(Change.ASKS_BEFORE_UNTAINTING) else []
    template_of_the_empty_group = ["NodeGroupTemplateNodeInfo"]
    every_loop = ["GPULabel", "Refresh", "NodeGroups", "NodeGroupForNode", *template_of_the_empty_group]
    sizes = ["NodeGroupTargetSize", "NodeGroupTargetSize"]
    expected = [*background, *first_loop, *every_loop, *sizes]
    assert calls[: len(expected)] == expected
    assert set(stage.process.answers) == {(method, "OK") for method, _ in stage.process.answers}
