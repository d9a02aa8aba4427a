"""The ladder of a group: contract times location, and what one wish's refusal means for the others."""

from dataclasses import replace
from datetime import timedelta

from app.domain.instance.events import CreateFailed, ErrorClass, FailureCode
from app.domain.instance.ladder import likely_rung
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, Offering

from .facts import A, B, attempted, configured, created, failed, h100, machine, refused, rested, wanted
from .listings import listing
from .orders import ATTEMPT, ONE_PLACE, PREFER_SPOT, no_capacity, not_sent, rejected, submitting, throttled
from .scenario import NOON, Scenario

SPOT, ON_DEMAND = Contract.SPOT, Contract.ON_DEMAND
MINUTE = timedelta(minutes=1)
ATTEMPT_B = replace(ATTEMPT, instance=B)
SPOT_PRICE = "0.8015"


def serving(spec: NodeGroupSpec) -> Scenario:
    """A provider that serves this group."""
    return h100.given(configured(spec))


def out_of_spot() -> Scenario:
    """A was refused spot at both places and is ordered on demand at FIN-01, at noon."""
    return serving(PREFER_SPOT).given(wanted(), ATTEMPT, no_capacity(1), ATTEMPT, no_capacity(2), ATTEMPT)


def offering(location: str, contract: Contract = ON_DEMAND) -> Offering:
    """One of the group's rungs."""
    return Offering(instance_type="1H100.80S.32V", location=location, contract=contract)


def test_a_stock_out_rests_for_the_group_s_cool_down() -> None:
    """Ten minutes unless the group says otherwise, and written down, so that it survives a restart."""
    submitting.when(no_capacity()).then(refused(), rested(until=NOON + 10 * MINUTE))
    patient = serving(ONE_PLACE.model_copy(update={"ladder_cooldown": timedelta(hours=1)})).given(wanted(), ATTEMPT)
    patient.when(no_capacity()).then(refused(), rested(until=NOON + 60 * MINUTE), failed())


def test_a_quota_rests_and_what_is_no_want_of_the_offering_does_not() -> None:
    """Money, image, rate limit and network say nothing about one place or contract."""
    events = submitting.when(rejected(403, "forbidden_action", "GPU quota exceeded")).events
    assert [event.type for event in events] == ["instance.create-refused", "nodegroup.offering-rested"]
    for refusal in (
        rejected(402, "insufficient_funds", "no money"),
        rejected(400, "invalid_request", "bad image"),
        rejected(400, "invalid_request", "bad location"),
        throttled(),
        not_sent(),
    ):
        assert "nodegroup.offering-rested" not in {event.type for event in submitting.when(refusal).events}


def test_a_later_wish_passes_over_what_rests() -> None:
    """Spot is out at both places: the next wish goes to on demand at once, and to spot again after the cool-down."""
    story = out_of_spot().given(MINUTE, wanted(B))
    story.when(ATTEMPT_B).then(attempted(B))
    story.given(9 * MINUTE).when(ATTEMPT_B).then(attempted(B, contract=SPOT, price=SPOT_PRICE))


def test_a_wish_made_before_a_refusal_is_not_ordered_there_again() -> None:
    """A hundred wishes of one scale-up learn from the first: no second call asks for what is known to be out."""
    story = serving(ONE_PLACE).given(wanted(), wanted(B), ATTEMPT, no_capacity())
    assert story.instance(A).state is InstanceState.FAILED
    story.when(ATTEMPT_B).then(failed(B))


def test_what_rests_is_asked_again_before_a_wish_fails_for_it() -> None:
    """The group is out everywhere. A later wish asks the whole ladder once more: stock may be back."""
    story = serving(PREFER_SPOT).given(wanted())
    for attempt in (1, 2, 3, 4):
        story = story.given(ATTEMPT, no_capacity(attempt))
    assert story.instance(A).state is InstanceState.FAILED
    asked: list[tuple[str | None, Contract | None]] = []
    story = story.given(MINUTE, wanted(B))
    for attempt in (1, 2, 3, 4):
        story = story.given(ATTEMPT_B)
        asked.append((story.instance(B).location, story.instance(B).contract))
        story = story.given(replace(no_capacity(attempt), instance=B))
    assert asked == [("FIN-01", SPOT), ("FIN-03", SPOT), ("FIN-01", ON_DEMAND), ("FIN-03", ON_DEMAND)]
    wish = story.instance(B)
    assert (wish.state, wish.error_class, wish.error_code) == ("failed", ErrorClass.OUT_OF_RESOURCES, "out-of-stock")


