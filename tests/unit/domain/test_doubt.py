from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain.envelope import Event
from app.domain.instance.commands import (
    RuleOutCreate,
)
from app.domain.instance.events import CancelReason, Found
from app.domain.instance.lifecycle import InstanceState

from .facts import (
    B_ID,
    A,
    attempted,
    cancelled,
    created,
    delete_requested,
    failed,
    h100,
    ruled_out,
    unknown,
    wanted,
)
from .orders import (
    ATTEMPT,
    SECOND,
    exists,
    nobody_knows,
    submitting,
    too_many,
)


def test_an_unknown_outcome_is_never_blindly_retried() -> None:
    """It stays submitting: the next order would be a second machine."""
    after = submitting.when(nobody_knows()).then(unknown())
    assert after.instance(A).state is InstanceState.SUBMITTING
    after.given(timedelta(hours=1)).when(ATTEMPT).then_nothing()


def test_doubt_is_recorded_once() -> None:
    """Every job run would otherwise begin the settle period anew."""
    submitting.given(nobody_knows()).when(nobody_knows()).then_nothing()


def test_the_doubt_about_a_wish_being_deleted_is_recorded_too() -> None:
    """It has to be looked for before its name can be let go."""
    after = submitting.given(delete_requested()).when(nobody_knows()).then(unknown())
    assert after.instance(A).state is InstanceState.DELETING


def test_ruled_out_means_try_again() -> None:
    """Absent for the whole settle period: the call created nothing."""
    after = submitting.given(nobody_knows(), 90 * SECOND).when(RuleOutCreate(instance=A, attempt=1)).then(ruled_out())
    after.when(ATTEMPT).then(attempted(attempt=2))


def test_ruled_out_for_a_wish_being_deleted_ends_it() -> None:
    """There is nothing to delete."""
    story = submitting.given(delete_requested(), nobody_knows())
    story.when(RuleOutCreate(instance=A, attempt=1)).then(ruled_out(), cancelled(A, CancelReason.NEVER_CREATED))


def test_ruled_out_for_a_failed_wish_leaves_it_failed() -> None:
    """The autoscaler still has to collect it; then it is cancelled, not deleted."""
    after = submitting.given(unknown(), failed()).when(RuleOutCreate(instance=A, attempt=1)).then(ruled_out())
    assert after.instance(A).state is InstanceState.FAILED
    assert not after.instance(A).may_exist


@pytest.mark.parametrize(
    "past",
    [
        (wanted(), attempted()),
        (wanted(), attempted(), unknown(), created()),
        (wanted(), attempted(), unknown(), ruled_out()),
        (wanted(), attempted(), unknown(), ruled_out(), attempted(attempt=2), unknown(attempt=2)),
        (),
    ],
    ids=["in flight", "found", "ruled out", "another attempt", "nobody"],
)
def test_only_the_attempt_in_doubt_can_be_ruled_out(past: tuple[Event, ...]) -> None:
    """What was looked for must be what is let go."""
    h100.given(*past).when(RuleOutCreate(instance=A, attempt=1)).then_nothing()


def test_a_machine_that_shows_up_after_being_ruled_out_is_taken() -> None:
    """The list lagged longer than anybody expected; the wish is still there, so it has its machine."""
    after = (
        submitting.given(unknown(), ruled_out())
        .when(exists(found=Found.LOOKED_UP))
        .then(created(found=Found.LOOKED_UP))
    )
    assert after.instance(A).state is InstanceState.PROVISIONING


def test_a_machine_of_the_first_attempt_makes_the_second_s_one_too_many() -> None:
    """The first appears while the second is under way, whose answer then comes in."""
    story = submitting.given(unknown(), ruled_out(), attempted(attempt=2), exists(found=Found.LOOKED_UP))
    story.when(exists(B_ID)).then(too_many(B_ID, "duplicate"))
    assert story.instance(A).price_per_hour == Decimal("2.29")
