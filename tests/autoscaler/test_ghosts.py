"""The cluster side beside the autoscaler: ghosts of evicted machines, a wrong API server, kubelets without an id."""

from datetime import timedelta
from typing import Any, Final

import pytest

from app.domain.nodegroup.spec import LiftedWhen, StartupTaint, TaintEffect
from app.errors import ClusterForbidden, ClusterUnavailable

from .ca.objects import STARTUP_TAINT, Node
from .ca.releases import ENDS
from .conftest import MakeStage
from .groups import gpu, spot
from .stage.sights import Sight
from .stage.stage import Stage

MANY: Final[dict[str, Any]] = {"capacity": {"pools": {"FIN-01": {"H100": 200, "A100": 8, "CPU": 720}}}}
STRANGERS: Final = ("control-plane", "storage")


def add_strangers(stage: Stage) -> None:
    """A healthy node of nobody's, and one of another provider that has been not ready for ever."""
    for name, ready in zip(STRANGERS, (True, False), strict=True):
        node = Node(name=name, provider_id=f"k3s://{name}", created_at=stage.began_at, ready_since=stage.began_at)
        node.ready = ready
        stage.cluster.add(node)


def ghosts(stage: Stage) -> list[str]:
    """Nodes of ours that are not ready."""
    return [node.name for node in stage.cluster.nodes() if not node.ready and node.name not in STRANGERS]


@pytest.mark.timeout(600)
@pytest.mark.parametrize("release", ENDS[-1:], ids=str, indirect=True)
def test_a_wave_of_thirty_evictions_in_sixty_nodes(make_stage: MakeStage) -> None:
    """F27, F70. Half the cluster is gone at once, and the GPU plugins of what replaces it take a minute.

    Only ghosts are removed, all within three minutes; the autoscaler never thinks the cluster unhealthy, which it would
    with more than 45 % of the nodes unready; the pods run on new machines.
    """
    stage = make_stage(spot(max_size=60), cloud=MANY, kubernetes=True)
    add_strangers(stage)
    stage.cluster.submit(*(f"train-{number}" for number in range(60)), gpus=1)
    stage.until(1205)  # the nodes are older than the 15 minutes in which "unready" would still mean "starting"
    before = {node.name for node in stage.cluster.nodes()}
    assert len(before) == 62
    assert stage.cluster.pending() == []
    stage.kubelets.gpu_delay = timedelta(seconds=60)
    evicted = {stage.world.state.instances[str(one)].hostname for one in _evict_half(stage)}
    stage.until(1385)
    assert ghosts(stage) == []
    assert stage.kubernetes is not None
    assert set(stage.kubernetes.removed) == evicted
    assert len(stage.kubernetes.removed) == 30
    assert before - {node.name for node in stage.cluster.nodes()} == evicted
    stage.until(1805)
    assert stage.cluster.pending() == []
    assert stage.sight("spot") == Sight("target 60, 60 ready, NoActivity", "60 running", "60 running")
    assert "ClusterUnhealthy" not in " ".join(stage.story())
    assert stage.failed_loops() == []


