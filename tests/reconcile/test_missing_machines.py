from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from structlog.testing import capture_logs

from app.errors import CloudError, OutcomeUnknown, StoreUnavailable, Throttled

from .conftest import MakeHouse
from .house import House, refuses_to_write, spec
from .world import DOWN, ENDED, does_not_list, does_not_look, lists_only, lists_stale

UNREADABLE = OutcomeUnknown("1 of 12 entries cannot be read: no id", code="unreadable_answer", status=200)
HOUR = timedelta(hours=1)


# --- what is missing


def test_an_evicted_spot_machine_is_lost_within_two_listings(house: House) -> None:
    """F27: its time, its cost at the spot price, the target one lower, and no replacement of our own."""
    names = house.running(3, "spot")
    house.clock.advance(HOUR - timedelta(seconds=20))
    house.world.change(names[1], ENDED)
    house.look(2)
    gone = house.instance(names[1])
    assert (gone.state, gone.end_reason, gone.cost) == ("lost", "evicted", Decimal("0.803726"))
    assert house.target("spot") == 2
    assert [instance.name for instance in house.books.members("spot").listed] == [names[0], names[2]]
    house.ticks(5)
    assert len(house.world.orders) == 3


def test_a_machine_listed_as_discontinued_is_lost_as_one_that_is_missing(house: House) -> None:
    """F27: whichever way the API shows it."""
    (name,) = house.running(1, "spot")
    dead = replace(house.world.alive[name], status=ENDED)
    house.world.change(name, ENDED)
    house.world.always_list = lists_stale(dead)
    house.look()
    assert house.state(name) == "running"
    house.look()
    assert house.lost() == {name: "evicted"}


def test_a_machine_that_the_api_no_longer_knows_has_vanished(house: House) -> None:
    """F27, the variant: 404 on the direct look."""
    (name,) = house.running(1, "spot")
    house.world.vanish(name)
    house.look()
    assert house.state(name) == "running"
    house.look()
    assert house.lost() == {name: "vanished"}


def test_one_missing_listing_is_no_evidence(house: House) -> None:
    """Not even a look-up is spent on it."""
    (name,) = house.running()
    house.world.on_list.append(lists_only())
    house.look()
    house.look()
    house.world.on_list.append(lists_only())
    house.look()
    assert (house.state(name), house.world.looks) == ("running", [])


def test_a_machine_that_was_listed_is_not_missing_even_if_the_disk_was_full_then(house: House) -> None:
    """Absence counts in listings in a row, and a listing counts whatever becomes of what is written about it."""
    (name,) = house.running()
    house.world.on_list.append(lists_only())
    house.look()
    house.world.change(name, "migrating")
    house.trap.on_append = refuses_to_write
    with pytest.raises(StoreUnavailable):
        house.observe.run()
    house.trap.on_append = lambda _: None
    house.world.change(name, ENDED)
    house.look()
    assert house.lost() == {}
    house.look()
    assert set(house.lost()) == {name}


def test_missing_from_many_listings_is_no_evidence_if_the_machine_answers(house: House) -> None:
    """Only the API's own word that it is no more ends an instance."""
    (name,) = house.running()
    house.world.always_list = lists_only()
    house.look(10)
    assert house.state(name) == "running"
    assert house.world.looks


@pytest.mark.parametrize("error", [DOWN, UNREADABLE, Throttled("slow", code="rate_limit_exceeded")])
def test_a_look_up_that_fails_is_no_verdict(house: House, error: CloudError) -> None:
    """It is asked again in the next round."""
    (name,) = house.running()
    house.world.vanish(name)
    house.world.on_look.extend([does_not_look(error)] * 3)
    house.look(4)
    assert house.state(name) == "running"
    house.look()
    assert house.state(name) == "lost"


def test_a_young_machine_that_the_list_does_not_show_yet_is_not_missed(house: House) -> None:
    """F48: the id is known, the list lags for 90 s, the direct look finds nothing for 10 s: creating throughout."""
    (name,) = house.grow()
    house.provision.run()
    house.world.always_list = lists_only()
    house.world.on_look.append(lambda _look: None)
    for _ in range(10):
        house.tick()
        assert house.state(name) == "provisioning"
    house.world.always_list = lambda show: show()
    house.world.boot()
    house.ticks(3)
    assert house.state(name) == "running"
    assert len(house.world.orders) == 1


