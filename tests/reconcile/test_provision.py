from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Event as Flag
from typing import Any

import pytest

from app.cloud.port import DeletionResult
from app.domain.envelope import Event, Recorded
from app.domain.instance.events import CreateFailed, CreateRefused, ErrorClass, FailureCode, InstanceCreated
from app.domain.machine import Order, OsVolume
from app.domain.offering import Contract
from app.errors import Rejected, RuleViolation, StoreUnavailable, Throttled
from app.reconcile.jobs.provision import fair_share

from .conftest import MakeHouse
from .house import House, spec
from .world import (
    BUSY,
    DOWN,
    NO_MONEY,
    NO_STOCK,
    QUOTA,
    TIMEOUT,
    WRONG_IMAGE,
    answers,
    makes_and,
    refuses,
)

SPOT_FIRST = (Contract.SPOT, Contract.ON_DEMAND)


def until_quiet(house: House) -> None:
    """Run the job as often as the facts it records would wake it."""
    while True:
        before = house.position()
        house.provision.run()
        if house.position() == before:
            return


# --- the normal way


def test_a_wish_becomes_one_order_with_everything_in_it(house: House) -> None:
    """The host name is the instance's, the mark says whose it is, the volume goes with the machine."""
    (name,) = house.grow()
    house.provision.run()
    mark = "ca:v1 cluster=c1 installation=inst1 group=h100"
    assert house.world.orders == [
        Order(
            hostname=name,
            instance_type="1H100.80S.32V",
            image="ubuntu-24.04",
            location="FIN-01",
            contract=Contract.ON_DEMAND,
            description=mark,
            tags=(("ca-cluster", "c1"), ("ca-installation", "inst1"), ("ca-group", "h100")),
            os_volume=OsVolume(name=f"{name}-os", size_gb=100, permanent=True),
        )
    ]
    assert house.state(name) == "provisioning"
    assert house.told(name) == ["requested", "create-attempted", "created"]


def test_the_order_is_the_group_s_own(house: House) -> None:
    """F32: keys, script, disk, contract."""
    settings: dict[str, Any] = {
        "ssh_key_ids": ("key-1", "key-2"),
        "startup_script_id": "script-1",
        "os_volume_size_gb": 250,
        "os_volume_permanent": False,
        "contracts": (Contract.SPOT,),
        "locations": ("ICE-01",),
    }
    house.configure(spec(**settings))
    (name,) = house.grow()
    house.provision.run()
    (order,) = house.world.orders
    assert (order.ssh_key_ids, order.startup_script_id) == (("key-1", "key-2"), "script-1")
    assert order.os_volume == OsVolume(name=f"{name}-os", size_gb=250, permanent=False)
    assert (order.contract, order.location) == (Contract.SPOT, "ICE-01")


def test_the_intent_is_durable_before_the_order(house: House) -> None:
    """What a crash leaves behind must say that there may be a machine."""
    seen: list[str] = []

    def look(order: Order, create: Callable[[], str]) -> str:
        seen.append(house.state(order.hostname))
        return create()

    house.world.always_create = look
    house.grow()
    house.provision.run()
    assert seen == ["submitting"]


def test_running_twice_orders_once(house: House) -> None:
    """The job converges."""
    house.grow(3)
    until_quiet(house)
    house.provision.run()
    assert len(house.world.orders) == len(house.world.alive) == 3


def test_slow_boot_is_not_failure(house: House) -> None:
    """F23: fourteen minutes of provisioning, then running: no kill, no second order, creating all the time."""
    (name,) = house.grow()
    house.provision.run()
    house.world.change(name, "provisioning")
    for _ in range(14 * 6):
        house.tick()
        assert house.state(name) == "provisioning"
    house.world.boot()
    house.tick()
    assert house.state(name) == "running"
    assert len(house.world.orders) == 1
    assert house.world.deletions == []


def test_a_machine_that_never_runs_is_given_up_after_half_an_hour_and_then_deleted(house: House) -> None:
    """Longer than the autoscaler's own patience; its deletion takes the machine along."""
    (name,) = house.grow()
    house.provision.run()
    house.ticks(30 * 6)
    assert house.state(name) == "provisioning"
    house.ticks(2)
    assert (house.state(name), house.instance(name).error_code) == ("failed", "provision-timeout")
    house.delete(name)
    house.ticks(3)
    assert house.state(name) == "gone"
    assert house.world.alive == {}


# --- refusals


