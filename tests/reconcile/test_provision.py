from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event as Flag
from threading import Semaphore
from typing import Any

import pytest

from app.domain.instance.events import CreateFailed
from app.domain.machine import Order, OsVolume
from app.domain.offering import Contract
from app.errors import Rejected, RuleViolation
from app.reconcile.jobs.provision import fair_share

from .conftest import MakeHouse
from .house import House, refuses_to_write, spec
from .world import (
    BUSY,
    NO_STOCK,
    TIMEOUT,
    makes_and,
    refuses,
)

# --- the normal way


def test_a_wish_becomes_one_order_with_everything_in_it(house: House) -> None:
    """The host name is the instance's, the mark says whose it is and which call wanted it, the volume goes with it."""
    (name,) = house.grow()
    house.provision.run()
    mark = "ca:v1 cluster=c1 installation=inst1 group=h100 request=rpc-1"
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
    house.provision_until_quiet()
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
    house.provision_until_quiet()
    assert len(house.world.orders) == 7
    assert max(counts) <= 3


def test_a_group_whose_orders_hang_does_not_hold_up_another(make_house: MakeHouse) -> None:
    """F76: twenty wishes of A hang for a minute each; B's one starts in the next run."""
    pool = ThreadPoolExecutor(max_workers=4)
    house = make_house(parallel=4, executor=pool)
    release, b_done, hanging = Flag(), Flag(), Semaphore(0)

    def hang(order: Order, create: Callable[[], str]) -> str:
        if order.hostname.startswith("h100-"):
            hanging.release()
            release.wait(30)
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
        assert b_done.wait(30)
        assert hanging.acquire(timeout=30)
        assert hanging.acquire(timeout=30)
        assert not hanging.acquire(blocking=False)
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


def test_what_cannot_be_written_down_wakes_nothing(house: House) -> None:
    """It would find the same again at once, thousands of times a minute, with a line in the log each."""
    woken: list[None] = []
    house.provision.wake = lambda: woken.append(None)
    house.grow(2)
    house.trap.on_append = refuses_to_write
    house.provision.run()
    assert (woken, house.provision.in_flight, house.world.orders) == ([], 0, [])
    house.trap.on_append = lambda _: None
    house.provision.run()
    assert (len(woken), len(house.world.orders)) == (2, 2)


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
    house.provision_until_quiet()
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
