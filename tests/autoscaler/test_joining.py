"""Machines that never become nodes: the autoscaler gives each back after 15 minutes, and the group stops buying."""

from typing import Final

import pytest

from app.domain.explain.group import explain_group
from app.domain.nodegroup.state import Joining

from .ca.releases import ENDS, RELEASES
from .conftest import MakeStage, StageFor
from .groups import gpu, spare
from .stage.sights import Sight
from .stage.stage import Stage

HOUR: Final = 3600


def machine_seconds(stage: Stage) -> list[int]:
    """How long each machine existed, in the order of their creation."""
    now = stage.world.state.now_ms
    machines = sorted(stage.world.state.instances.values(), key=lambda item: item.created_ms)
    return [((now if item.ended_ms is None else item.ended_ms) - item.created_ms) // 1000 for item in machines]


def joining(stage: Stage) -> Joining:
    """What the books say of the group."""
    return stage.process.books.groups["gpu"].joining


@pytest.mark.timeout(900)
def test_a_join_script_that_always_fails_costs_little_in_a_day(stage_for: StageFor) -> None:
    """F41. Three machines, then tries after half an hour, one, two, four and six: nine in all instead of 95.

    The limit is ten machine-hours; nine machines of a quarter of an hour are two and a quarter.
    """
    stage = stage_for(RELEASES[-1], gpu())
    stage.kubelets.joins = False
    stage.cluster.submit("train", gpus=1)
    stage.pass_time(24 * HOUR)
    lives = machine_seconds(stage)
    assert len(lives) == 9
    assert all(900 <= life <= 960 for life in lives)
    assert sum(lives) < 10 * HOUR
    assert joining(stage).failures == 9
    assert joining(stage).is_open
    assert stage.failed_loops() == []
    assert stage.cluster.pending() == ["train"]
    books = stage.process.books
    page = explain_group(books, books.groups["gpu"], (), stage.clock.now())
    (growth,) = (section.answer for section in page.sections if section.question == "May it grow now?")
    assert growth[0] == "No."
    assert "the last 9 machines of gpu ran and never became nodes" in growth[1]
    assert "mend its startup script, join token or provider id" in growth[1]


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_the_first_machine_that_joins_again_ends_it(make_stage: MakeStage) -> None:
    """The script is mended while the breaker is open: the next try joins, its pod runs, and the group buys freely."""
    stage = make_stage(gpu())
    stage.kubelets.joins = False
    stage.cluster.submit("train", gpus=1)
    opened = stage.wait_for(lambda: joining(stage).is_open, at_most=2 * HOUR)
    assert stage.calls("NodeGroupIncreaseSize")[:3] == ["OK", "OK", "OK"]
    assert len(machine_seconds(stage)) == 3
    stage.kubelets.joins = True
    stage.wait_for(lambda: not stage.cluster.pending(), at_most=2 * HOUR)
    assert stage.at > opened + 1800  # half an hour after it opened, and not before
    stage.pass_time(60)
    assert joining(stage) == Joining()
    assert len(machine_seconds(stage)) == 4
    stage.cluster.submit("train-2", "train-3", gpus=1)
    stage.pass_time(400)
    assert stage.cluster.pending() == []
    refused = {"NodeGroupIncreaseSize: : the scale-up failed"}  # the older one ends its loop when it is refused
    assert set(stage.failed_loops()) <= refused


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_other_groups_are_tried_meanwhile(make_stage: MakeStage) -> None:
    """A refused scale-up makes the group rest, and the pod's next choice gets its turn at once."""
    stage = make_stage(gpu(), spare(max_size=1))
    stage.kubelets.joins = False
    stage.cluster.submit("train", gpus=1)
    stage.wait_for(lambda: joining(stage).is_open, at_most=4 * HOUR)
    stage.kubelets.joins = True
    stage.wait_for(lambda: not stage.cluster.pending(), at_most=HOUR)
    assert [node.labels["verda.com/gpu"] for node in stage.cluster.nodes()] == ["a100"]
    assert stage.failed_loops() == []


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
def test_wrongly_spelled_nodes_are_no_failures_to_join(make_stage: MakeStage) -> None:
    """F08. The spelling is learned from the first real node; nothing is given back and nothing is counted."""
    stage = make_stage(gpu())
    stage.kubelets.spelled = lambda provider_id: provider_id.replace("://", ":///")
    stage.cluster.submit("train", gpus=1)
    stage.until(1000)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert joining(stage) == Joining()
