import pytest

from app.domain.instance.events import CancelReason, DeleteReason
from app.domain.nodegroup.commands import DrainNodeGroup, PauseNodeGroup, ResumeNodeGroup
from app.domain.nodegroup.events import (
    NodeGroupPaused,
    NodeGroupResumed,
    Rejection,
    ScaleDownRequested,
    ScaleUpRejected,
)
from app.errors import InvalidRequest, NotFound, RuleViolation

from .facts import H100, A, B, cancelled, configured, delete_requested, h100, retired, running, wanted
from .wishes import decrease, delete, increase

WHY = {"operator": "anna", "reason": "new driver"}
PAUSE = PauseNodeGroup(node_group="h100", **WHY)
RESUME = ResumeNodeGroup(node_group="h100", operator="ben", reason="driver is out")
DRAIN = DrainNodeGroup(node_group="h100", **WHY)
PAUSED = NodeGroupPaused(node_group="h100", **WHY)
two = h100.given(*running(A), wanted(B))


def test_a_paused_group_refuses_growth_and_says_who_and_why() -> None:
    """The refusal is a fact; the autoscaler's operator reads it in both logs."""
    paused = two.when(PAUSE).then(PAUSED)
    message = "node group h100 is paused since 2026-06-01 12:00 UTC by anna: new driver"
    rejected = ScaleUpRejected(node_group="h100", delta=1, target_size=2, reason=Rejection.PAUSED, message=message)
    paused.when(increase(1, "h100-cccccccc")).then_refused(RuleViolation, rejected)


def test_a_paused_group_is_told_to_be_full_so_that_the_autoscaler_looks_elsewhere() -> None:
    """One that refuses is backed off from; one at its maximum is passed over, and may still shrink."""
    paused = two.given(PAUSE)
    group = paused.books.groups["h100"]
    assert paused.books.size_limits(group) == (0, 2)
    paused.when(delete(A)).then(
        ScaleDownRequested(node_group="h100", count=1, new_target=1, instances=(A,)), delete_requested(A)
    )
    assert paused.given(decrease(-1)).books.size_limits(group) == (0, 1)


def test_a_minimum_above_the_size_is_told_as_the_size() -> None:
    """Limits that contradict each other would stop the autoscaler's whole loop."""
    needy = h100.given(configured(H100.model_copy(update={"min_size": 3})), *running(A), PAUSE)
    assert needy.books.size_limits(needy.books.groups["h100"]) == (1, 1)


def test_a_pause_outlives_restarts_and_new_settings() -> None:
    """It is the operator's word, and only the operator takes it back."""
    story = two.given(PAUSE, configured(H100.model_copy(update={"max_size": 9})), retired(), configured(H100))
    group = story.books.groups["h100"]
    assert (group.paused_by, group.pause_reason) == ("anna", "new driver")
    resumed = story.when(RESUME).then(NodeGroupResumed(node_group="h100", operator="ben", reason="driver is out"))
    assert resumed.books.groups["h100"].paused_at is None
    assert resumed.when(increase(1, "h100-cccccccc")).refusal is None


def test_what_is_already_so_is_no_new_fact() -> None:
    """The first reason stands."""
    two.given(PAUSE).when(PauseNodeGroup(node_group="h100", operator="ben", reason="me too")).then_nothing()
    two.when(RESUME).then_nothing()
    h100.given(PAUSE).when(DRAIN).then_nothing()


def test_draining_gives_everything_back_and_keeps_it_so() -> None:
    """A machine goes, a wish is dropped, and the autoscaler cannot buy them anew."""
    drained = two.when(DRAIN).then(
        PAUSED,
        ScaleDownRequested(node_group="h100", count=2, new_target=0, instances=(A, B)),
        delete_requested(A, DeleteReason.DRAINED),
        cancelled(B, CancelReason.DELETED),
    )
    assert drained.books.target_size("h100") == 0
    assert drained.when(increase(1, "h100-cccccccc")).refusal is not None


@pytest.mark.parametrize("kind", [PauseNodeGroup, ResumeNodeGroup, DrainNodeGroup])
def test_an_operator_has_to_name_a_group_and_a_reason(
    kind: type[PauseNodeGroup] | type[ResumeNodeGroup] | type[DrainNodeGroup],
) -> None:
    """Those who look later will ask."""
    unknown = two.when(kind(node_group="h1000", **WHY)).then_refused(NotFound)
    assert unknown.message == "there is no node group 'h1000': known are h100"
    silent = two.when(kind(node_group="h100", operator="anna", reason=" ")).then_refused(InvalidRequest)
    assert "reason must be 1 to 500 characters, has 0" in silent.message
    two.when(kind(node_group="h100", operator="anna", reason="x" * 501)).then_refused(InvalidRequest)