def test_a_stock_out_everywhere_is_known_within_one_pass(house: House) -> None:
    """F19: creating, out of resources, a stable code; no attempt is left in doubt."""
    house.world.always_create = refuses(NO_STOCK)
    (name,) = house.grow()
    until_quiet(house)
    failed = house.instance(name)
    assert (failed.state, failed.error_class, failed.error_code) == (
        "failed",
        ErrorClass.OUT_OF_RESOURCES,
        FailureCode.OUT_OF_STOCK,
    )
    assert [order.location for order in house.world.orders] == ["FIN-01", "FIN-03"]
    assert house.target() == 1
    assert "instance.create-outcome-unknown" not in house.types()


def test_every_contract_and_place_is_tried_before_the_wish_fails(house: House) -> None:
    """Prefer spot: spot at both places, then on demand at both."""
    house.configure(spec(contracts=SPOT_FIRST))
    house.world.on_create.extend([refuses(NO_STOCK)] * 3)
    (name,) = house.grow()
    until_quiet(house)
    assert [(order.contract, order.location) for order in house.world.orders] == [
        ("spot", "FIN-01"),
        ("spot", "FIN-03"),
        ("on-demand", "FIN-01"),
        ("on-demand", "FIN-03"),
    ]
    assert (house.state(name), house.instance(name).contract) == ("provisioning", "on-demand")
    assert house.instance(name).price_per_hour == Decimal("2.29")


def test_an_order_taken_and_never_placed_moves_on_to_the_next_place(house: House) -> None:
    """F19: 202 first, then the status no_capacity; its record is deleted, the next order lives."""
    (name,) = house.grow()
    house.provision.run()
    house.tick()
    house.world.change(name, "no_capacity")
    house.tick(house.observe)
    assert house.state(name) == "requested"
    house.tick(house.provision, house.terminate)
    assert [order.location for order in house.world.orders] == ["FIN-01", "FIN-03"]
    house.world.boot()
    house.ticks(4)
    assert (house.state(name), house.instance(name).location) == ("running", "FIN-03")
    assert len(house.world.alive) == 1
    assert not house.books.cloud.surplus


def test_no_money_fails_each_wish_at_its_first_order_and_heals_by_itself(house: House) -> None:
    """F20: a clear text, no other place tried, existing machines untouched; after a top-up new wishes succeed."""
    (old,) = house.running()
    house.world.on_create.extend([refuses(NO_MONEY)] * 2)
    names = house.grow(2)
    until_quiet(house)
    for name in names:
        failed = house.instance(name)
        assert (failed.error_class, failed.error_code) == (1, "insufficient-funds")
        assert failed.error_message == "Insufficient funds; top up the Verda balance"
    assert len(house.world.orders) == 3
    house.delete(*names)
    (again,) = house.grow()
    until_quiet(house)
    assert (house.state(old), house.state(again)) == ("running", "provisioning")


def test_no_quota_at_one_place_uses_the_other(house: House) -> None:
    """F21: the rung is closed for the wish, FIN-03 is used, and no loop of attempts arises."""
    house.world.on_create.append(refuses(QUOTA))
    (name,) = house.grow()
    until_quiet(house)
    house.ticks(6)
    assert [order.location for order in house.world.orders] == ["FIN-01", "FIN-03"]
    assert house.state(name) == "provisioning"
    (refused,) = [item.event for item in house.log if isinstance(item.event, CreateRefused)]
    assert (refused.code, refused.message) == (
        "quota-exceeded",
        "GPU quota exceeded; ask Verda for a higher quota or use other locations",
    )


def test_an_image_that_does_not_fit_is_no_missing_capacity(house: House) -> None:
    """F22: class other, a code that says what it is, no other places tried."""
    house.world.always_create = refuses(WRONG_IMAGE)
    (name,) = house.grow()
    until_quiet(house)
    failed = house.instance(name)
    assert (failed.state, failed.error_class, failed.error_code) == ("failed", 99, "image-not-supported")
    assert len(house.world.orders) == 1


def test_a_rate_limit_delays_the_order_by_what_the_api_asks(house: House) -> None:
    """F24: Retry-After: 17; no failure, no other place, one order then."""
    house.world.on_create.append(refuses(Throttled("Rate limit", code="x", retry_after=timedelta(seconds=17))))
    (name,) = house.grow()
    until_quiet(house)
    assert house.state(name) == "requested"
    house.clock.advance(16.9)
    house.provision.run()
    assert len(house.world.orders) == 1
    house.clock.advance(0.1)
    house.provision.run()
    assert house.state(name) == "provisioning"
    assert house.world.orders[0] == house.world.orders[1]


