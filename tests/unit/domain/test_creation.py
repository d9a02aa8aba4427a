from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain.cloud import DuplicateInstanceDetected
from app.domain.envelope import Event
from app.domain.instance.commands import (
    AttemptCreate,
    RecordCreated,
    RecordCreateRefused,
    RecordCreateUnknown,
    Refusal,
    RuleOutCreate,
)
from app.domain.instance.events import CancelReason, CreateFailed, CreateRefused, ErrorClass, FailureCode, Found
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.verdict import judge, pause
from app.domain.offering import Contract

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
from .scenario import NOON, Scenario

ATTEMPT = AttemptCreate(instance=A)
SECOND = timedelta(seconds=1)
PREFER_SPOT = H100.model_copy(update={"contracts": (Contract.SPOT, Contract.ON_DEMAND)})
ONE_PLACE = H100.model_copy(update={"locations": ("FIN-01",)})
THREE_PLACES = H100.model_copy(update={"locations": ("FIN-01", "FIN-02", "FIN-03")})
submitting = h100.given(wanted(), attempted())
OUT_OF_STOCK = failed()


def no_capacity(attempt: int = 1) -> RecordCreateRefused:
    """The API's normal stock-out: HTTP 503 with its own error object."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.NO_CAPACITY,
        status=503,
        code="service_unavailable",
        message="No capacity available",
        retry_after=None,
    )


def rejected(
    status: int | None = 400, code: str = "invalid_request", message: str = "Invalid location", attempt: int = 1
) -> RecordCreateRefused:
    """The API refused in its own words."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.REJECTED,
        status=status,
        code=code,
        message=message,
        retry_after=None,
    )


def throttled(wish: timedelta | None = None, attempt: int = 1) -> RecordCreateRefused:
    """Over the rate limit."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.THROTTLED,
        status=429,
        code="rate_limit_exceeded",
        message="Rate limit",
        retry_after=wish,
    )


def not_sent(attempt: int = 1) -> RecordCreateRefused:
    """The request never left."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.NOT_SENT,
        status=None,
        code="connection_refused",
        message="connection refused",
        retry_after=None,
    )


def exists(instance_id: str = A_ID, found: Found = Found.ANSWERED) -> RecordCreated:
    """There is a machine."""
    return RecordCreated(instance=A, instance_id=instance_id, found=found)


def nobody_knows(attempt: int = 1) -> RecordCreateUnknown:
    """No answer, or none that can be read."""
    return RecordCreateUnknown(instance=A, attempt=attempt, reason="read timed out")


def too_many(instance_id: str, reason: str) -> DuplicateInstanceDetected:
    """The intent to delete a machine that no instance stands for."""
    return DuplicateInstanceDetected(instance_id=instance_id, instance=A, reason=reason)


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


# --- refusals


def test_a_stock_out_closes_the_rung_and_the_next_is_tried_at_once() -> None:
    """F19: a stock-out is known at once; there is nothing to wait for at another place."""
    after = submitting.when(no_capacity()).then(refused())
    assert after.instance(A).state is InstanceState.REQUESTED
    after.when(ATTEMPT).then(attempted(attempt=2, location="FIN-03"))


def test_the_last_rung_refused_is_a_failure() -> None:
    """F19: creating, out of resources, a stable code: the autoscaler turns to another group in its next loop."""
    story = submitting.given(no_capacity(), ATTEMPT)
    after = story.when(no_capacity(2)).then(refused(attempt=2), OUT_OF_STOCK)
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
    submitting.when(refusal).then(
        CreateRefused(
            instance=A,
            node_group="h100",
            attempt=1,
            error_class=error_class,
            code=code,
            message=message,
            rung_closed=True,
            retry_at=None,
        ),
        CreateFailed(instance=A, node_group="h100", error_class=error_class, code=code, message=message),
    )


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
        .then(refused(), cancelled(A, CancelReason.NEVER_CREATED))
    )
    assert after.books.members("h100").is_empty


def test_a_refused_order_of_a_failed_wish_leaves_it_failed() -> None:
    """The answer came late; now nothing may exist any more, so a deletion can cancel it."""
    after = submitting.given(unknown(), failed()).when(no_capacity()).then(refused())
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


# --- nobody knows


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
