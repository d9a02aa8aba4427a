from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from app.cloud.port import DeletionResult
from app.domain.envelope import Event, Recorded
from app.domain.instance.events import InstanceCreated
from app.domain.machine import Order
from app.errors import StoreUnavailable

from .house import House, refuses_to_write
from .world import (
    BUSY,
    DOWN,
    TIMEOUT,
    answers,
    does_not_look,
    lists_only,
    lists_stale,
    makes_and,
    refuses,
)

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


def test_a_machine_in_doubt_that_was_listed_is_not_ruled_out_even_if_the_disk_was_full_then(house: House) -> None:
    """Twice unseen, seen, unseen: beside the machine that is there another one would be bought."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.clock.advance(timedelta(minutes=2))
    house.world.on_list.extend([lists_only(), lists_only()])
    house.look(2)
    house.trap.on_append = refuses_to_write
    with pytest.raises(StoreUnavailable):
        house.observe.run()
    house.trap.on_append = lambda _: None
    house.world.on_list.append(lists_only())
    house.look()
    assert house.state(name) == "submitting"
    house.ticks(2)
    assert (house.state(name), len(house.world.orders)) == ("provisioning", 1)


def test_lists_that_lack_machines_which_live_rule_nothing_out(house: House) -> None:
    """F25: for minutes every list is empty, while machines that it lacks answer to their ids."""
    house.running(2)
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.always_list = lambda _show: ()
    house.ticks(30, house.observe, house.provision)
    assert (house.state(name), len(house.world.orders)) == ("submitting", 3)
    house.world.always_list = lambda show: show()
    house.ticks(1)
    assert (house.state(name), len(house.world.orders)) == ("provisioning", 3)
    assert house.lost() == {}


def test_a_machine_that_is_gone_does_not_keep_another_order_in_doubt(house: House) -> None:
    """Its own end is proven by its id, and then lists are complete again."""
    (gone,) = house.running()
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.vanish(gone)
    house.ticks(13)
    assert house.state(gone) == "lost"
    assert (house.state(name), len(house.world.orders)) == ("provisioning", 3)


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


def test_what_an_earlier_order_made_is_not_taken_for_the_next_one_however_old_the_list(house: House) -> None:
    """It was never placed and is deleted, and a stale list shows it as it was before."""
    (name,) = house.grow()
    house.provision.run()
    house.tick()
    was = house.world.alive[name]
    house.world.change(name, "no_capacity")
    house.world.on_create.append(refuses(TIMEOUT))
    house.ticks(2)
    assert (house.state(name), len(house.world.orders), house.world.alive) == ("submitting", 2, {})
    house.world.on_list.extend([lists_stale(was), lists_stale(was)])
    house.ticks(2)
    assert (house.state(name), house.instance(name).instance_id) == ("submitting", None)
    house.ticks(12)
    assert (house.state(name), house.instance(name).instance_id) == ("provisioning", "id-0002")


def test_what_an_earlier_order_made_is_not_taken_for_the_next_one_while_it_is_being_deleted(house: House) -> None:
    """The API denied its id for a moment, so that it counted as gone, and shows it again."""
    (name,) = house.grow()
    house.provision.run()
    house.tick()
    house.world.change(name, "no_capacity")
    house.world.on_create.append(refuses(TIMEOUT))
    house.observe.run()
    house.world.on_look.append(lambda _look: None)
    house.tick(house.terminate, house.provision)
    assert (house.state(name), len(house.books.cloud.surplus)) == ("submitting", 0)
    house.world.change(name, "deleting")
    house.ticks(3, house.observe)
    assert (house.state(name), house.instance(name).instance_id) == ("submitting", None)
    assert house.instance(name).earlier_ids == ("id-0001",)


def test_a_machine_found_for_an_order_is_taken_only_when_it_answers_to_its_id(house: House) -> None:
    """Until it can be asked for, the order stays in doubt, and nothing is ordered beside it."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.on_look.extend([does_not_look(DOWN), does_not_look(BUSY), lambda _look: None])
    house.ticks(3)
    assert (house.state(name), len(house.world.orders)) == ("submitting", 1)
    house.ticks(1)
    assert (house.state(name), house.instance(name).instance_id) == ("provisioning", "id-0001")
    assert (house.world.looks, len(house.world.orders)) == (["id-0001"] * 4, 1)


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


@pytest.mark.parametrize(("deletion", "restart"), [(at, at + later) for at in range(6) for later in (0, 1)])
def test_increases_and_deletions_crossing_at_every_step_end_with_the_right_machines(
    house: House, deletion: int, restart: int
) -> None:
    """F50: n1 goes, two new ones come, with a restart at any step; n1 is never re-created."""
    (n1,) = house.running()
    added: list[str] = []
    steps: Sequence[Callable[[], object]] = (
        lambda: added.extend(house.grow(2)),
        lambda: house.tick(house.provision),
        lambda: house.tick(house.terminate),
        house.look,
        house.world.boot,
        house.look,
    )
    for number, step in enumerate(steps):
        if number == deletion:
            house.delete(n1)
        if number == restart:
            house.restart()
        step()
    house.ticks(4)
    house.world.boot()
    house.ticks(2)
    assert house.state(n1) == "gone"
    assert set(house.world.alive) == set(added)
    assert {house.state(name) for name in added} == {"running"}
    assert house.target() == 2
    assert [order.hostname for order in house.world.orders].count(n1) == 1
