from datetime import timedelta
from decimal import Decimal
from typing import get_args

import pytest

from app.domain.envelope import InstanceEvent
from app.domain.instance.events import (
    AnyInstanceEvent,
    ErrorClass,
    FailureCode,
    NodeDoubt,
    NodeDoubted,
    NodeJoined,
    NodeMeasured,
    NodePreparationAttempted,
    NodePrepared,
    NodeRegistered,
    ProviderIdRepairAttempted,
)
from app.domain.instance.lifecycle import InstanceState, Phase, phase_of
from app.domain.offering import Contract, Offering

from .facts import (
    A_ID,
    LEADING_TO,
    A,
    adopted,
    attempted,
    cancelled,
    created,
    delete_attempted,
    delete_refused,
    delete_requested,
    failed,
    gone,
    h100,
    learned,
    lost,
    observed,
    refused,
    ruled_out,
    running,
    script_assigned,
    script_fetched,
    unknown,
    wanted,
)
from .scenario import NOON
from .transitions import TRANSITIONS

EVENTS: dict[str, InstanceEvent] = {
    event.type: event
    for event in (
        wanted(),
        attempted(),
        script_assigned(),
        script_fetched(),
        created(),
        refused(),
        unknown(),
        ruled_out(),
        failed(),
        observed(),
        learned("verda:///h100-aaaaaaaa"),
        NodeRegistered(instance=A, node_group="h100", node=A, uid="u", provider_id=f"verda://{A}", waited_s=1),
        NodeJoined(instance=A, node_group="h100", waited_s=2),
        NodeMeasured(instance=A, node_group="h100", differences=()),
        NodeDoubted(instance=A, node_group="h100", doubt=NodeDoubt.MISSED, message="no node has registered"),
        ProviderIdRepairAttempted(
            instance=A, node_group="h100", node=A, uid="u", provider_id=f"verda://{A}", evidence="same address"
        ),
        NodePreparationAttempted(instance=A, node_group="h100", node=A, uid="u", changes=("label a=b",)),
        NodePrepared(instance=A, node_group="h100", node=A, changes=("label a=b",)),
        delete_requested(),
        delete_attempted(),
        delete_refused(),
        gone(),
        lost(),
        adopted(),
        cancelled(),
    )
}
POSSIBLE = [(state, event, after) for (state, event), after in TRANSITIONS.items() if after not in {"-", "*"}]
MINUTE = timedelta(minutes=1)


def test_the_table_names_every_state_and_every_event() -> None:
    """A new state or event is not forgotten: its row has to be worked out."""
    types = {event_type.type for event_type in get_args(AnyInstanceEvent)}
    assert set(EVENTS) == types
    assert set(TRANSITIONS) == {(state, event) for state in InstanceState for event in types}


@pytest.mark.parametrize("state", InstanceState)
def test_each_story_leads_to_its_state(state: InstanceState) -> None:
    """The starting points of the table are what they say."""
    assert h100.given(*LEADING_TO[state]).instance(A).state is state


@pytest.mark.parametrize(
    ("state", "event", "after"), POSSIBLE, ids=[f"{state}+{event}" for state, event, _ in POSSIBLE]
)
def test_a_fact_leads_to_the_state_of_the_table(state: InstanceState, event: str, after: str) -> None:
    """Deletion wins over everything that is learned later; a failure stays one until it is collected."""
    fact = observed(state) if event == "instance.state-observed" else EVENTS[event]
    assert h100.given(*LEADING_TO[state], fact).instance(A).state == after


@pytest.mark.parametrize("before", [InstanceState.PROVISIONING, InstanceState.RUNNING, InstanceState.STOPPED])
@pytest.mark.parametrize("seen", [InstanceState.PROVISIONING, InstanceState.RUNNING, InstanceState.STOPPED])
def test_an_observation_carries_the_state_after_it(before: InstanceState, seen: InstanceState) -> None:
    """What a status word means is decided once, when it is seen; folding an old log never re-interprets it."""
    assert h100.given(*LEADING_TO[before], observed(seen, "whatever")).instance(A).state is seen


@pytest.mark.parametrize("state", InstanceState)
def test_folding_never_raises(state: InstanceState) -> None:
    """What is in the log has happened: a fold that judged could make a database unreadable."""
    story = h100.given(*LEADING_TO[state])
    for event in EVENTS.values():
        assert story.given(event).instance(A).version == len(LEADING_TO[state]) + 1


def test_a_failed_creation_counts_until_it_is_collected_and_a_deleting_instance_does_not() -> None:
    """The autoscaler expects both."""
    live = {"requested", "submitting", "provisioning", "running", "stopped", "failed"}
    assert {state for state in InstanceState if state.is_live} == live
    assert {state for state in InstanceState if state.is_ended} == {"gone", "lost", "cancelled"}
    assert set(InstanceState) - live == {"deleting", "gone", "lost", "cancelled"}


