"""The operator changes the node groups while everything runs."""

import pytest

from .ca.releases import ENDS
from .conftest import MakeStage
from .groups import gpu, spare
from .stage.sights import Sight
from .stage.stage import Stage


def limits(stage: Stage) -> dict[str, tuple[int, int]]:
    """Minimum and maximum of every group, as NodeGroups tells them now."""
    stage.autoscaler.provider.refresh()
    return {group.id: (group.min_size, group.max_size) for group in stage.autoscaler.provider.node_groups()}


def test_a_lower_maximum_only_stops_growth(make_stage: MakeStage) -> None:
    """Scenario 14, F11. Three run, two are allowed: nobody goes for that, nobody comes, and who is idle may go."""
    stage = make_stage(gpu())
    stage.cluster.submit("train-1", "train-2", "train-3", gpus=1)
    stage.until(200)
    stage.reconfigure(gpu(max_size=2))
    stage.cluster.submit("train-4", gpus=1)
    stage.until(300)
    assert limits(stage) == {"gpu": (0, 2)}
    assert stage.sight("gpu") == Sight("target 3, 3 ready, NoActivity", "3 running", "3 running")
    assert stage.calls("NodeGroupIncreaseSize") == ["OK"]
    stage.cluster.finish("train-1", "train-4")
    stage.until(960)
    assert stage.sight("gpu") == Sight("target 2, 2 ready, NoActivity", "2 running", "2 running")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]
    assert stage.failed_loops() == []


def test_a_removed_group_is_drained_and_then_disappears(make_stage: MakeStage) -> None:
    """Scenario 14, F12. Listed with no room to grow until its last machine is gone; new pods go to the other group."""
    stage = make_stage(gpu(), spare())
    stage.cluster.submit("train-1", "train-2", gpus=1)
    stage.until(200)
    stage.reconfigure(spare())
    assert limits(stage) == {"gpu": (0, 2), "spare": (0, 3)}
    stage.cluster.submit("train-3", gpus=1)
    stage.until(250)
    assert stage.sight("gpu") == Sight("target 2, 2 ready, NoActivity", "2 running", "2 running")
    assert stage.sight("spare").books == "1 provisioning"
    stage.until(400)
    stage.cluster.finish("train-1", "train-2")
    stage.until(1025)
    assert stage.sight("gpu").books == "2 deleting"
    assert limits(stage) == {"gpu": (0, 0), "spare": (0, 3)}
    stage.until(1040)
    assert limits(stage) == {"spare": (0, 3)}
    stage.until(1100)
    assert stage.sight("gpu") == Sight("no such group", "nothing", "nothing")
    assert stage.sight("spare") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_a_group_is_removed_while_it_grows(make_stage: MakeStage) -> None:
    """Wishes that were never ordered are dropped with it; the open request leads nowhere and harms nobody."""
    stage = make_stage(gpu(), spare())
    stage.cloud.down = True
    stage.cluster.submit("train", gpus=1)
    stage.until(60)
    assert stage.sight("gpu").books == "1 requested"
    stage.reconfigure(spare())
    stage.cloud.down = False
    stage.until(80)
    assert stage.sight("gpu") == Sight("no such group", "nothing", "nothing")
    stage.until(300)
    assert stage.sight("spare") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_one_broken_group_halts_nobody(make_stage: MakeStage) -> None:
    """F10. A type that the catalogue does not know is no group yet; one that it forgets goes on with what was known."""
    stage = make_stage(gpu("bad", instance_type="9X900.1V"), gpu())
    assert limits(stage) == {"gpu": (0, 3)}
    stage.cluster.submit("train-1", gpus=1)
    stage.until(200)
    stage.cloud.trouble("type_removed", type="1H100.80S.30V")
    stage.until(610)
    assert "1H100.80S.30V" in stage.process.books.cloud.withdrawn
    stage.restart_autoscaler()
    stage.cluster.submit("train-2", gpus=1)
    stage.until(700)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, Backoff", "1 running", "1 running")
    assert stage.failed_loops() == []
