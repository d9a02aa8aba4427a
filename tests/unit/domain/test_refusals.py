from datetime import timedelta

import pytest

from app.domain.envelope import Event
from app.domain.instance.commands import (
    RecordCreateRefused,
)
from app.domain.instance.events import CancelReason, CreateFailed, CreateRefused, ErrorClass, FailureCode
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.verdict import judge, pause

from .facts import (
    A,
    attempted,
    cancelled,
    configured,
    created,
    delete_requested,
    failed,
    h100,
    refused,
    rested,
    unknown,
    wanted,
)
from .orders import (
    ATTEMPT,
    OUT_OF_STOCK,
    SECOND,
    THREE_PLACES,
    no_capacity,
    nobody_knows,
    not_sent,
    rejected,
    submitting,
    throttled,
)
from .scenario import NOON, Scenario


def test_a_stock_out_closes_the_rung_and_the_next_is_tried_at_once() -> None:
    """F19: a stock-out is known at once; there is nothing to wait for at another place."""
    after = submitting.when(no_capacity()).then(refused(), rested())
    assert after.instance(A).state is InstanceState.REQUESTED
    after.when(ATTEMPT).then(attempted(attempt=2, location="FIN-03"))


def test_the_last_rung_refused_is_a_failure() -> None:
    """F19: creating, out of resources, a stable code: the autoscaler turns to another group in its next loop."""
    story = submitting.given(no_capacity(), ATTEMPT)
    after = story.when(no_capacity(2)).then(refused(attempt=2), rested("FIN-03"), OUT_OF_STOCK)
    assert after.instance(A).state is InstanceState.FAILED
    assert after.books.target_size("h100") == 1


def test_quota_at_one_place_leaves_the_other() -> None:
    """F21: a refusal of the configuration kind closes the rung; FIN-03 is used."""
    story = submitting.given(rejected(403, "forbidden_action", "GPU quota exceeded"))
    assert story.instance(A).error_code is FailureCode.QUOTA_EXCEEDED
    story.when(ATTEMPT).then(attempted(attempt=2, location="FIN-03"))


@pytest.mark.parametrize(
    ("refusal", "error_class", "code", "message"),
    [
        (
            rejected(400, "invalid_request", "Operating system is not valid for this instance type"),
            ErrorClass.OTHER,
            FailureCode.IMAGE_NOT_SUPPORTED,
            "Operating system is not valid for this instance type; choose an image that the instance type supports",
        ),
        (
            rejected(402, "insufficient_funds", "Not enough balance"),
            ErrorClass.OUT_OF_RESOURCES,
            FailureCode.INSUFFICIENT_FUNDS,
            "Not enough balance; top up the Verda balance",
        ),
        (
            rejected(403, "insufficient_scope", "Insufficient scope"),
            ErrorClass.OTHER,
            FailureCode.FORBIDDEN,
            "Insufficient scope; give the API credentials the scope cloud-api-v1",
        ),
        (
            rejected(401, "unauthorized_request", "Invalid token"),
            ErrorClass.OTHER,
            FailureCode.FORBIDDEN,
            "Invalid token; check the API credentials",
        ),
    ],
    ids=["image", "money", "scope", "credentials"],
)
def test_what_no_other_place_can_mend_fails_at_the_first(
    refusal: RecordCreateRefused, error_class: ErrorClass, code: FailureCode, message: str
) -> None:
    """F20, F22, F67: no other sites are tried, the code says what it is and the message what to do."""
    outcome = submitting.when(refusal)
    first, *_, last = outcome.events
    assert first == CreateRefused(
        instance=A,
        node_group="h100",
        attempt=1,
        error_class=error_class,
        code=code,
        message=message,
        rung_closed=True,
        retry_at=None,
    )
    assert last == CreateFailed(instance=A, node_group="h100", error_class=error_class, code=code, message=message)
    (beyond,) = [event.type for event in outcome.events[1:-1]]
    assert beyond == ("nodegroup.closed" if code is FailureCode.IMAGE_NOT_SUPPORTED else "cloud.account-refused")


@pytest.mark.parametrize(
    ("refusal", "error_class", "code", "closes", "is_final"),
    [
        (not_sent(), 99, "cloud-unreachable", "open", "more"),
        (throttled(), 99, "rate-limited", "open", "more"),
        (no_capacity(), 1, "out-of-stock", "closed", "more"),
        (rejected(402, "payment", "x"), 1, "insufficient-funds", "closed", "final"),
        (rejected(None, "insufficient_funds", "x"), 1, "insufficient-funds", "closed", "final"),
        (rejected(403, "forbidden_action", "quota"), 1, "quota-exceeded", "closed", "more"),
        (rejected(None, "forbidden_action", "quota"), 1, "quota-exceeded", "closed", "more"),
        (rejected(403, "", "Insufficient Scope"), 99, "forbidden", "closed", "final"),
        (rejected(403, "insufficient_scope", ""), 99, "forbidden", "closed", "final"),
        (rejected(401, "unauthorized_request", "x"), 99, "forbidden", "closed", "final"),
        (rejected(400, "invalid_request", "Image not found"), 99, "image-not-supported", "closed", "final"),
        (rejected(400, "invalid_request", "bad location"), 99, "invalid-request", "closed", "more"),
        (rejected(404, "not_found", "no such type"), 99, "invalid-request", "closed", "more"),
    ],
)
def test_every_refusal_has_one_meaning(
    refusal: RecordCreateRefused, error_class: int, code: str, closes: str, is_final: str
) -> None:
    """By kind, then HTTP status, then the API's code; its message is the last resort."""
    verdict = judge(refusal)
    assert (int(verdict.error_class), verdict.code) == (error_class, code)
    assert (verdict.rung_closed, verdict.final) == (closes == "closed", is_final == "final")