@pytest.mark.parametrize(
    ("word", "phase"),
    [
        ("new", "creating"),
        ("ordered", "creating"),
        ("pending", "creating"),
        ("provisioning", "creating"),
        ("validating", "creating"),
        ("running", "running"),
        ("offline", "stopped"),
        ("hibernating", "stopped"),
        ("error", "broken"),
        ("installation_failed", "broken"),
        ("no_capacity", "no-capacity"),
        ("discontinued", "ended"),
        ("notfound", "ended"),
        ("deleting", "unchanged"),
        ("unknown", "unchanged"),
        ("starting_hibernation", "unchanged"),
        ("restoring", "unchanged"),
        ("migrating", "unchanged"),
        ("hibernating_v2", "unchanged"),
        ("Running", "unchanged"),
        ("", "unchanged"),
    ],
)
def test_every_status_word_has_a_meaning_and_an_unknown_one_means_no_change(word: str, phase: str) -> None:
    """F52: the API promises nothing about new words; such a machine exists, may bill, and is what it was before."""
    assert phase_of(word) is Phase(phase)


def test_a_wish_remembers_who_wanted_it_and_when() -> None:
    """Who asked for this machine: answered from the instance alone."""
    wish = h100.given(MINUTE, wanted()).instance(A)
    assert (wish.requested_by, wish.correlation_id) == ("cluster-autoscaler", "c-1")
    assert wish.requested_at == NOON + MINUTE
    assert (wish.provider_id, wish.node_group, wish.version) == ("verda://h100-aaaaaaaa", "h100", 1)
    assert wish.ordinal == wish.position == h100.books.position + 1


def test_an_open_attempt_may_have_made_a_machine_until_its_outcome_is_known() -> None:
    """Between intent and outcome nobody may assume that there is none."""
    story = h100.given(wanted())
    assert not story.instance(A).may_exist
    assert story.given(attempted()).instance(A).may_exist
    assert story.given(attempted(), unknown()).instance(A).may_exist
    assert not story.given(attempted(), refused()).instance(A).may_exist
    assert not story.given(attempted(), unknown(), ruled_out()).instance(A).may_exist
    assert story.given(attempted(), created()).instance(A).may_exist


def test_an_attempt_records_what_was_ordered_and_at_what_price() -> None:
    """The contract and price kept are those of the order, not those of the group's first choice."""
    ordered = h100.given(wanted(), attempted(location="FIN-03", contract=Contract.SPOT, price="0.8015")).instance(A)
    assert (ordered.instance_type, ordered.location, ordered.contract) == ("1H100.80S.32V", "FIN-03", Contract.SPOT)
    assert (ordered.price_per_hour, ordered.currency) == (Decimal("0.8015"), "usd")


def test_a_refused_rung_is_closed_for_this_wish() -> None:
    """The next attempt must not ask again for what was just refused."""
    wish = h100.given(wanted(), attempted(), refused(), attempted(attempt=2, location="FIN-03"), refused(attempt=2))
    assert wish.instance(A).closed_rungs == (
        Offering(instance_type="1H100.80S.32V", location="FIN-01", contract=Contract.ON_DEMAND),
        Offering(instance_type="1H100.80S.32V", location="FIN-03", contract=Contract.ON_DEMAND),
    )


def test_a_passing_refusal_closes_no_rung_and_sets_a_pause() -> None:
    """A rate limit says nothing about the offering."""
    later = NOON + timedelta(seconds=2)
    story = h100.given(wanted(), attempted(), refused(code=FailureCode.RATE_LIMITED, rung_closed=False, retry_at=later))
    assert story.instance(A).closed_rungs == ()
    assert story.instance(A).retry_at == later
    assert story.given(attempted(attempt=2)).instance(A).retry_at is None


def test_a_stock_out_is_remembered_through_later_refusals_of_another_kind() -> None:
    """Out of resources makes the autoscaler try another group at once; a later rate limit must not hide it."""
    limited = refused(
        attempt=2,
        error_class=ErrorClass.OTHER,
        code=FailureCode.RATE_LIMITED,
        message="slow down",
        rung_closed=False,
    )
    wish = h100.given(wanted(), attempted(), refused(), attempted(attempt=2), limited).instance(A)
    assert (wish.error_class, wish.error_code) == (ErrorClass.OUT_OF_RESOURCES, FailureCode.OUT_OF_STOCK)


def test_the_first_moment_of_doubt_counts() -> None:
    """A restart notes the doubt once more; the settle period must not begin anew with each."""
    story = h100.given(wanted(), attempted(), unknown(), MINUTE, unknown())
    assert story.instance(A).unknown_since == NOON


