import pytest

from app.domain.envelope import Event
from app.domain.instance.lifecycle import InstanceState
from app.errors import Conflict, InvalidRequest, NotFound

from .facts import (
    H100,
    LEADING_TO,
    A,
    B,
    C,
    attempted,
    cancelled,
    configured,
    delete_requested,
    failed,
    h100,
    refused,
    running,
    unknown,
    wanted,
)
from .wishes import both, decrease, delete, increase, scale_down


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


@pytest.mark.parametrize("state", [InstanceState.DELETING, InstanceState.GONE, InstanceState.CANCELLED])
def test_deleting_again_changes_nothing(state: InstanceState) -> None:
    """F06: each repetition once lowered the size until healthy machines died."""
    h100.given(*LEADING_TO[state]).when(delete(A)).then_nothing()


def test_that_the_lost_was_given_back_is_written_down_once() -> None:
    """Should its machine come back, it must not count again; the size has fallen already."""
    after = h100.given(*LEADING_TO[InstanceState.LOST]).when(delete(A)).then(delete_requested(A))
    assert after.instance(A).state is InstanceState.LOST
    assert after.books.target_size("h100") == 0
    after.when(delete(A)).then_nothing()


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
