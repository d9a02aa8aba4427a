"""Nodes and machines that are not ours, and nodes of ours under another spelling."""

from collections.abc import Callable
from typing import Any

import pytest

from .ca.objects import Node
from .ca.releases import ENDS
from .conftest import MakeStage
from .groups import gpu, spare
from .stage.sights import Sight
from .stage.stage import Stage

FOREIGN_IDS = (
    "",
    "robot://123",
    "k3s://gpu-7k2m4q9x",
    "verda://",
    "verda:///x/y",
    "aws:///eu-1a/i-0",
    "a" * 10_000,
    "\x01\x7f",
)


def test_nodes_of_other_providers_are_left_alone(make_stage: MakeStage, quiet: list[Any]) -> None:
    """F07. Unmanaged is an answer, not an error: every loop goes through, and nobody is bothered with log lines."""
    stage = make_stage(gpu())
    for number, provider_id in enumerate(FOREIGN_IDS):
        name = f"worker-{number}"
        stage.cluster.add(
            Node(name=name, provider_id=provider_id, created_at=stage.began_at, ready_since=stage.began_at)
        )
    stage.cluster.submit("train", gpus=1)
    stage.until(100)
    lines = len(quiet)
    stage.until(120)
    assert len(quiet) == lines
    stage.until(400)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert set(stage.calls("NodeGroupForNode")) == {"OK"}
    assert stage.failed_loops() == []


def by_instance_id(stage: Stage) -> Callable[[str], str]:
    """How the older of the two earlier providers' nodes were called."""

    def spelled(provider_id: str) -> str:
        name = provider_id.removeprefix("verda://")
        return f"datacrunch://{stage.process.books.instances[name].instance_id}"

    return spelled


SPELLINGS: dict[str, Callable[[Stage], Callable[[str], str]]] = {
    "a slash more": lambda _: lambda provider_id: provider_id.replace("verda://", "verda:///"),
    "capitals": lambda _: str.upper,
    "by instance id": by_instance_id,
}


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_kubelet_spells_the_id_differently(make_stage: MakeStage, spelling: str) -> None:
    """F08. The first look at the node teaches its spelling; from then on the list says it as the node does."""
    stage = make_stage(gpu())
    stage.kubelets.spelled = SPELLINGS[spelling](stage)
    stage.cluster.submit("train", gpus=1)
    stage.until(1300)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]
    assert stage.calls("NodeGroupDeleteNodes") == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_kubelet_without_a_provider_id_is_known_by_its_name(make_stage: MakeStage) -> None:
    """The node counts for its group, but the autoscaler compares ids alone: after the provision time the instance goes.

    What the answer to NodeGroupForNode can do is done; the kubelet needs `--provider-id`.
    """
    stage = make_stage(gpu())
    stage.kubelets.spelled = lambda _: ""
    stage.cluster.submit("train", gpus=1)
    stage.until(200)
    assert stage.sight("gpu").ca == "target 1, 1 ready, 1 unregistered, NoActivity"
    assert set(stage.calls("NodeGroupForNode")) == {"OK"}
    assert stage.calls("NodeGroupIncreaseSize") == ["OK"]


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_one_name_begins_another(make_stage: MakeStage) -> None:
    """F13. Groups `gpu` and `gpu-a100`, and another cluster's `gpu-a100`: each keeps to itself."""
    stage = make_stage(gpu(), spare("gpu-a100"))
    stage.cloud.trouble(
        "foreign_instance",
        hostname="gpu-a100-zzzzzzzz",
        description="ca:v1 cluster=c10 installation=another group=gpu-a100",
        status="running",
    )
    stage.cluster.submit("train", gpus=1, selector={"node.kubernetes.io/instance-type": "1A100.22V"})
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.sight("gpu-a100").ca == "target 1, 1 ready, NoActivity"
    assert stage.sight("gpu-a100").books == "1 running"
    stage.cluster.finish("train")
    stage.until(1100)
    assert stage.sight("gpu-a100").books == "nothing"
    assert stage.sight("gpu-a100").truth == "1 running"
    (foreign,) = [item for item in stage.world.state.instances.values() if item.foreign]
    assert (foreign.status, foreign.delete_requests) == ("running", 0)
