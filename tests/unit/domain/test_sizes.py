import pytest

from app.domain.instance.events import CancelReason
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.events import (
    Rejection,
    ScaleUpRejected,
    ScaleUpRequested,
)
from app.errors import Conflict, InvalidRequest, NotFound, RuleViolation

from .facts import (
    H100,
    LEADING_TO,
    NEW_DATABASE,
    A,
    B,
    C,
    D,
    attempted,
    cancelled,
    configured,
    created,
    delete_requested,
    h100,
    refused,
    retired,
    running,
    wanted,
)
from .wishes import both, configuration, decrease, delete, increase, released

# --- IncreaseSize


def test_a_scale_up_is_one_fact_and_one_wish_a_node() -> None:
    """The very next target size shows all of them."""
    after = h100.when(increase(2, A, B)).then(
        ScaleUpRequested(node_group="h100", delta=2, new_target=2, instances=(A, B)), wanted(A), wanted(B)
    )
    assert after.books.target_size("h100") == 2
    assert [instance.name for instance in after.books.members("h100").listed] == [A, B]


def test_a_scale_up_to_exactly_the_maximum_is_accepted() -> None:
    """The maximum is a size the group may have."""
    after = h100.given(wanted(A), wanted(B), wanted(C)).when(increase(1, D)).after
    assert after.books.target_size("h100") == 4


def test_a_scale_up_is_all_or_nothing() -> None:
    """A request beyond the maximum changes nothing, not even partly; that it was refused is a fact."""
    message = "3 + 2 is more than max_size 4 of h100"
    h100.given(wanted(A), wanted(B), wanted(C)).when(increase(2, D, "h100-eeeeeeee")).then_refused(
        RuleViolation,
        ScaleUpRejected(node_group="h100", delta=2, target_size=3, reason=Rejection.MAX_SIZE, message=message),
    )


def test_failed_instances_count_against_the_maximum_until_they_are_deleted() -> None:
    """They are part of the target size, as the autoscaler sees it."""
    story = h100.given(*LEADING_TO[InstanceState.FAILED], wanted(B), wanted(C))
    assert story.when(increase(2, D, "h100-eeeeeeee")).refusal is not None
    assert story.given(delete_requested()).when(increase(2, D, "h100-eeeeeeee")).refusal is None


@pytest.mark.parametrize("delta", [0, -1])
def test_an_increase_that_is_none_makes_no_sense(delta: int) -> None:
    """Not even a fact: nothing was asked of us."""
    h100.when(increase(delta)).then_refused(InvalidRequest)


def test_an_unknown_group_cannot_grow() -> None:
    """A dangling id must be an error of that call alone."""
    h100.when(increase(1, "gpu-aaaaaaaa", group="gpu")).then_refused(NotFound)


def test_a_group_that_the_catalogue_has_never_had_cannot_grow() -> None:
    """It is not listed either: its template could not be answered."""
    NEW_DATABASE.when(increase(1, A)).then_refused(NotFound)


def test_a_retired_group_cannot_grow() -> None:
    """It left the configuration and is only served until it is empty."""
    message = "node group h100 left the configuration and only shrinks"
    h100.given(*running(), retired()).when(increase(1, B)).then_refused(
        RuleViolation,
        ScaleUpRejected(node_group="h100", delta=1, target_size=1, reason=Rejection.RETIRED, message=message),
    )


def test_an_empty_retired_group_does_not_exist() -> None:
    """All answers agree from the instant its last instance is gone."""
    h100.given(*LEADING_TO[InstanceState.GONE], retired()).when(increase(1, B)).then_refused(NotFound)


@pytest.mark.parametrize("names", [(A, B), (B, B), (B,), (B, C, D)], ids=["used", "twice", "too few", "too many"])
def test_names_are_fresh_distinct_and_one_a_node(names: tuple[str, ...]) -> None:
    """The name is the key of the creation: used twice, two wishes would share one machine."""
    h100.given(*LEADING_TO[InstanceState.GONE]).when(increase(2, *names)).then_refused(Conflict)


