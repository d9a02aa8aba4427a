from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain import observation
from app.domain.envelope import Event
from app.domain.instance.commands import AttemptCreate, ConfirmEnded
from app.domain.instance.events import ErrorClass, FailureCode, Found
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.domain.nodegroup.budget import excess
from app.domain.offering import Contract

from .facts import (
    A_ID,
    B_ID,
    DATA_VOLUME,
    H100,
    H100_TYPE,
    LEADING_TO,
    OS_VOLUME,
    A,
    adopted,
    attempted,
    catalogue,
    configured,
    created,
    delete_requested,
    failed,
    h100,
    machine,
    observed,
    orphan,
    refused,
    rested,
    ruled_out,
    surplus,
    unknown,
    wanted,
)
from .listings import SECOND, THEIRS, listing, seen, watched
from .scenario import NOON

# --- known machines


def test_a_machine_seen_for_the_first_time_is_news_in_full() -> None:
    """Its price and volume are the cloud's from here on."""
    h100.given(*LEADING_TO[InstanceState.PROVISIONING]).when(listing(machine(status="ordered"))).then(
        seen(InstanceState.PROVISIONING, "ordered", f"the cloud says ordered, OS volume {OS_VOLUME}")
    )


def test_ten_thousand_unchanged_listings_write_nothing() -> None:
    """An observation is a fact only when it changes something."""
    story = watched()
    for _ in range(100):
        story = story.given(10 * SECOND)
        story.when(listing(machine())).then_nothing()


@pytest.mark.parametrize(
    ("changed", "news"),
    [
        (replace(machine(), status="offline"), "the cloud says offline"),
        (replace(machine(), price_per_hour=Decimal("2.10")), "price 2.10"),
        (replace(machine(), ip="10.0.0.7"), "address 10.0.0.7"),
        (replace(machine(), location="FIN-03"), "location FIN-03"),
        (replace(machine(), contract=Contract.SPOT), "contract spot"),
        (replace(machine(), os_volume_id="v2", volume_ids=("v2", "v3")), "OS volume v2, volumes v3"),
    ],
)
def test_each_change_is_told_in_words(changed: Machine, news: str) -> None:
    """The log says what was new, not only what is."""
    (event,) = watched().when(listing(changed)).events
    assert event.model_dump()["news"] == news


def test_what_a_listing_leaves_out_is_no_news() -> None:
    """A replica that does not know the price yet has not made the machine free of charge."""
    bare = replace(
        machine(), price_per_hour=None, contract=None, location=None, os_volume_id=None, volume_ids=(), created_at=None
    )
    watched().when(listing(bare)).then_nothing()


def test_neither_the_order_of_volumes_nor_the_system_disk_unsaid_is_news() -> None:
    """Listings where nothing changes write nothing, whatever the replica that answers makes of them."""
    data = (OS_VOLUME, DATA_VOLUME, "v3")
    story = watched().given(listing(replace(machine(), volume_ids=data)))
    story.when(listing(replace(machine(), volume_ids=data[::-1]))).then_nothing()
    story.when(listing(replace(machine(), os_volume_id=None, volume_ids=data))).then_nothing()
    (event,) = story.when(listing(replace(machine(), os_volume_id=None, volume_ids=(OS_VOLUME, "v3")))).events
    assert event.model_dump()["news"] == "volumes v3"


@pytest.mark.parametrize(
    ("status", "provisioning", "running_", "stopped", "deleting"),
    [
        ("new", "provisioning", "running", "stopped", "deleting"),
        ("ordered", "provisioning", "running", "stopped", "deleting"),
        ("pending", "provisioning", "running", "stopped", "deleting"),
        ("provisioning", "provisioning", "running", "stopped", "deleting"),
        ("validating", "provisioning", "running", "stopped", "deleting"),
        ("running", "running", "running", "running", "deleting"),
        ("offline", "provisioning", "stopped", "stopped", "deleting"),
        ("deleting", "provisioning", "running", "stopped", "deleting"),
        ("error", "failed", "running", "stopped", "deleting"),
        ("installation_failed", "failed", "running", "stopped", "deleting"),
        ("discontinued", "provisioning", "running", "stopped", "deleting"),
        ("notfound", "provisioning", "running", "stopped", "deleting"),
        ("unknown", "provisioning", "running", "stopped", "deleting"),
        ("migrating", "provisioning", "running", "stopped", "deleting"),
    ],
)
def test_a_status_word_moves_a_machine_forward_and_never_back(
    status: str, provisioning: str, running_: str, stopped: str, deleting: str
) -> None:
    """F52: stale lists and new words change nothing for the autoscaler; deletion wins over all of them."""
    befores = (InstanceState.PROVISIONING, InstanceState.RUNNING, InstanceState.STOPPED, InstanceState.DELETING)
    for before, after in zip(befores, (provisioning, running_, stopped, deleting), strict=True):
        story = h100.given(*LEADING_TO[before], listing(machine(status=status)))
        assert story.instance(A).state == after
        assert story.instance(A).machine_status == status