def _evict_half(stage: Stage) -> list[Any]:
    victims = stage.cloud.trouble("evict_wave", share=0.5)
    assert isinstance(victims, list)
    assert len(victims) == 30
    return victims


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_given_back_machines_leave_no_nodes(make_stage: MakeStage) -> None:
    """F70. Nothing but the cluster side removes nodes here; five minutes after they fell silent, they are gone."""
    stage = make_stage(gpu(), kubernetes=True)
    add_strangers(stage)
    stage.cluster.submit("train", gpus=1)
    stage.until(200)
    stage.cluster.finish("train")
    stage.wait_for(lambda: len(stage.cluster.nodes()) == len(STRANGERS), at_most=2000)
    assert [node.name for node in stage.cluster.nodes()] == list(STRANGERS)
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
@pytest.mark.parametrize(
    "trouble",
    [ClusterUnavailable("the API server is too slow"), ClusterForbidden("the API server refuses (403)"), None],
    ids=["down", "forbidden", "lying"],
)
def test_scaling_goes_on_whatever_the_api_server_does(
    make_stage: MakeStage, trouble: ClusterUnavailable | ClusterForbidden | None, quiet: list[Any]
) -> None:
    """Out of reach, not granted, or showing no node at all: up and down as without the module, one remark, one line."""
    stage = make_stage(gpu(), kubernetes=True)
    assert stage.kubernetes is not None
    stage.kubernetes.trouble = trouble
    stage.kubernetes.hides = trouble is None
    for number in range(4):  # more often than the breaker would need, if it believed the API server
        stage.cluster.submit("train", gpus=1)
        stage.wait_for(lambda: not stage.cluster.pending(), at_most=400)
        assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running"), number
        stage.cluster.finish("train")
        stage.wait_for(lambda: stage.sight("gpu").books == "nothing", at_most=900)
        for node in stage.cluster.nodes():
            stage.cluster.remove(node.name)
    assert stage.kubernetes.removed == []
    assert not stage.process.books.groups["gpu"].joining.failures
    assert len(stage.process.troubles.reasons()) == (0 if trouble is None else 1)
    assert len([line for line in quiet if "cluster side" in line["event"]]) == (0 if trouble is None else 1)
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_kubelet_without_a_provider_id_is_not_given_back(make_stage: MakeStage) -> None:
    """F45. Without the repair the autoscaler would delete the machine after a quarter of an hour, again and again."""
    stage = make_stage(gpu(), kubernetes=True)
    stage.kubelets.spelled = lambda _: ""
    stage.cluster.submit("train", gpus=1)
    stage.until(1300)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.calls("NodeGroupDeleteNodes") == []
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_node_smaller_than_promised_corrects_the_template_for_good(make_stage: MakeStage) -> None:
    """F36. A kubelet leaves 8 GiB less to pods than was reckoned; the group at zero knows it, also after a restart."""
    stage = make_stage(gpu(), kubernetes=True)
    computed = stage._template("gpu").allocatable["memory"]
    stage.cluster.submit("train", gpus=1)
    stage.wait_for(stage.cluster.nodes, at_most=200)
    (node,) = stage.cluster.nodes()
    node.allocatable["memory"] = real = computed - 8 * 2**30
    stage.pass_time(90)
    assert stage._template("gpu").allocatable["memory"] == real
    stage.restart_provider(killed=True)
    assert stage._template("gpu").allocatable["memory"] == real
    assert stage.process.books.instances[node.name].node_measured_at is not None


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_start_up_taint_makes_up_for_a_missing_gpu_label(make_stage: MakeStage) -> None:
    """F38. The kubelet lacks the GPU label, and the driver takes two minutes: without the taint a second is bought.

    With it the autoscaler waits; we take it off when the GPU is there, and give the node its role.
    """
    key = f"{STARTUP_TAINT}gpus"
    taint = StartupTaint(key=key, effect=TaintEffect.NO_SCHEDULE, until=LiftedWhen.GPUS)
    stage = make_stage(gpu(startup_taints=(taint,), labels={"node-role.kubernetes.io/gpu": ""}), kubernetes=True)
    stage.kubelets.labels_left_out = frozenset({"verda.com/gpu", "node-role.kubernetes.io/gpu"})
    stage.kubelets.startup_taints = {key: "NoSchedule"}
    stage.kubelets.gpu_delay = timedelta(minutes=2)
    stage.cluster.submit("train", gpus=1)
    stage.until(400)
    assert stage.cluster.pending() == []
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    (node,) = stage.cluster.nodes()
    assert key not in node.taints
    assert node.labels["node-role.kubernetes.io/gpu"] == ""
    assert stage.calls("NodeGroupIncreaseSize") == ["OK"]