def test_a_cloud_that_is_away_is_asked_ever_more_seldom_and_then_given_up(house: House) -> None:
    """Ten minutes below the autoscaler's fifteen: pauses of 2, 4, 8, 16, 32, 60, 60 … seconds."""
    house.world.always_create = refuses(DOWN)
    (name,) = house.grow()
    for _ in range(600):
        house.provision.run()
        house.clock.advance(1)
    assert len(house.world.orders) == 14
    house.deadlines.run()
    failed = house.instance(name)
    assert (failed.state, failed.error_code, failed.error_message) == (
        "failed",
        "cloud-unreachable",
        "connection refused",
    )
    house.delete(name)
    assert house.state(name) == "cancelled"


def test_a_cloud_that_returns_in_time_gets_the_order(house: House) -> None:
    """Wishes are accepted and kept while Verda is down; nothing is forgotten."""
    house.world.on_create.extend([refuses(DOWN), refuses(BUSY), refuses(DOWN)])
    (name,) = house.grow()
    house.ticks(6)
    assert (house.state(name), len(house.world.alive)) == ("provisioning", 1)


def test_a_wish_released_before_its_order_is_never_ordered(house: House) -> None:
    """A released slot must not produce an instance."""
    house.world.on_create.append(refuses(BUSY))
    (name,) = house.grow()
    house.provision.run()
    house.shrink(1)
    house.ticks(12)
    assert house.state(name) == "cancelled"
    assert house.world.alive == {}


def test_wishes_of_a_retired_group_are_not_ordered(house: House) -> None:
    """Nobody wants them any more."""
    house.grow(2)
    house.configure()
    until_quiet(house)
    assert house.world.orders == []
    assert house.target() == 0


# --- nobody knows


@pytest.mark.parametrize("error", [TIMEOUT], ids=["read timed out"])
def test_an_unknown_order_that_was_executed_is_adopted_by_host_name(house: House, error: Exception) -> None:
    """F46, F47: the reply is lost or cannot be read; the machine is kept, creating, and never ordered twice."""
    house.world.on_create.append(makes_and(error))
    (name,) = house.grow()
    house.provision.run()
    assert (house.state(name), house.instance(name).instance_id) == ("submitting", None)
    house.tick(house.observe)
    assert (house.state(name), house.instance(name).instance_id) == ("provisioning", "id-0001")
    house.world.boot()
    house.ticks(20)
    assert house.state(name) == "running"
    assert len(house.world.orders) == 1


def test_an_unknown_order_that_was_not_executed_is_ruled_out_and_only_then_tried_again(house: House) -> None:
    """Not before it was absent from the lists for the whole settle period."""
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.ticks(9)
    assert (house.state(name), len(house.world.orders)) == ("submitting", 1)
    house.ticks(2)
    assert (house.state(name), len(house.world.orders)) == ("provisioning", 2)
    assert house.told(name) == [
        "requested",
        "create-attempted",
        "create-outcome-unknown",
        "create-ruled-out",
        "create-attempted",
        "created",
        "state-observed",
    ]


def test_an_order_in_doubt_is_not_ruled_out_while_the_list_fails(house: House) -> None:
    """A failed listing says nothing about anybody."""
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.always_list = lambda _show: (_ for _ in ()).throw(DOWN)
    house.ticks(40)
    assert (house.state(name), len(house.world.orders)) == ("submitting", 1)


def test_an_order_in_doubt_needs_several_looks_however_long_it_waits(house: House) -> None:
    """A process that slept through the settle period has not looked."""
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.clock.advance(timedelta(minutes=5))
    house.ticks(2, house.observe)
    assert house.state(name) == "submitting"
    house.tick(house.observe)
    assert house.state(name) == "requested"


def test_the_record_of_an_order_never_placed_does_not_hide_that_the_next_one_came_to_nothing(house: House) -> None:
    """It is listed under the same host name for a while, and Verda does not take its deletion at once."""
    (name,) = house.grow()
    house.provision.run()
    house.tick()
    house.world.change(name, "no_capacity")
    house.world.on_create.append(refuses(TIMEOUT))
    house.world.always_delete = answers(DeletionResult.REFUSED, "forbidden_action")
    house.ticks(2)
    assert (house.state(name), len(house.world.orders)) == ("submitting", 2)
    house.ticks(12)
    assert len(house.world.orders) == 3


