"""Either program ends at a bad moment."""

import pytest

from app.simulator.inprocess import Moment

from .ca.releases import ENDS, Change, Release
from .conftest import MakeStage
from .faults import killing
from .groups import gpu, spare
from .stage.process import Killed
from .stage.sights import Sight


@pytest.mark.parametrize("moment", list(Moment))
def test_the_provider_is_killed_while_it_orders(make_stage: MakeStage, moment: Moment) -> None:
    """Scenario 7. The order was sent or not, the answer never read. One machine in the end, and one IncreaseSize."""
    stage = make_stage(gpu())
    stage.cloud.hook = killing("create_instance", moment)
    stage.cluster.submit("train", gpus=1)
    with pytest.raises(Killed):
        stage.until(30)
    stage.cloud.hook = None
    assert stage.sight("gpu").books == "1 submitting"
    stage.restart_provider(killed=True)
    was_made = moment is Moment.ANSWERED
    books = "1 provisioning" if was_made else "1 submitting"
    stage.until(40)
    assert stage.sight("gpu") == Sight(
        "target 1, 1 unregistered, 1 upcoming, InProgress", books, "1 provisioning" if was_made else "nothing"
    )
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.world.state.counters.creates_committed == 1
    assert stage.calls("NodeGroupIncreaseSize") == ["OK"]
    assert stage.calls("NodeGroupDeleteNodes") == []


def test_the_autoscaler_restarts_while_a_machine_boots(make_stage: MakeStage, release: Release) -> None:
    """Scenario 7. Up to 1.35 what boots is upcoming whoever asked for it; 1.36 without a request buys again.

    No answer of ours can prevent that. The second node is idle and goes; nothing of it stays.
    """
    stage = make_stage(gpu())
    stage.cluster.submit("train", gpus=1)
    stage.until(60)
    stage.restart_autoscaler()
    stage.until(75)
    buys_again = release.has(Change.UPCOMING_NEEDS_A_REQUEST)
    boots = 2 if buys_again else 1
    status = "InProgress" if buys_again else "NoActivity"
    assert stage.sight("gpu") == Sight(
        f"target {boots}, {boots} unregistered, {boots} upcoming, {status}",
        f"{boots} provisioning",
        f"{boots} provisioning",
    )
    assert stage.story() == ["30 ScaledUpGroup gpu 1", *(["60 ScaledUpGroup gpu 1"] if buys_again else [])]
    stage.until(850)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.cluster.pending() == []
    assert stage.failed_loops() == []


def test_the_provider_is_away_for_a_minute(make_stage: MakeStage) -> None:
    """Scenario 9. Every loop fails meanwhile, and sizes are afterwards what they were.

    The background thread finds no groups and forgets every instance; the timers of unregistered ones go on.
    """
    stage = make_stage(gpu())
    stage.cluster.submit("train", gpus=1)
    stage.until(65)
    stage.process.stop()
    stage.until(125)
    assert len(stage.failed_loops()) == 6
    assert {words.split(":")[0] for words in stage.failed_loops()} == {"Refresh"}
    stage.process.start(stage.specs)
    stage.until(130)
    assert stage.sight("gpu") == Sight("target 1, 1 unregistered, 1 upcoming, InProgress", "1 running", "1 running")
    (since,) = stage.autoscaler.registry.unregistered.values()
    assert (since - stage.began_at).total_seconds() <= 40
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]
    assert len(stage.failed_loops()) == 6


def test_the_answer_to_a_scale_up_comes_too_late(make_stage: MakeStage, release: Release) -> None:
    """Accepted here, failed there. The group rests, its machine comes nevertheless, serves the pod and is kept.

    1.36 does not count it, so it also asks another group; that node is idle and goes.
    """
    stage = make_stage(gpu(), spare())
    stage.line.lost["NodeGroupIncreaseSize"] = 1
    stage.cluster.submit("train", gpus=1)
    stage.until(60)
    asks_another = release.has(Change.UPCOMING_NEEDS_A_REQUEST)
    assert stage.story() == [
        "30 FailedToScaleUpGroup gpu DEADLINE_EXCEEDED",
        *(["40 ScaledUpGroup spare 1"] if asks_another else []),
    ]
    stage.until(850)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.sight("spare") == Sight("target 0, NoActivity", "nothing", "nothing")
    assert stage.calls("NodeGroupIncreaseSize", "gpu") == ["DEADLINE_EXCEEDED"]
    assert len(stage.failed_loops()) == (0 if release.has(Change.GOES_ON_AFTER_SCALE_UP) else 1)


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_goodbye_means_nothing(make_stage: MakeStage, release: Release) -> None:
    """F16. Cleanup says that the autoscaler goes away, at each of its restarts. Nothing is written, nothing goes."""
    stage = make_stage(gpu())
    stage.cluster.submit("train", gpus=1)
    stage.until(160)
    position = stage.process.ledger.head.position
    stage.autoscaler.end()
    stage.autoscaler.end()
    assert stage.calls("Cleanup") == (["OK", "OK"] if release.has(Change.SAYS_GOODBYE) else [])
    assert stage.process.ledger.head.position == position
    stage.restart_autoscaler()
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