def test_a_machine_found_resolves_every_doubt() -> None:
    """Nothing is left to look for, nothing to wait for."""
    found = h100.given(wanted(), attempted(), unknown(), created()).instance(A)
    assert (found.instance_id, found.attempted_at, found.unknown_since, found.retry_at) == (A_ID, None, None, None)


def test_the_cloud_s_own_times_and_prices_replace_our_guesses() -> None:
    """The bill follows the machine object, not the list price of the moment of ordering."""
    earlier = NOON - timedelta(seconds=5)
    story = h100.given(
        wanted(), attempted(), created(), observed(InstanceState.RUNNING, created_at=earlier, price="2.10")
    )
    assert story.instance(A).created_at == earlier
    assert story.instance(A).price_per_hour == Decimal("2.10")


def test_what_an_observation_does_not_show_stays_known() -> None:
    """A young machine's answer lacks fields; absence there is not a change."""
    story = h100.given(*running(), observed(price="2.10", location="FIN-03", os_volume_id="v1", volume_ids=("v1",)))
    seen = story.given(observed()).instance(A)
    assert (seen.price_per_hour, seen.location, seen.os_volume_id) == (Decimal("2.10"), "FIN-03", "v1")
    assert seen.volume_ids == ("v1",)


def test_running_since_is_the_first_time_and_stopped_since_the_latest() -> None:
    """F53: switched off, on, off again: the three hours count from the last time."""
    story = h100.given(*running(), MINUTE, observed(InstanceState.STOPPED, "offline"))
    assert story.instance(A).stopped_at == NOON + MINUTE
    story = story.given(MINUTE, observed(InstanceState.STOPPED, "offline"))
    assert story.instance(A).stopped_at == NOON + MINUTE
    story = story.given(MINUTE, observed())
    assert story.instance(A).stopped_at is None
    assert story.instance(A).running_at == NOON
    story = story.given(MINUTE, observed(InstanceState.STOPPED, "offline"))
    assert story.instance(A).stopped_at == NOON + 4 * MINUTE


def test_a_deletion_may_begin_at_once_whatever_was_waited_for_before() -> None:
    """The pause before the next create call is no reason to keep a machine."""
    story = h100.given(wanted(), attempted(), refused(rung_closed=False, retry_at=NOON + MINUTE), attempted(attempt=2))
    deleting = story.given(MINUTE, delete_requested()).instance(A)
    assert deleting.retry_at is None
    assert (deleting.delete_requested_at, deleting.delete_requested_by) == (NOON + MINUTE, "cluster-autoscaler")


def test_a_provider_id_seen_in_kubernetes_outlives_the_creation() -> None:
    """The kubelet may register before the create call is answered; its spelling is the one that counts."""
    story = h100.given(wanted(), attempted(), learned("verda:///h100-aaaaaaaa"))
    assert story.instance(A).provider_id == "verda:///h100-aaaaaaaa"
    assert story.instance(A).provider_id_learned


def test_an_end_has_a_time_a_reason_and_a_cost() -> None:
    """F27: the hourly cost stops in our books."""
    story = h100.given(*running(), timedelta(hours=2), lost(cost="4.580000"))
    ended = story.instance(A)
    assert (ended.ended_at, ended.end_reason, ended.cost) == (NOON + timedelta(hours=2), "vanished", Decimal("4.58"))


def test_an_adopted_instance_takes_its_end_back() -> None:
    """It was believed lost and runs: cost and end were wrong."""
    story = h100.given(*running(), timedelta(hours=2), lost(cost="4.580000"), adopted())
    back = story.instance(A)
    assert (back.ended_at, back.end_reason, back.cost, back.created_at) == (None, None, None, NOON)


@pytest.mark.parametrize(
    ("price", "lifetime", "cost"),
    [
        ("2.29", timedelta(hours=1), "2.290000"),
        ("2.29", timedelta(minutes=10), "0.381667"),
        ("18.32", timedelta(days=30), "13190.400000"),
        ("2.29", timedelta(0), "0.000000"),
        ("2.29", timedelta(hours=-1), "0.000000"),
        ("0.0279", timedelta(microseconds=1), "0.000000"),
    ],
)
def test_cost_is_price_times_lifetime_and_never_negative(price: str, lifetime: timedelta, cost: str) -> None:
    """10 minutes of 2.29 are 2.29 / 6 = 0.38166...; a clock ahead of ours must not earn money."""
    instance = h100.given(wanted(), attempted(price=price), created()).instance(A)
    assert instance.cost_until(NOON + lifetime) == Decimal(cost)


def test_what_never_existed_or_has_no_price_costs_nothing_that_we_know() -> None:
    """Unknown is not zero."""
    assert h100.given(wanted()).instance(A).cost_until(NOON) is None
    assert h100.given(wanted(), attempted(price=None), created()).instance(A).cost_until(NOON) is None
