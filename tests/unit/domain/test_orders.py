from datetime import timedelta

import pytest

from app.domain.instance.events import CancelReason, Found
from app.domain.instance.lifecycle import InstanceState

from .facts import (
    A_ID,
    B_ID,
    H100,
    LEADING_TO,
    A,
    attempted,
    cancelled,
    configured,
    created,
    delete_requested,
    failed,
    h100,
    learned,
    refused,
    retired,
    ruled_out,
    unknown,
    wanted,
)
from .orders import (
    ATTEMPT,
    ONE_PLACE,
    OUT_OF_STOCK,
    PREFER_SPOT,
    SECOND,
    exists,
    no_capacity,
    submitting,
    throttled,
    too_many,
)

# --- the intent


def test_the_intent_says_exactly_what_is_ordered() -> None:
    """A crash right after it leaves everything that is needed to look for the machine."""
    after = h100.given(wanted()).when(ATTEMPT).then(attempted())
    assert after.instance(A).state is InstanceState.SUBMITTING


def test_contracts_are_tried_before_places_and_places_within_each() -> None:
    """Prefer spot means: spot anywhere rather than on demand."""
    story = h100.given(configured(PREFER_SPOT), wanted())
    seen = []
    for number in range(1, 5):
        story = story.given(ATTEMPT)
        order = story.instance(A)
        seen.append((order.contract, order.location, str(order.price_per_hour)))
        story = story.given(no_capacity(number))
    assert seen == [
        ("spot", "FIN-01", "0.8015"),
        ("spot", "FIN-03", "0.8015"),
        ("on-demand", "FIN-01", "2.29"),
        ("on-demand", "FIN-03", "2.29"),
    ]
    assert story.instance(A).state is InstanceState.FAILED


def test_a_type_without_a_known_price_is_ordered_all_the_same() -> None:
    """The price of the order is unknown then; the machine will tell it."""
    spec = H100.model_copy(update={"instance_type": "2H100.80S.64V"})
    event = h100.given(wanted(), configured(spec)).when(ATTEMPT).events[0]
    assert event == attempted(price=None).model_copy(update={"instance_type": "2H100.80S.64V"})


@pytest.mark.parametrize("state", [state for state in InstanceState if state is not InstanceState.REQUESTED])
def test_only_a_wish_is_ordered(state: InstanceState) -> None:
    """A second order for what may exist would be a second machine; a deleted slot is never re-created."""
    h100.given(*LEADING_TO[state]).when(ATTEMPT).then_nothing()


def test_a_wish_that_is_forgotten_is_not_ordered() -> None:
    """It was dropped between the look and the order."""
    h100.when(ATTEMPT).then_nothing()


def test_no_order_before_the_pause_is_over() -> None:
    """Two seconds after the first failure, not earlier, and exactly then."""
    story = h100.given(wanted(), ATTEMPT, throttled())
    story.given(2 * SECOND - timedelta(microseconds=1)).when(ATTEMPT).then_nothing()
    story.given(2 * SECOND).when(ATTEMPT).then(attempted(attempt=2))


def test_a_wish_of_a_retired_group_is_dropped_instead_of_ordered() -> None:
    """Ruled out after its group left the configuration: nobody wants it any more."""
    story = h100.given(wanted(), attempted(), unknown(), retired(instances=1), ruled_out())
    story.when(ATTEMPT).then(cancelled(A, CancelReason.GROUP_RETIRED))


def test_a_wish_without_a_rung_left_fails_with_what_closed_the_last_one() -> None:
    """The configuration lost the other place meanwhile."""
    h100.given(wanted(), attempted(), refused(), configured(ONE_PLACE)).when(ATTEMPT).then(OUT_OF_STOCK)


# --- a machine exists


def test_an_answered_order_is_provisioning() -> None:
    """The machine bills from here on."""
    after = submitting.when(exists()).then(created())
    assert after.instance(A).state is InstanceState.PROVISIONING
    assert after.books.find_by_key(A_ID) == after.instance(A)


def test_hearing_of_the_same_machine_again_is_no_news() -> None:
    """The list saw it before the call was answered."""
    submitting.given(exists(found=Found.LOOKED_UP)).when(exists()).then_nothing()


def test_an_id_in_the_provider_id_is_filled_in_once_known() -> None:
    """The provisional spelling gives way to the real one."""
    spec = H100.model_copy(update={"provider_id_template": "datacrunch://{instance_id}"})
    after = submitting.given(configured(spec), exists())
    assert after.instance(A).provider_id == f"datacrunch://{A_ID}"


def test_a_place_in_the_provider_id_is_the_one_ordered_in() -> None:
    """The official fork spells location and host name."""
    spec = H100.model_copy(update={"provider_id_template": "verdacloud://{location}/{hostname}"})
    after = h100.given(configured(spec), wanted(), attempted(location="FIN-03"), exists())
    assert after.instance(A).provider_id == "verdacloud://FIN-03/h100-aaaaaaaa"


def test_a_provider_id_learned_from_kubernetes_is_kept() -> None:
    """The node joined before the order was answered; the autoscaler compares byte for byte."""
    after = submitting.given(learned("verda:///h100-aaaaaaaa"), exists())
    assert after.instance(A).provider_id == "verda:///h100-aaaaaaaa"


@pytest.mark.parametrize("state", [InstanceState.PROVISIONING, InstanceState.RUNNING, InstanceState.DELETING])
def test_a_second_machine_under_one_name_is_one_too_many(state: InstanceState) -> None:
    """The first is kept, the other deleted, and once is enough to say so."""
    after = h100.given(*LEADING_TO[state]).when(exists(B_ID)).then(too_many(B_ID, "duplicate"))
    assert after.instance(A).instance_id == A_ID
    assert after.books.cloud.surplus[B_ID].instance == A
    after.when(exists(B_ID)).then_nothing()


def test_a_machine_for_a_dropped_wish_is_deleted() -> None:
    """A released slot must never produce an instance."""
    h100.given(*LEADING_TO[InstanceState.CANCELLED]).when(exists()).then(too_many(A_ID, "released"))


def test_a_machine_for_a_wish_being_deleted_goes_straight_to_its_deletion() -> None:
    """Deletion wins: it is never listed as live again."""
    after = submitting.given(delete_requested()).when(exists()).then(created())
    assert after.instance(A).state is InstanceState.DELETING
    assert after.instance(A).instance_id == A_ID


def test_a_machine_for_a_failed_wish_does_not_bring_it_back() -> None:
    """The autoscaler was told of the failure and is about to delete it; now there is something to delete."""
    after = (
        submitting.given(unknown(), failed()).when(exists(found=Found.LOOKED_UP)).then(created(found=Found.LOOKED_UP))
    )
    assert after.instance(A).state is InstanceState.FAILED
    assert after.instance(A).may_exist


def test_a_machine_for_nobody_is_not_recorded() -> None:
    """Without an instance there is no stream to record it in; the next listing finds its mark."""
    h100.when(exists()).then_nothing()