def test_the_last_open_rung_refused_leads_back_to_those_that_rested_before() -> None:
    """B passed spot over; on demand is out too now, so spot is asked after all before the wish fails."""
    story = out_of_spot().given(MINUTE, wanted(B), ATTEMPT_B)
    for attempt in (1, 2):
        command = replace(no_capacity(attempt), instance=B)
        story = story.given(command, ATTEMPT_B)
    assert (story.instance(B).attempt, story.instance(B).contract, story.instance(B).location) == (3, SPOT, "FIN-01")


def test_a_wish_that_fails_for_the_refusals_of_others_says_their_reason() -> None:
    """Quota, in the API's words: the autoscaler shows it for each of the nodes."""
    story = serving(ONE_PLACE).given(wanted(), wanted(B), ATTEMPT, rejected(403, "forbidden_action", "GPU quota"))
    story.when(ATTEMPT_B).then(
        CreateFailed(
            instance=B,
            node_group="h100",
            error_class=ErrorClass.OUT_OF_RESOURCES,
            code=FailureCode.QUOTA_EXCEEDED,
            message="GPU quota; ask Verda for a higher quota or use other locations",
        )
    )


def test_a_rest_of_a_clock_that_was_ahead_is_over() -> None:
    """Ten minutes is the longest by this group's settings; a dearer offering must not be bought for hours on end."""
    story = out_of_spot().given(wanted(B))
    story.when(ATTEMPT_B).then(attempted(B))
    story = story.given(timedelta(hours=-3))
    assert likely_rung(story.books.groups["h100"], story.now).contract is SPOT
    story.when(ATTEMPT_B).then(attempted(B, contract=SPOT, price=SPOT_PRICE))


def test_refusals_that_came_at_once_are_one_rest() -> None:
    """Eight orders were under way: the second refusal of wishes that are older than the first adds nothing."""
    story = serving(ONE_PLACE).given(wanted(), wanted(B), ATTEMPT, ATTEMPT_B, no_capacity())
    command = replace(no_capacity(), instance=B)
    story.when(command).then(refused(B), failed(B))


def test_without_a_cool_down_every_wish_asks_for_itself() -> None:
    """`ladder_cooldown: 0s`."""
    story = serving(ONE_PLACE.model_copy(update={"ladder_cooldown": timedelta(0)})).given(wanted(), wanted(B), ATTEMPT)
    story.when(no_capacity()).then(refused(), failed()).when(ATTEMPT_B).then(attempted(B))


def test_new_settings_of_a_group_end_its_rests() -> None:
    """The operator may have changed what was refused."""
    story = out_of_spot().given(configured(PREFER_SPOT.model_copy(update={"max_size": 5})), wanted(B))
    story.when(ATTEMPT_B).then(attempted(B, contract=SPOT, price=SPOT_PRICE))


def test_prices_and_templates_expect_what_the_ladder_would_order_now() -> None:
    """While spot rests the next machine is an on-demand one; F31: the order is the operator's, not the price's."""
    group = out_of_spot().books.groups["h100"]
    assert likely_rung(group, NOON) == offering("FIN-01")
    assert likely_rung(group, NOON + 10 * MINUTE) == offering("FIN-01", SPOT)
    assert likely_rung(serving(PREFER_SPOT).books.groups["h100"], NOON) == offering("FIN-01", SPOT)


def test_an_offering_taken_and_never_placed_rests_too() -> None:
    """The order was accepted, and the machine's status became no_capacity; another wish of the time goes on."""
    story = h100.given(wanted(), wanted(B), attempted(), created())
    words = "Verda accepted the order and then reported the machine as no_capacity; add locations or another group"
    after = story.given(listing(machine(status="no_capacity")))
    assert rested(message=words) in story.when(listing(machine(status="no_capacity"))).events
    after.when(ATTEMPT_B).then(attempted(B, location="FIN-03"))