def test_long_words_of_the_api_leave_room_for_the_remedy() -> None:
    """The autoscaler cuts messages at 500 characters; what to do must still be seen."""
    event = submitting.when(rejected(402, "insufficient_funds", "x" * 5000)).events[0]
    assert isinstance(event, CreateRefused)
    assert event.message == "x" * 400 + "; top up the Verda balance"


@pytest.mark.parametrize(("refusal", "code"), [(throttled(), "rate-limited"), (not_sent(), "cloud-unreachable")])
def test_a_passing_refusal_keeps_the_rung_and_waits(refusal: RecordCreateRefused, code: str) -> None:
    """Nothing is known against the offering; CA is told nothing yet."""
    after = submitting.given(refusal)
    assert after.instance(A).state is InstanceState.REQUESTED
    assert after.instance(A).error_code == code
    assert after.instance(A).retry_at == NOON + 2 * SECOND
    after.given(2 * SECOND).when(ATTEMPT).then(attempted(attempt=2))


def test_the_api_s_own_wish_for_a_pause_is_honoured() -> None:
    """F24: Retry-After: 17."""
    assert submitting.given(throttled(17 * SECOND)).instance(A).retry_at == NOON + 17 * SECOND


@pytest.mark.parametrize(
    ("attempt", "seconds"), [(0, 2), (1, 2), (2, 4), (3, 8), (4, 16), (5, 32), (6, 60), (7, 60), (10**9, 60)]
)
def test_pauses_double_from_two_seconds_to_a_minute(attempt: int, seconds: int) -> None:
    """Long enough not to flood, short enough to be ordered before the autoscaler gives up."""
    assert pause(attempt) == seconds * SECOND
    assert pause(attempt, SECOND) == seconds * SECOND
    assert pause(attempt, 90 * SECOND) == 90 * SECOND


def test_a_pause_of_a_clock_that_was_ahead_is_over() -> None:
    """Ten minutes is the longest that any pause before an order lasts: one that ends later began by another clock."""
    story = submitting.given(throttled(timedelta(hours=1)))
    assert story.instance(A).retry_at == NOON + timedelta(minutes=10)
    story.when(ATTEMPT).then_nothing()
    story.given(timedelta(hours=-3)).when(ATTEMPT).then(attempted(attempt=2))


def _fail_at_three_places(*refusals: RecordCreateRefused) -> Scenario:
    story = h100.given(configured(THREE_PLACES), wanted())
    for refusal in refusals:
        story = story.given(ATTEMPT, refusal)
    return story


INVALID_TWICE_AND_STOCK_OUT = (
    (no_capacity(1), rejected(attempt=2), rejected(attempt=3)),
    (rejected(attempt=1), no_capacity(2), rejected(attempt=3)),
    (rejected(attempt=1), rejected(attempt=2), no_capacity(3)),
)


@pytest.mark.parametrize("refusals", INVALID_TWICE_AND_STOCK_OUT, ids=["first", "middle", "last"])
def test_out_of_resources_if_any_rung_said_so(refusals: tuple[RecordCreateRefused, ...]) -> None:
    """Then another group may still help, whichever rung it was and whatever was refused after it."""
    wish = _fail_at_three_places(*refusals).instance(A)
    assert wish.state is InstanceState.FAILED
    assert (wish.error_class, wish.error_code) == (ErrorClass.OUT_OF_RESOURCES, FailureCode.OUT_OF_STOCK)
    assert wish.error_message == "No capacity available; add locations or another group"


def test_a_failure_for_reasons_of_ours_alone_is_class_other() -> None:
    """Nothing was said about stock."""
    wish = _fail_at_three_places(rejected(attempt=1), rejected(attempt=2), rejected(attempt=3)).instance(A)
    assert (wish.error_class, wish.error_code) == (ErrorClass.OTHER, FailureCode.INVALID_REQUEST)


def test_a_refused_order_of_a_wish_being_deleted_ends_it() -> None:
    """There is no machine and none will come."""
    after = (
        submitting.given(delete_requested())
        .when(no_capacity())
        .then(refused(), rested(), cancelled(A, CancelReason.NEVER_CREATED))
    )
    assert after.books.members("h100").is_empty


def test_a_refused_order_of_a_failed_wish_leaves_it_failed() -> None:
    """The answer came late; now nothing may exist any more, so a deletion can cancel it."""
    after = submitting.given(unknown(), failed()).when(no_capacity()).then(refused(), rested())
    assert after.instance(A).state is InstanceState.FAILED
    assert not after.instance(A).may_exist


@pytest.mark.parametrize(
    "past",
    [
        (wanted(),),
        (wanted(), attempted(), created()),
        (wanted(), attempted(), refused(), attempted(attempt=2, location="FIN-03")),
        (),
    ],
    ids=["none is open", "it succeeded", "another one is open", "nobody"],
)
def test_the_outcome_of_an_attempt_that_is_not_open_is_no_news(past: tuple[Event, ...]) -> None:
    """A late answer to the first call must not end the second."""
    story = h100.given(*past)
    story.when(no_capacity()).then_nothing()
    story.when(nobody_knows()).then_nothing()