def test_a_second_machine_from_an_order_ruled_out_too_early_is_deleted(house: House) -> None:
    """The list lagged for minutes: the first stays, the other goes."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.always_list = lambda _show: ()
    house.ticks(12, house.observe, house.provision)
    assert len(house.world.orders) == 2
    assert house.instance(name).instance_id == "id-0002"
    house.world.always_list = lambda show: show()
    house.ticks(4)
    assert set(house.world.alive) == {name}
    assert house.world.alive[name].instance_id == "id-0002"
    assert not house.books.cloud.surplus
    assert house.types().count("cloud.duplicate-instance-detected") == 1
    assert house.types().count("cloud.duplicate-instance-deleted") == 1


def test_an_order_in_doubt_for_ten_minutes_fails_and_its_machine_is_deleted_when_found(house: House) -> None:
    """The autoscaler went elsewhere; the machine that shows up must not be forgotten."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.always_list = lambda _show: (_ for _ in ()).throw(DOWN)
    house.ticks(61)
    assert (house.state(name), house.instance(name).error_code) == ("failed", "create-timeout")
    house.delete(name)
    assert house.state(name) == "deleting"
    house.world.always_list = lambda show: show()
    house.ticks(5)
    assert house.state(name) == "gone"
    assert house.world.alive == {}


def test_an_order_that_breaks_off_in_an_unheard_of_way_is_looked_for(house: House) -> None:
    """Any other error of an adapter is an unknown outcome too; it must not stop the job."""
    house.world.on_create.append(makes_and(KeyError("id")))
    first, second = house.grow(2)
    house.provision.run()
    assert {house.state(first), house.state(second)} == {"submitting", "provisioning"}
    house.ticks(2)
    assert {house.state(first), house.state(second)} == {"provisioning"}
    assert len(house.world.orders) == 2


def test_an_outcome_that_cannot_be_written_is_looked_for(house: House) -> None:
    """The disk is full in the very moment: the machine exists and nobody wrote so."""
    (name,) = house.grow()

    def full(recorded: Sequence[Recorded[Event]]) -> None:
        if isinstance(recorded[0].event, InstanceCreated):
            raise StoreUnavailable("the disk is full")

    house.trap.on_append = full
    house.provision.run()
    assert (house.state(name), len(house.world.alive)) == ("submitting", 1)
    house.trap.on_append = lambda _: None
    house.ticks(3)
    assert (house.state(name), len(house.world.orders)) == ("provisioning", 1)


def test_an_intent_that_cannot_be_written_is_no_order(house: House) -> None:
    """No effect without its intent; it is tried again when the disk is back."""
    (name,) = house.grow()

    def full(_: object) -> None:
        raise StoreUnavailable("the disk is full")

    house.trap.on_append = full
    house.provision.run()
    assert (house.state(name), house.world.orders) == ("requested", [])
    house.trap.on_append = lambda _: None
    house.tick()
    assert house.state(name) == "provisioning"


# --- deletion wins


