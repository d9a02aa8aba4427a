from datetime import timedelta

import pytest

from app.domain.envelope import Event
from app.domain.instance.events import CancelReason
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.commands import ApplyConfiguration, DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.domain.nodegroup.events import (
    Rejection,
    ScaleDownRequested,
    ScaleUpRejected,
    ScaleUpRequested,
    TargetSizeDecreased,
)
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.service import ConfigurationLoaded
from app.errors import Conflict, InvalidRequest, NotFound, RuleViolation

from .facts import (
    A_ID,
    CPU,
    CPU_TYPE,
    H100,
    LEADING_TO,
    NEW_DATABASE,
    A,
    B,
    C,
    D,
    attempted,
    cancelled,
    catalogue,
    configured,
    created,
    delete_requested,
    failed,
    gone,
    h100,
    refused,
    retired,
    running,
    unknown,
    wanted,
)

SAME_SHA = "5a"
both = h100.given(catalogue(CPU_TYPE), configured(CPU))


def increase(delta: int, *names: str, group: str = "h100") -> IncreaseSize:
    """A scale-up under these names."""
    return IncreaseSize(node_group=group, delta=delta, names=names)


def decrease(delta: int, group: str = "h100") -> DecreaseTargetSize:
    """A release of wishes; negative as in the protocol."""
    return DecreaseTargetSize(node_group=group, delta=delta)


def delete(*names: str, group: str = "h100", ended: tuple[str, ...] = ()) -> DeleteNodes:
    """A scale-down of these instances."""
    return DeleteNodes(node_group=group, instances=names, ended=frozenset(ended))


def configuration(*specs: NodeGroupSpec, sha256: str = SAME_SHA, cluster_name: str = "c1") -> ApplyConfiguration:
    """A configuration with these groups."""
    return ApplyConfiguration(specs=specs, sha256=sha256, cluster_name=cluster_name)


def scale_down(count: int, new_target: int, *names: str) -> ScaleDownRequested:
    """The fact that these are given back."""
    return ScaleDownRequested(node_group="h100", count=count, new_target=new_target, instances=names)


def released(delta: int, new_target: int, *names: str) -> TargetSizeDecreased:
    """The fact that wishes are dropped."""
    return TargetSizeDecreased(node_group="h100", delta=delta, new_target=new_target, instances=names)


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


# --- DeleteNodes


def test_a_deletion_lowers_the_target_at_once() -> None:
    """In the same instant: target minus one, deleting, no longer live."""
    after = h100.given(*running(), wanted(B)).when(delete(A)).then(scale_down(1, 1, A), delete_requested(A))
    assert after.books.target_size("h100") == 1
    assert after.instance(A).state is InstanceState.DELETING
    assert [instance.name for instance in after.books.members("h100").listed] == [A, B]


@pytest.mark.parametrize(
    ("state", "fact"),
    [
        (InstanceState.REQUESTED, cancelled()),
        (InstanceState.SUBMITTING, delete_requested()),
        (InstanceState.PROVISIONING, delete_requested()),
        (InstanceState.RUNNING, delete_requested()),
        (InstanceState.STOPPED, delete_requested()),
        (InstanceState.FAILED, cancelled()),
    ],
)
def test_what_never_had_a_machine_is_cancelled_and_all_else_is_deleted(state: InstanceState, fact: Event) -> None:
    """No terminate call for a machine that does not exist; none forgotten for one that may."""
    h100.given(*LEADING_TO[state]).when(delete(A)).then(scale_down(1, 0, A), fact)


def test_a_failed_instance_that_may_still_have_a_machine_is_deleted_not_cancelled() -> None:
    """Given up while nobody knew: the machine has to be looked for before the name is let go."""
    h100.given(wanted(), attempted(), unknown(), failed()).when(delete(A)).then(
        scale_down(1, 0, A), delete_requested(A)
    )


@pytest.mark.parametrize(
    "state", [InstanceState.DELETING, InstanceState.GONE, InstanceState.LOST, InstanceState.CANCELLED]
)
def test_deleting_again_changes_nothing(state: InstanceState) -> None:
    """F06: each repetition once lowered the size until healthy machines died."""
    h100.given(*LEADING_TO[state]).when(delete(A)).then_nothing()


def test_an_instance_that_only_the_store_remembers_is_fine_too() -> None:
    """A tombstone is kept for ever, but not in memory."""
    h100.when(delete(A, ended=(A,))).then_nothing()


def test_the_same_instance_twice_in_one_call_counts_once() -> None:
    """Two nodes may spell one provider id differently."""
    h100.given(*running()).when(delete(A, A)).then(scale_down(1, 0, A), delete_requested(A))


def test_no_nodes_is_no_change() -> None:
    """An empty list is not an error."""
    h100.when(delete()).then_nothing()


def test_the_minimum_size_does_not_protect_from_deletion() -> None:
    """F05: errored nodes must go at any size; the autoscaler guards the minimum itself."""
    spec = H100.model_copy(update={"min_size": 2})
    story = h100.given(configured(spec), *running(A), wanted(B), attempted(B), refused(B), failed(B))
    story.when(delete(B)).then(scale_down(1, 1, B), cancelled(B))
    story.when(delete(A)).then(scale_down(1, 1, A), delete_requested(A))