def test_a_machine_that_never_appears_and_does_not_exist_is_lost_after_the_lag(house: House) -> None:
    """Evicted seconds after its creation, before any listing."""
    (name,) = house.grow(1, "spot")
    house.provision.run()
    house.world.change(name, ENDED)
    house.look(9)
    assert house.state(name) == "provisioning"
    house.look(2)
    assert house.lost() == {name: "evicted"}


# --- lists that lie


def test_one_empty_list_changes_nothing(house: House) -> None:
    """F25: twelve, none, twelve."""
    names = house.running(12)
    before = house.position()
    house.world.on_list.append(lists_only())
    house.look(3)
    assert {house.state(name) for name in names} == {"running"}
    assert (house.position(), house.world.looks) == (before, [])


def test_a_page_of_a_list_changes_nothing(house: House) -> None:
    """F25: seven of twelve, once."""
    names = house.running(12)
    before = house.position()
    house.world.on_list.append(lists_only(*names[:7]))
    house.look(3)
    assert (house.position(), house.world.looks) == (before, [])


def test_a_list_that_cannot_be_read_whole_changes_nothing_but_reachability(house: House) -> None:
    """F25: one of twelve entries lacks its id: who knows whose it is?"""
    names = house.running(12)
    house.world.on_list.extend([does_not_list(UNREADABLE)] * 5)
    house.look(5)
    assert {house.state(name) for name in names} == {"running"}
    assert house.types()[-1] == "cloud.unreachable"
    assert house.types().count("cloud.unreachable") == 1
    house.look()
    assert house.types()[-1] == "cloud.reachable"


def test_many_missing_at_once_are_not_believed_at_first(house: House) -> None:
    """More than a fifth, and at least three: hold, raise the alarm once, and believe it only after several more."""
    names = house.running(10)
    for name in names[:3]:
        house.world.vanish(name)
    with capture_logs() as logs:
        house.look(4)
    assert house.lost() == {}
    assert house.world.looks == []
    (alarm,) = [line for line in logs if line["log_level"] == "error"]
    assert (alarm["event"], alarm["missing"], alarm["live"]) == (
        "many machines missing at once, not believed yet",
        3,
        10,
    )
    house.look()
    assert set(house.lost()) == set(names[:3])
    assert house.target() == 7


def test_all_machines_gone_for_want_of_money_are_believed_in_the_end(house: House) -> None:
    """An empty account discontinues everything at once: no create loop, one loss each."""
    names = house.running(4)
    for name in names:
        house.world.change(name, ENDED)
    house.look(4)
    assert house.lost() == {}
    house.look()
    assert house.lost() == dict.fromkeys(names, "discontinued")
    house.ticks(3)
    assert len(house.world.orders) == 4


@pytest.mark.parametrize(("total", "missing"), [(10, 2), (15, 3), (2, 2)])
def test_few_missing_at_once_are_believed_after_two_listings(house: House, total: int, missing: int) -> None:
    """Two are never many, and three of fifteen are exactly a fifth."""
    names = house.running(total)
    for name in names[:missing]:
        house.world.vanish(name)
    house.look(2)
    assert set(house.lost()) == set(names[:missing])


def test_the_brake_is_the_operator_s(make_house: MakeHouse) -> None:
    """At 100 % it never holds."""
    house = make_house(loss_brake=1.0)
    names = house.running(4)
    for name in names:
        house.world.vanish(name)
    house.look(2)
    assert set(house.lost()) == set(names)


def test_a_mass_deletion_of_our_own_is_not_held(house: House) -> None:
    """We asked for it."""
    names = house.running(10)
    house.delete(*names)
    house.terminate.run()
    house.look()
    assert {house.state(name) for name in names} == {"gone"}


def test_look_ups_are_spread_over_rounds(make_house: MakeHouse) -> None:
    """Twenty a run: the request budget is shared with everything else."""
    house = make_house(loss_brake=1.0)
    house.configure(spec(max_size=100))
    names = house.running(25)
    for name in names:
        house.world.vanish(name)
    house.look(2)
    assert (len(house.lost()), len(house.world.looks)) == (20, 20)
    house.look()
    assert (len(house.lost()), len(house.world.looks)) == (25, 25)