def test_a_wish_deleted_while_its_order_is_in_doubt_is_resolved_first(house: House) -> None:
    """F50: found, then deleted; never re-created."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.delete(name)
    house.ticks(4)
    assert house.state(name) == "gone"
    assert (len(house.world.orders), house.world.alive) == (1, {})


def test_a_wish_deleted_in_doubt_that_never_had_a_machine_ends_without_a_call(house: House) -> None:
    """After the settle period it is cancelled."""
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.delete(name)
    house.ticks(11)
    assert (house.state(name), house.instance(name).cancel_reason) == ("cancelled", "never-created")
    assert house.world.deletions == []


def test_a_wish_deleted_while_its_order_is_under_way_is_deleted_when_it_is_answered(house: House) -> None:
    """The answer comes after the deletion: it goes straight to its end."""

    def slow(order: Order, create: Callable[[], str]) -> str:
        house.delete(order.hostname)
        return create()

    house.world.on_create.append(slow)
    (name,) = house.grow()
    house.provision.run()
    assert (house.state(name), house.instance(name).instance_id) == ("deleting", "id-0001")
    house.ticks(3)
    assert (house.state(name), house.world.alive) == ("gone", {})


def test_increases_and_deletions_crossing_at_every_step_end_with_the_right_machines(house: House) -> None:
    """F50: n1 goes, two new ones come, with a restart in between; n1 is never re-created."""
    (n1,) = house.running()
    first = house.grow(1)
    house.provision.run()
    house.delete(n1)
    house.restart()
    second = house.grow(1)
    house.ticks(2)
    house.world.boot()
    house.ticks(2)
    assert house.state(n1) == "gone"
    assert set(house.world.alive) == {*first, *second}
    assert [order.hostname for order in house.world.orders].count(n1) == 1


# --- fairness and bounds


def test_no_more_orders_at_a_time_than_allowed(make_house: MakeHouse) -> None:
    """Bounded concurrency; what is left over is taken up in the next run."""
    house = make_house(parallel=3)
    house.grow(7)
    counts: list[int] = []

    def look(_order: Order, create: Callable[[], str]) -> str:
        counts.append(house.provision.in_flight)
        return create()

    house.world.always_create = look
    house.provision.run()
    # One group never takes all places: with three, it may have one at a time.
    assert len(house.world.orders) == 1
    until_quiet(house)
    assert len(house.world.orders) == 7
    assert max(counts) <= 3


def test_a_group_whose_orders_hang_does_not_hold_up_another(make_house: MakeHouse) -> None:
    """F76: twenty wishes of A hang for a minute each; B's one starts in the next run."""
    pool = ThreadPoolExecutor(max_workers=4)
    house = make_house(parallel=4, executor=pool)
    release, b_done = Flag(), Flag()

    def hang(order: Order, create: Callable[[], str]) -> str:
        if order.hostname.startswith("h100-"):
            release.wait(10)
            raise NO_STOCK
        made = create()
        b_done.set()
        return made

    house.world.always_create = hang
    house.grow(20)
    house.provision.run()
    (name,) = house.grow(group="spot")
    house.provision.run()
    try:
        assert b_done.wait(5)
        assert sum(order.hostname.startswith("h100-") for order in house.world.orders) == 2
    finally:
        release.set()
        pool.shutdown()
    assert house.state(name) == "provisioning"
    assert house.provision.wait_idle(0)


def test_the_next_place_goes_to_the_group_with_the_fewest_orders_and_its_oldest_wish(house: House) -> None:
    """Nobody starves, and nobody who waits is overtaken within a group."""
    first, second, third = house.grow(3)
    (other,) = house.grow(group="spot")
    due = [house.instance(name) for name in (third, other, second, first)]
    taken = fair_share(due, working=_busy(h100=1), parallel=4)
    assert [instance.name for instance in taken] == [other, first]
    assert [instance.name for instance in fair_share(due, _busy(), 4)] == [first, other, second]
    assert fair_share(due, _busy(h100=2, spot=2), 4) == []


def _busy(**counts: int) -> Counter[str]:
    return Counter(counts)


def test_a_failed_order_wakes_the_job_for_what_is_left(make_house: MakeHouse) -> None:
    """The place it had is free again."""
    house = make_house(parallel=3)
    woken: list[int] = []
    house.provision.wake = lambda: woken.append(house.provision.in_flight)
    house.world.on_create.append(refuses(BUSY))
    house.grow(1)
    house.provision.run()
    assert woken == [0]


def test_growth_beyond_the_maximum_orders_nothing(house: House) -> None:
    """Refused as a whole: the job finds no wish."""
    with pytest.raises(RuleViolation):
        house.grow(21)
    house.provision.run()
    assert house.world.orders == []


def test_a_refusal_in_words_nobody_knows_is_still_told_as_they_are(house: House) -> None:
    """Verda's own words reach the log and the autoscaler."""
    house.world.always_create = refuses(Rejected("Invalid ssh key", code="invalid_request", status=400))
    (name,) = house.grow()
    until_quiet(house)
    (failed,) = [item.event for item in house.log if isinstance(item.event, CreateFailed)]
    assert (failed.instance, failed.code) == (name, "invalid-request")
    assert failed.message == "Invalid ssh key; mend the node group's configuration"


def test_what_is_too_many_is_never_taken_for_the_instance_s_own(house: House) -> None:
    """A released wish's machine appears late: it is deleted, and the name is not used again."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.always_list = lambda _show: ()
    house.delete(name)
    house.ticks(11)
    assert house.state(name) == "cancelled"
    house.world.always_list = lambda show: show()
    house.ticks(3)
    assert house.world.alive == {}
    assert house.state(name) == "cancelled"
    assert [deletion.instance_id for deletion in house.world.deletions] == ["id-0001"]
