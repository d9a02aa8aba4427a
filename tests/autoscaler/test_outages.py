"""The cloud is away, slow, or talks nonsense; the autoscaler does not notice."""

from typing import Any

import pytest

from app.simulator.fault_model import Fault, Match, Phase, Say

from .ca.releases import ENDS
from .conftest import MakeStage
from .groups import gpu
from .stage.sights import Sight
from .stage.stage import Stage


def test_the_cloud_is_down_for_five_minutes(make_stage: MakeStage) -> None:
    """Scenario 8. No loop fails, no call is refused; the wish waits, the running node stays, the order follows."""
    stage = make_stage(gpu())
    stage.cluster.submit("train-1", gpus=1)
    stage.until(200)
    stage.cloud.down = True
    stage.cluster.submit("train-2", gpus=1)
    stage.until(490)
    assert stage.sight("gpu") == Sight(
        "target 2, 1 ready, 1 unregistered, 1 upcoming, InProgress", "1 requested, 1 running", "1 running"
    )
    stage.until(500)
    stage.cloud.down = False
    stage.until(700)
    assert stage.sight("gpu") == Sight("target 2, 2 ready, NoActivity", "2 running", "2 running")
    assert stage.story() == ["30 ScaledUpGroup gpu 1", "230 ScaledUpGroup gpu 1"]
    assert stage.failed_loops() == []
    assert {code for _, code in stage.process.answers} == {"OK"}


def three_nodes(stage: Stage) -> None:
    """Three nodes at work."""
    stage.cluster.submit("train-1", "train-2", "train-3", gpus=1)
    stage.until(200)
    assert stage.sight("gpu") == Sight("target 3, 3 ready, NoActivity", "3 running", "3 running")


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
@pytest.mark.parametrize(
    ("preset", "args"),
    [
        ("list_empty", {}),
        ("list_hole", {}),
        ("list_stale", {"lag": 150}),
        ("list_duplicate", {}),
        ("list_truncated_json", {}),
        ("object_null_id", {}),
        ("object_partial", {}),
        ("ok_html", {"path": "/v1/instances", "method": "GET"}),
    ],
)
def test_one_bad_list_changes_nothing(make_stage: MakeStage, preset: str, args: dict[str, Any]) -> None:
    """F25. Empty, with a hole, old, unreadable, without ids: no node changes state, nobody is deleted."""
    stage = make_stage(gpu(max_size=4))
    three_nodes(stage)
    stage.cloud.trouble(preset, **args)
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 3, 3 ready, NoActivity", "3 running", "3 running")
    assert stage.calls("NodeGroupDeleteNodes") == []
    assert stage.world.state.counters.deletes_requested == 0


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_two_minutes_of_too_many_requests(make_stage: MakeStage) -> None:
    """F24. Throttled calls prove nothing about machines. The new wish waits and is served."""
    stage = make_stage(gpu(max_size=4))
    three_nodes(stage)
    say = Say(status=429, text="Rate limit!", content_type="application/json", headers={"Retry-After": "17"})
    throttling = stage.cloud.inject(Fault(match=Match(), phase=Phase.BEFORE_COMMIT, action=say, times=-1))
    stage.cluster.submit("train-4", gpus=1)
    stage.until(320)
    assert stage.sight("gpu") == Sight(
        "target 4, 3 ready, 1 unregistered, 1 upcoming, InProgress", "1 requested, 3 running", "3 running"
    )
    stage.cloud.exchange.faults.remove(throttling)
    stage.until(520)
    assert stage.sight("gpu") == Sight("target 4, 4 ready, NoActivity", "4 running", "4 running")
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
@pytest.mark.parametrize(
    "preset", ["create_timeout_after_commit", "create_timeout_before_commit", "create_5xx_after", "create_5xx_before"]
)
def test_an_order_of_unknown_outcome_is_one_machine(make_stage: MakeStage, preset: str) -> None:
    """The autoscaler sees one slot with one id, whatever became of the first order."""
    stage = make_stage(gpu())
    stage.cloud.trouble(preset)
    stage.cluster.submit("train", gpus=1)
    stage.until(350)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.world.state.counters.creates_committed == 1
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_decreasing_the_target_releases_wishes_and_no_machine(make_stage: MakeStage) -> None:
    """F03. Three wishes, one of them ordered. Two can be released, then none; in between target and list agree.

    So the autoscaler's size fixer, which would halt every group over a refusal, has nothing to fix.
    """
    stage = make_stage(gpu(max_size=5))
    stage.cloud.trouble("rate_limit", times=2, retry_after=600, method="POST", path="/v1/instances")
    stage.cluster.submit("train-1", "train-2", "train-3", gpus=1)
    stage.until(40)
    assert stage.sight("gpu") == Sight(
        "target 3, 3 unregistered, 3 upcoming, InProgress", "2 requested, 1 provisioning", "1 provisioning"
    )
    (group,) = stage.autoscaler.provider.node_groups()
    group.decrease_target_size(-2)
    assert stage.sight("gpu").books == "1 provisioning"
    for delta in (-2, -1):
        with pytest.raises(Exception, match="FAILED_PRECONDITION"):
            group.decrease_target_size(delta)
    assert group.target_size() == 1
    stage.cluster.finish("train-2", "train-3")
    stage.pass_time(1500)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.failed_loops() == []
    assert "FixedSize" not in " ".join(stage.story())