def test_one_unknown_instance_keeps_all_from_being_deleted() -> None:
    """Validate all, then act."""
    refusal = h100.given(*running()).when(delete(A, "h100-zzzzzzzz")).then_refused(InvalidRequest)
    assert "h100-zzzzzzzz" in refusal.message


def test_one_instance_of_another_group_keeps_all_from_being_deleted() -> None:
    """The autoscaler counts per group; a deletion booked to the wrong one would break both."""
    story = both.given(*running(), wanted("cpu-aaaaaaaa", "cpu"))
    refusal = story.when(delete(A, "cpu-aaaaaaaa")).then_refused(InvalidRequest)
    assert refusal.message == "cpu-aaaaaaaa belongs to node group cpu, not to h100"


def test_an_ended_instance_of_another_group_is_still_the_wrong_group() -> None:
    """Idempotence is for the right question only."""
    story = both.given(wanted("cpu-aaaaaaaa", "cpu"), decrease(-1, group="cpu"))
    assert story.instance("cpu-aaaaaaaa").state is InstanceState.CANCELLED
    story.when(delete("cpu-aaaaaaaa")).then_refused(InvalidRequest)


def test_an_unknown_group_has_no_nodes_to_delete() -> None:
    """Only the call fails."""
    h100.given(*running()).when(delete(A, group="gpu")).then_refused(NotFound)


def test_deletions_interleaved_with_increases_keep_their_own_names() -> None:
    """F50: n1 goes, two new ones come; the name of n1 never comes back."""
    story = h100.given(*running(), increase(1, B), delete(A), increase(1, C))
    assert story.instance(A).state is InstanceState.DELETING
    assert story.books.target_size("h100") == 2
    story.when(increase(1, A)).then_refused(Conflict)


# --- ApplyConfiguration


def test_the_same_configuration_again_changes_nothing() -> None:
    """Every start applies it."""
    h100.when(configuration(H100)).then_nothing()


def test_a_new_group_is_configured() -> None:
    """And the configuration that brought it is in the log by its checksum."""
    h100.when(configuration(H100, CPU, sha256="5b")).then(
        ConfigurationLoaded(sha256="5b", cluster_name="c1", node_groups=2), configured(CPU)
    )


def test_a_new_cluster_name_is_a_new_configuration() -> None:
    """It is in every mark from then on."""
    h100.when(configuration(H100, cluster_name="c2")).then(
        ConfigurationLoaded(sha256=SAME_SHA, cluster_name="c2", node_groups=1)
    )


def test_a_changed_group_is_configured_again_and_keeps_its_place() -> None:
    """The order in which groups are listed never changes."""
    changed = H100.model_copy(update={"max_size": 9})
    outcome = both.when(configuration(CPU, changed))
    assert outcome.events == (configured(changed),)
    assert [group.name for group in outcome.after.books.served_groups] == ["h100", "cpu"]
    assert outcome.after.books.groups["h100"].ordinal == h100.books.groups["h100"].ordinal


def test_a_group_that_left_is_retired_and_its_unsent_wishes_are_dropped() -> None:
    """F12: machines stay and are served; nothing new is bought for a group that nobody wants."""
    story = h100.given(*running(), wanted(B), attempted(B), wanted(C))
    after = story.when(configuration()).then(retired(instances=2), cancelled(C, CancelReason.GROUP_RETIRED))
    assert [group.name for group in after.books.served_groups] == ["h100"]
    assert after.books.size_limits(after.books.groups["h100"]) == (0, 2)
    after.when(configuration()).then_nothing()


def test_a_retired_group_can_be_drained_and_is_gone_with_its_last_instance() -> None:
    """F12: dropping it at once would make its machines unmanaged, and nobody would ever remove them."""
    story = h100.given(*running(), configuration())
    assert story.books.size_limits(story.books.groups["h100"]) == (0, 1)
    story = story.when(delete(A)).then(scale_down(1, 0, A), delete_requested(A))
    assert [group.name for group in story.books.served_groups] == ["h100"]
    assert story.books.size_limits(story.books.groups["h100"]) == (0, 0)
    assert story.given(gone(A)).books.served_groups == ()


def test_a_group_without_instances_disappears_at_once() -> None:
    """There is nothing to drain."""
    assert h100.given(configuration()).books.served_groups == ()


def test_a_retired_group_that_returns_may_grow_again() -> None:
    """Its machines are members as before, under its old place in the order."""
    story = both.given(*running(), configuration(CPU))
    after = story.when(configuration(H100, CPU)).then(configured(H100))
    assert not after.books.groups["h100"].retired
    assert after.books.size_limits(after.books.groups["h100"]) == (0, 4)
    assert [group.name for group in after.books.served_groups] == ["h100", "cpu"]
    assert after.when(increase(1, B)).refusal is None


def test_a_wish_that_was_being_ordered_when_its_group_retired_is_kept() -> None:
    """Its machine may exist already."""
    after = h100.given(wanted(), attempted(), timedelta(seconds=1)).when(configuration()).then(retired(instances=1))
    assert after.instance(A).state is InstanceState.SUBMITTING
    assert after.given(created(A, A_ID)).instance(A).state is InstanceState.PROVISIONING
