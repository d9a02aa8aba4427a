"""An account that is refused as a whole: no money, or no permission."""

from dataclasses import replace
from datetime import timedelta

from app.domain.account import AccountAccepted, AccountRefused
from app.domain.instance.commands import AttemptCreate, RecordCreated
from app.domain.instance.events import CreateFailed, ErrorClass, FailureCode, Found
from app.domain.instance.verdict import account_pause

from .facts import B_ID, A, B, attempted, created, h100, machine, wanted
from .listings import listing
from .orders import rejected, submitting
from .scenario import NOON

NO_MONEY = rejected(402, "insufficient_funds", "Not enough balance")
WORDS = "Not enough balance; top up the Verda balance"
ATTEMPT_B = AttemptCreate(instance=B)
MINUTE = timedelta(minutes=1)


def no_orders_until(minutes: float) -> AccountRefused:
    """The fact, with its pause counted from noon."""
    return AccountRefused(code=FailureCode.INSUFFICIENT_FUNDS, message=WORDS, until=NOON + timedelta(minutes=minutes))


def failed_for_want_of_money(name: str) -> CreateFailed:
    """What the autoscaler is shown."""
    return CreateFailed(
        instance=name,
        node_group="h100",
        error_class=ErrorClass.OUT_OF_RESOURCES,
        code=FailureCode.INSUFFICIENT_FUNDS,
        message=WORDS,
    )


def test_one_refusal_serves_every_wish_of_its_time() -> None:
    """F20: one state of the account, not one call a node."""
    story = submitting.given(wanted(B), NO_MONEY)
    account = story.books.cloud.account
    assert account is not None
    assert (account.code, account.failures, account.until) == ("insufficient-funds", 1, NOON + timedelta(minutes=1))
    story.when(ATTEMPT_B).then(failed_for_want_of_money(B))


def test_a_later_wish_fails_without_a_call_during_the_pause() -> None:
    """F20: retry storms hide what is wrong."""
    story = submitting.given(NO_MONEY, wanted(B))
    story.when(ATTEMPT_B).then(failed_for_want_of_money(B))


def test_a_pause_of_a_clock_that_was_ahead_is_over() -> None:
    """Half an hour is the longest that the account is left alone: what is to last for longer began by another clock."""
    story = submitting.given(NO_MONEY, wanted(B), timedelta(minutes=-31))
    story.when(ATTEMPT_B).then(attempted(B))


def test_after_the_pause_a_later_wish_tries_and_the_next_pause_is_longer() -> None:
    """F20: probes with a growing pause."""
    story = submitting.given(NO_MONEY, wanted(B), MINUTE)
    tried = story.when(ATTEMPT_B).then(attempted(B))
    again = tried.when(replace(NO_MONEY, instance=B))
    assert again.events[1] == no_orders_until(1 + 2)


def test_the_first_order_that_is_taken_ends_it() -> None:
    """F20: it recovers alone."""
    story = submitting.given(NO_MONEY, wanted(B), MINUTE, ATTEMPT_B)
    after = story.when(RecordCreated(instance=B, instance_id=B_ID, found=Found.ANSWERED)).then(
        created(B, B_ID), AccountAccepted(since=NOON)
    )
    assert after.books.cloud.account is None


def test_an_order_that_was_taken_and_not_answered_ends_it_too() -> None:
    """Its machine is listed. One that had been sent before the refusal says nothing of what came after."""
    refused = submitting.given(NO_MONEY)
    probe = refused.given(wanted(B), MINUTE, ATTEMPT_B)
    theirs = machine(B_ID, B, status="ordered")
    probe.when(listing(theirs)).then(created(B, B_ID, found=Found.LOOKED_UP), AccountAccepted(since=NOON))
    earlier = h100.given(wanted(B), attempted(B), wanted(A), attempted(A), NO_MONEY)
    earlier.when(listing(theirs)).then(created(B, B_ID, found=Found.LOOKED_UP))


def test_pauses_double_up_to_half_an_hour() -> None:
    """From one minute."""
    assert [account_pause(count) // timedelta(minutes=1) for count in range(1, 8)] == [1, 2, 4, 8, 16, 30, 30]