def test_an_unknown_word_is_one_event_and_changes_no_state() -> None:
    """F52: ten minutes of `migrating`, then running again."""
    story = watched()
    (event,) = story.when(listing(machine(status="migrating"))).events
    story = story.given(event)
    assert story.instance(A).state is InstanceState.RUNNING
    story.when(listing(machine(status="migrating"))).then_nothing()
    assert story.given(listing(machine())).instance(A).machine_status == "running"


def test_a_stale_listing_does_not_take_running_back() -> None:
    """One replica lags: the node has joined and must not become a creating one."""
    assert watched().given(listing(machine(status="provisioning"))).instance(A).state is InstanceState.RUNNING


def test_a_machine_that_breaks_while_it_is_made_has_failed() -> None:
    """The autoscaler is told at once and deletes it; it exists, so its deletion reaches the cloud."""
    story = watched("provisioning")
    after = story.when(listing(machine(status="installation_failed"))).then(
        seen(InstanceState.PROVISIONING, "installation_failed", "the cloud says installation_failed"),
        failed(
            A,
            ErrorClass.OTHER,
            FailureCode.MACHINE_ERROR,
            "Verda accepted the order and then reported the machine as installation_failed",
        ),
    )
    assert after.instance(A).may_exist
    after.when(listing(machine(status="installation_failed"))).then_nothing()


# --- accepted, then no capacity


def test_an_order_taken_and_never_placed_is_a_stock_out_like_any_other() -> None:
    """F19: the second of the two signals: 202 and then no_capacity; the next place is tried, the record deleted."""
    words = "Verda accepted the order and then reported the machine as no_capacity; add locations or another group"
    after = (
        watched("ordered")
        .when(listing(machine(status="no_capacity")))
        .then(
            seen(InstanceState.PROVISIONING, "no_capacity", "the cloud says no_capacity"),
            surplus(A_ID, A, "never placed"),
            refused(message=words),
            rested(message=words),
        )
    )
    wish = after.instance(A)
    assert (wish.state, wish.instance_id, wish.created_at) == (InstanceState.REQUESTED, None, None)
    assert wish.cost_until(NOON + timedelta(hours=1)) is None
    after.when(AttemptCreate(instance=A)).then(attempted(attempt=2, location="FIN-03"))


def test_the_record_that_was_never_placed_is_not_taken_for_the_next_attempt_s_machine() -> None:
    """It stays listed for a while, under the same host name."""
    story = watched("ordered").given(listing(machine(status="no_capacity")), AttemptCreate(instance=A))
    story.when(listing(machine(status="no_capacity"))).then_nothing()
    story = story.given(created(A, B_ID))
    after = story.given(listing(machine(status="no_capacity"), machine(B_ID, status="running")))
    assert after.instance(A).state is InstanceState.RUNNING
    assert after.instance(A).instance_id == B_ID


@pytest.mark.parametrize("location", ["FIN-03", "FIN-01"], ids=["elsewhere", "at the same place"])
def test_what_a_late_order_left_is_not_taken_while_the_next_order_s_machine_is_there(location: str) -> None:
    """The first order was ruled out, and executed after that, without stock; the second one has a machine."""
    story = h100.given(wanted(), attempted(), unknown(), ruled_out(), attempted(attempt=2, location=location))
    left = machine(status="no_capacity", created_at=NOON)
    made = machine(B_ID, status="ordered", location=location, created_at=NOON + timedelta(seconds=1))
    story.when(listing(left, made)).then(created(A, B_ID, found=Found.LOOKED_UP))


def test_what_a_late_order_left_elsewhere_says_nothing_of_the_next_order() -> None:
    """Its own record would."""
    story = h100.given(wanted(), attempted(), unknown(), ruled_out(), attempted(attempt=2, location="FIN-03"))
    story.when(listing(machine(status="no_capacity"))).then_nothing()
    of_its_own = machine(B_ID, status="no_capacity", location="FIN-03")
    story.when(listing(machine(status="no_capacity"), of_its_own)).then(created(A, B_ID, found=Found.LOOKED_UP))


def test_the_last_place_without_stock_fails_the_wish() -> None:
    """F19: out of resources; the record is deleted when the autoscaler collects the failure."""
    one_place = H100.model_copy(update={"locations": ("FIN-01",)})
    story = watched("ordered").given(configured(one_place), listing(machine(status="no_capacity")))
    wish = story.instance(A)
    assert (wish.state, wish.error_class, wish.error_code) == (
        InstanceState.FAILED,
        ErrorClass.OUT_OF_RESOURCES,
        FailureCode.OUT_OF_STOCK,
    )
    assert wish.instance_id == A_ID


