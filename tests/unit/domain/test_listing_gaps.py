from datetime import timedelta

import pytest

from app.domain import observation
from app.domain.envelope import Event
from app.domain.instance.events import CancelReason
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.commands import IncreaseSize
from app.domain.observation import Readopt

from .facts import (
    A_ID,
    B_ID,
    H100,
    LEADING_TO,
    A,
    B,
    adopted,
    attempted,
    cancelled,
    configured,
    delete_requested,
    failed,
    gone,
    h100,
    learned,
    lost,
    machine,
    running,
    surplus,
    unknown,
    wanted,
)
from .listings import LAG, SECOND, THEIRS, listing, seen, watched
from .scenario import NOON

# --- what is missing


def test_a_machine_missing_from_one_listing_is_named_and_nothing_more() -> None:
    """F25: absence is not evidence; the job looks closer."""
    story = watched()
    story.when(listing()).then_nothing()
    assert observation.absent(story.books, (), NOON, LAG) == (story.instance(A),)
    assert observation.absent(story.books, (machine(),), NOON, LAG) == ()


@pytest.mark.parametrize("status", ["discontinued", "notfound"])
def test_a_machine_listed_as_no_more_counts_as_missing(status: str) -> None:
    """F27: the list itself says that it was evicted; the look-up has the last word."""
    story = watched()
    assert observation.absent(story.books, (machine(status=status),), NOON, LAG) == (story.instance(A),)


def test_a_newborn_is_not_missed_before_lists_may_be_expected_to_show_it() -> None:
    """F48: the list lags by a minute or so."""
    story = h100.given(*LEADING_TO[InstanceState.PROVISIONING])
    assert observation.absent(story.books, (), NOON + 89 * SECOND, LAG) == ()
    assert observation.absent(story.books, (), NOON + 90 * SECOND, LAG) == (story.instance(A),)


def test_a_forgotten_wish_that_came_true_answers_to_its_machine_s_provider_id() -> None:
    """Its node registers under the machine's id, which the books had never known."""
    spec = H100.model_copy(update={"provider_id_template": "verda://{instance_id}"})
    story = h100.given(configured(spec), IncreaseSize(node_group="h100", delta=1, names=(A,)))
    story = story.given(cancelled(reason=CancelReason.BOOKS_REVERTED))
    assert story.instance(A).provider_id == f"verda://pending/{A}"
    back = story.given(Readopt(instance=A, machine=machine()))
    assert back.instance(A).provider_id == f"verda://{A_ID}"


@pytest.mark.parametrize(
    "state",
    [
        InstanceState.REQUESTED,
        InstanceState.SUBMITTING,
        InstanceState.FAILED,
        InstanceState.GONE,
        InstanceState.LOST,
        InstanceState.CANCELLED,
    ],
)
def test_what_has_no_machine_or_has_ended_is_not_missed(state: InstanceState) -> None:
    """A failed one stays listed until it is collected, whatever its machine does."""
    story = h100.given(*LEADING_TO[state])
    assert observation.absent(story.books, (), NOON + timedelta(hours=1), LAG) == ()


def test_a_deleting_machine_is_missed_at_once_after_it_was_listed() -> None:
    """Its absence is what we are waiting for."""
    story = watched().given(delete_requested())
    assert observation.absent(story.books, (), NOON, LAG) == (story.instance(A),)


# --- what is there too often


@pytest.mark.parametrize(
    "past", [(*LEADING_TO[InstanceState.CANCELLED],), (*LEADING_TO[InstanceState.GONE],)], ids=["cancelled", "gone"]
)
def test_a_machine_of_a_name_that_was_let_go_is_one_too_many(past: tuple[Event, ...]) -> None:
    """A released slot produced a machine after all, or a deleted one is back: named, and only looked at closer."""
    story = h100.given(*past)
    story.when(listing(machine())).then_nothing()
    assert observation.surplus(story.books, (machine(),)) == ((story.instance(A), machine()),)


def test_an_instance_s_own_machine_is_not_one_too_many() -> None:
    """Nor one whose own is still being looked for."""
    assert observation.surplus(watched().books, (machine(),)) == ()
    story = h100.given(wanted(), attempted(), unknown())
    assert observation.surplus(story.books, (machine(),)) == ()


def test_a_machine_without_our_mark_is_never_one_too_many() -> None:
    """A human's machine with a copied host name is not deleted."""
    assert observation.surplus(watched().books, (machine(B_ID, description=""),)) == ()
    assert observation.surplus(watched().books, (machine(B_ID, description=THEIRS),)) == ()


def test_what_is_known_to_be_too_many_is_not_named_again() -> None:
    """Its deletion is under way."""
    story = watched().given(surplus(B_ID, A, "duplicate"))
    assert observation.surplus(story.books, (machine(B_ID),)) == ()


# --- what came back