def test_the_provider_id_is_known_with_the_wish_if_the_template_allows() -> None:
    """It never changes then, and a start-up script can compute it."""
    spec = H100.model_copy(update={"provider_id_template": "verda://{group}/{hostname}"})
    after = h100.given(configured(spec)).when(increase(1, A)).after
    assert after.instance(A).provider_id == "verda://h100/h100-aaaaaaaa"


def test_the_provider_id_is_provisional_if_it_needs_the_machine() -> None:
    """A slot is listed from the start, under an id that is its own."""
    spec = H100.model_copy(update={"provider_id_template": "verda://{instance_id}"})
    after = h100.given(configured(spec)).when(increase(1, A)).after
    assert after.instance(A).provider_id == "verda://pending/h100-aaaaaaaa"


def test_lowering_the_maximum_only_stops_growth() -> None:
    """F11: four run, the maximum becomes two: nothing is deleted, deletions are accepted, growth is not."""
    story = h100.given(*running(), wanted(B), wanted(C), wanted(D))
    story = story.given(configuration(H100.model_copy(update={"max_size": 2})))
    assert story.books.target_size("h100") == 4
    assert story.when(increase(1, "h100-eeeeeeee")).refusal is not None
    assert story.when(delete(A)).refusal is None


# --- DecreaseTargetSize


def test_a_decrease_releases_the_newest_wishes() -> None:
    """The oldest has waited longest for its machine."""
    h100.given(wanted(A), wanted(B), wanted(C)).when(decrease(-2)).then(
        released(2, 1, B, C),
        cancelled(B, CancelReason.TARGET_DECREASED),
        cancelled(C, CancelReason.TARGET_DECREASED),
    )


def test_a_decrease_releases_what_it_can_and_is_a_success() -> None:
    """F03: a refusal would halt the autoscaler's whole loop; touching a machine would break the contract."""
    h100.given(*running(), wanted(B)).when(decrease(-2)).then(
        released(2, 1, B), cancelled(B, CancelReason.TARGET_DECREASED)
    )


@pytest.mark.parametrize(
    "state",
    [
        InstanceState.SUBMITTING,
        InstanceState.PROVISIONING,
        InstanceState.RUNNING,
        InstanceState.STOPPED,
        InstanceState.FAILED,
        InstanceState.DELETING,
        InstanceState.GONE,
    ],
)
def test_a_decrease_never_touches_what_may_exist(state: InstanceState) -> None:
    """Nothing can be released: the refusal says how to get rid of machines instead."""
    story = h100.given(*LEADING_TO[state])
    refusal = story.when(decrease(-1)).then_refused(RuleViolation)
    assert "delete them by name" in refusal.message


def test_an_attempt_that_was_refused_leaves_a_wish_that_can_be_released() -> None:
    """The refusal proves that there is no machine."""
    h100.given(wanted(), attempted(), refused()).when(decrease(-1)).then(
        released(1, 0, A), cancelled(A, CancelReason.TARGET_DECREASED)
    )


def test_a_decrease_goes_below_the_minimum_size() -> None:
    """The autoscaler takes back a scale-up that failed; it knows the minimum itself."""
    outcome = both.given(wanted("cpu-aaaaaaaa", "cpu")).when(decrease(-1, group="cpu"))
    assert outcome.after.books.target_size("cpu") == 0


@pytest.mark.parametrize("delta", [0, 1])
def test_a_decrease_that_is_none_makes_no_sense(delta: int) -> None:
    """Zero or more would be another call."""
    h100.given(wanted()).when(decrease(delta)).then_refused(InvalidRequest)


def test_an_unknown_group_cannot_shrink() -> None:
    """Only the call fails."""
    h100.when(decrease(-1, group="gpu")).then_refused(NotFound)


def test_repeated_decreases_never_touch_the_live_machine() -> None:
    """F03, step by step: one provisioning, two unsent; minus two, minus two again, minus one."""
    story = h100.given(wanted(A), attempted(A), created(A), wanted(B), wanted(C))
    story = story.when(decrease(-2)).after
    assert story.books.target_size("h100") == 1
    story.when(decrease(-2)).then_refused(RuleViolation)
    story.when(decrease(-1)).then_refused(RuleViolation)
    assert story.instance(A).state is InstanceState.PROVISIONING