def test_what_was_never_placed_costs_nothing_whatever_the_cloud_calls_it_afterwards() -> None:
    """Verda shows a price of the record and bills none of it: not in the books, not when it is gone, not in a limit."""
    one_place = H100.model_copy(update={"locations": ("FIN-01",), "max_hourly_cost": Decimal("2.29")})
    story = watched("ordered").given(configured(one_place), timedelta(minutes=1))
    story = story.given(listing(machine(status="no_capacity", created_at=NOON)))
    story.when(listing(machine(status="no_capacity", created_at=NOON))).then_nothing()
    story = story.given(catalogue(H100_TYPE), delete_requested(A), timedelta(hours=1))
    assert excess(story.books, story.books.groups["h100"], 1) is None
    story = story.given(listing(machine(status="deleting", created_at=NOON)))
    wish = story.instance(A)
    assert (wish.price_per_hour, wish.created_at, wish.cost_until(story.now)) == (None, None, None)
    (ended,) = story.when(ConfirmEnded(instance=A, instance_id=A_ID, known_by_id=True)).events
    assert ended.sentence == f"{A} is gone, cost - usd"


@pytest.mark.parametrize("status", ["running", "offline"])
def test_what_runs_after_all_is_billed_from_its_beginning(status: str) -> None:
    """A machine that is there was placed, whatever was said before."""
    one_place = H100.model_copy(update={"locations": ("FIN-01",)})
    story = watched("ordered").given(configured(one_place), listing(machine(status="no_capacity", created_at=NOON)))
    story = story.given(timedelta(minutes=30), listing(machine(status=status, created_at=NOON)))
    assert story.instance(A).cost_until(NOON + timedelta(hours=1)) == Decimal("2.29")


def test_an_adopted_machine_that_was_never_placed_fails() -> None:
    """Whoever ordered it knew the ladder; we do not."""
    story = h100.given(adopted(), observed(InstanceState.PROVISIONING, "ordered"))
    story = story.given(listing(machine(status="no_capacity")))
    assert story.instance(A).state is InstanceState.FAILED
    assert story.instance(A).error_class is ErrorClass.OUT_OF_RESOURCES


# --- machines whose create call was not answered


@pytest.mark.parametrize(
    "past",
    [
        (wanted(), attempted()),
        (wanted(), attempted(), unknown()),
        (wanted(), attempted(), unknown(), ruled_out()),
    ],
    ids=["not answered yet", "unknown", "ruled out too early"],
)
def test_a_machine_is_found_by_host_name_and_mark(past: tuple[Event, ...]) -> None:
    """F46: a crash between the order and its record neither loses nor doubles the machine."""
    story = h100.given(*past)
    after = story.when(listing(machine(status="ordered"))).then(created(found=Found.LOOKED_UP))
    assert after.instance(A).state is InstanceState.PROVISIONING


def test_a_machine_found_for_a_wish_being_deleted_stays_deleting() -> None:
    """Deleted while submitting: now there is something to delete."""
    after = h100.given(wanted(), attempted(), unknown(), delete_requested()).given(listing(machine()))
    assert after.instance(A).state is InstanceState.DELETING
    assert after.instance(A).instance_id == A_ID


def test_a_machine_found_for_a_failed_wish_stays_failed() -> None:
    """The failure was told; now its deletion reaches the cloud."""
    after = h100.given(wanted(), attempted(), unknown(), failed()).given(listing(machine()))
    assert (after.instance(A).state, after.instance(A).instance_id) == (InstanceState.FAILED, A_ID)


@pytest.mark.parametrize("description", ["", "my own h100", THEIRS], ids=["none", "a human's", "another's"])
def test_the_host_name_alone_makes_no_machine_ours(description: str) -> None:
    """Humans copy names; never adopt by name alone."""
    story = h100.given(orphan(A_ID), wanted(), attempted(), unknown())
    story.when(listing(machine(description=description))).then_nothing()


def test_of_two_machines_for_one_order_the_first_made_is_kept() -> None:
    """An unknown create that was executed twice."""
    first = machine(B_ID, created_at=NOON)
    second = machine(A_ID, created_at=NOON + SECOND)
    after = h100.given(wanted(), attempted(), unknown()).given(listing(second, first))
    assert after.instance(A).instance_id == B_ID
    (found,) = observation.surplus(after.books, (second, first))
    assert found == (after.instance(A), second)


@pytest.mark.parametrize("status", ["discontinued", "notfound", "deleted"])
def test_a_record_of_a_machine_that_is_no_more_is_not_the_order_s_machine(status: str) -> None:
    """Where one of two is dead, the living one is kept; where only a dead one is, there is none."""
    story = h100.given(wanted(), attempted(), unknown())
    dead = machine(A_ID, status=status, created_at=NOON)
    story.when(listing(dead)).then_nothing()
    assert story.given(listing(dead, machine(B_ID, created_at=NOON + SECOND))).instance(A).instance_id == B_ID


def test_a_machine_too_many_is_not_found_again() -> None:
    """It is on its way out already."""
    story = h100.given(*LEADING_TO[InstanceState.CANCELLED], surplus(A_ID, A, "released"))
    story.when(listing(machine())).then_nothing()
    story = h100.given(surplus(A_ID, A, "duplicate"), wanted(), attempted(), unknown())
    story.when(listing(machine())).then_nothing()