def test_a_machine_believed_lost_and_listed_again_is_named() -> None:
    """A stale list, or a human who restored it; dead records are not a return."""
    story = h100.given(*LEADING_TO[InstanceState.LOST])
    story.when(listing(machine())).then_nothing()
    assert observation.returned(story.books, (machine(),)) == ((story.instance(A), machine()),)
    assert observation.returned(story.books, (machine(status="discontinued"),)) == ()
    assert observation.returned(story.books, (machine(status="no_capacity"),)) == ()
    assert observation.returned(story.books, (machine(B_ID),)) == ()
    assert observation.returned(watched().books, (machine(),)) == ()


def test_a_returned_machine_is_taken_back_under_the_id_that_kubernetes_knows() -> None:
    """It runs, costs money and may carry pods; with another provider id its node would look unregistered."""
    story = h100.given(*running(), learned("verda:///h100-aaaaaaaa"), lost())
    after = story.when(Readopt(instance=A, machine=machine())).then(
        adopted(provider_id="verda:///h100-aaaaaaaa"), seen(InstanceState.RUNNING, "running", "the cloud says running")
    )
    assert after.instance(A).provider_id == "verda:///h100-aaaaaaaa"
    assert after.books.target_size("h100") == 1
    assert after.instance(A).end_reason is None


@pytest.mark.parametrize("status", ["installation_failed", "migrating", "provisioning"])
def test_a_returned_machine_that_has_run_is_not_waited_for_again(status: str) -> None:
    """Nothing would end the wait: the deadline for the first start is over. It is a node that is not ready."""
    story = h100.given(*running(), lost())
    story.when(Readopt(instance=A, machine=machine(status=status))).then(
        adopted(), seen(InstanceState.RUNNING, status, f"the cloud says {status}")
    )


def test_a_returned_machine_that_never_ran_is_waited_for() -> None:
    """As long as any other that is coming."""
    story = h100.given(*LEADING_TO[InstanceState.PROVISIONING], lost())
    story.when(Readopt(instance=A, machine=machine(status="provisioning"))).then(
        adopted(), seen(InstanceState.PROVISIONING, "provisioning", "the cloud says provisioning")
    )


@pytest.mark.parametrize("state", [state for state in InstanceState if state is not InstanceState.LOST])
def test_only_what_was_lost_is_taken_back(state: InstanceState) -> None:
    """What we deleted stays deleted."""
    h100.given(*LEADING_TO[state]).when(Readopt(instance=A, machine=machine())).then_nothing()
    h100.when(Readopt(instance=A, machine=machine())).then_nothing()


def test_the_books_stay_right_through_loss_return_and_deletion() -> None:
    """Each step moves the instance to exactly one place."""
    story = h100.given(*running(), lost(), Readopt(instance=A, machine=machine()), delete_requested())
    assert story.books.target_size("h100") == 0
    assert [instance.name for instance in story.books.members("h100").listed] == [A]
    assert story.given(gone()).books.members("h100").is_empty
    assert story.given(cancelled()).books.members("h100").is_empty


# --- what is in doubt


def test_an_order_in_doubt_is_unseen_until_a_machine_of_its_name_is_listed() -> None:
    """Whoever made that machine: nothing is ruled out while there may be one."""
    story = h100.given(wanted(), attempted(), unknown())
    assert observation.unseen(story.books, (), NOON) == (story.instance(A),)
    assert observation.unseen(story.books, (machine(B_ID, B),), NOON) == (story.instance(A),)
    assert observation.unseen(story.books, (machine(),), NOON) == ()
    assert observation.unseen(story.books, (machine(description=""),), NOON) == ()


@pytest.mark.parametrize("given_up", [failed(), delete_requested()])
def test_a_stranger_of_the_same_name_keeps_nothing_in_doubt_for_ever(given_up: Event) -> None:
    """Once nothing is ordered for it any more only a machine with our mark can be its, and be found by that."""
    story = h100.given(wanted(), attempted(), unknown(), given_up)
    assert observation.unseen(story.books, (machine(description=""),), NOON) == (story.instance(A),)
    assert observation.unseen(story.books, (machine(description=THEIRS),), NOON) == (story.instance(A),)
    assert observation.unseen(story.books, (machine(),), NOON) == ()


def test_a_listing_taken_before_the_doubt_says_nothing_about_it() -> None:
    """It was under way when the order was made."""
    story = h100.given(wanted(), attempted(), SECOND, unknown())
    assert observation.unseen(story.books, (), NOON) == ()
    assert observation.unseen(story.books, (), NOON + SECOND) == (story.instance(A),)


def test_a_dead_record_or_one_that_is_known_to_be_another_s_hides_nothing() -> None:
    """The record that was never placed stays listed under the same name."""
    story = h100.given(wanted(), attempted(), unknown(), surplus(B_ID, A, "never placed"))
    shown = (machine(status="discontinued"), machine(B_ID, status="no_capacity"))
    assert observation.unseen(story.books, shown, NOON) == (story.instance(A),)


@pytest.mark.parametrize("state", InstanceState)
def test_only_doubt_is_unseen(state: InstanceState) -> None:
    """An order under way is waited for; all others have an answer."""
    assert observation.unseen(h100.given(*LEADING_TO[state]).books, (), NOON) == ()
