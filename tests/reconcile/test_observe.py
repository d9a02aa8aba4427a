from datetime import timedelta
from decimal import Decimal

from app.errors import Throttled

from .house import House
from .world import DOWN, ENDED, does_not_list

HOUR = timedelta(hours=1)


# --- what is there


def test_unchanged_machines_write_nothing_however_often_they_are_listed(house: House) -> None:
    """Ten thousand polled every ten seconds must not fill the log."""
    house.running(20)
    before = house.position()
    house.look(50)
    assert house.position() == before
    assert house.world.looks == []


def test_one_listing_a_run(house: House) -> None:
    """Of the 120 that Verda allows a minute six are used."""
    house.running(5)
    before = house.world.lists
    house.look(6)
    assert house.world.lists == before + 6


def test_a_new_status_is_told_once(house: House) -> None:
    """F52: `migrating` for ten minutes, then running again: still running for the autoscaler all along."""
    (name,) = house.running()
    house.world.change(name, "migrating")
    before = house.position()
    for _ in range(60):
        house.look()
        assert house.state(name) == "running"
    assert house.position() == before + 1
    house.world.change(name, "running")
    house.look()
    assert house.instance(name).machine_status == "running"
    assert house.target() == 1


def test_a_machine_under_a_word_nobody_knows_stays_what_it_was_for_ever(house: House) -> None:
    """F52: `hibernating_v2` for days: it exists, may bill, and is nobody's to kill."""
    (name,) = house.running()
    house.world.change(name, "hibernating_v2")
    house.look()
    house.clock.advance(timedelta(days=3))
    house.ticks(3)
    assert (house.state(name), house.target()) == ("running", 1)
    assert name in house.world.alive


def test_a_machine_switched_off_and_on_is_a_member_throughout(house: House) -> None:
    """F53: off for three hours, then on; it costs money and counts, until policy says otherwise."""
    (name,) = house.running()
    house.world.change(name, "offline")
    house.look()
    assert (house.state(name), house.target()) == ("stopped", 1)
    house.clock.advance(3 * HOUR)
    house.ticks(2)
    assert (house.state(name), house.target()) == ("stopped", 1)
    cost = house.instance(name).cost_until(house.now)
    assert cost is not None
    assert cost > Decimal("6.87")
    house.world.change(name, "running")
    house.look()
    assert (house.state(name), house.instance(name).stopped_at) == ("running", None)


def test_a_hibernated_machine_is_lost(house: House) -> None:
    """F53: Verda discontinues it and keeps the volumes: it is no node any more, and nothing is purged."""
    (name,) = house.running()
    house.world.change(name, ENDED)
    house.look(2)
    assert house.lost() == {name: "discontinued"}
    assert house.world.deletions == []


# --- an API in trouble


def test_throttling_changes_nothing_at_all(house: House) -> None:
    """F24: 429 for two minutes with wishes meanwhile: last snapshot stays, no outage, no loss, the wish is kept."""
    (old,) = house.running()
    house.world.always_list = does_not_list(Throttled("Rate limit", code="x", retry_after=timedelta(seconds=17)))
    before = house.position()
    house.look(12)
    assert house.position() == before
    (name,) = house.grow()
    house.world.always_list = lambda show: show()
    house.ticks(2)
    assert (house.state(old), house.state(name)) == ("running", "provisioning")
    assert "cloud.unreachable" not in house.types()


def test_an_outage_is_two_facts_and_changes_no_instance(house: House) -> None:
    """Reads go on, nothing is forgotten, and the log is not flooded."""
    names = house.running(5)
    house.world.always_list = does_not_list(DOWN)
    before = len(house.log)
    house.look(100)
    house.world.always_list = lambda show: show()
    house.look(3)
    assert [item.event.type for item in house.log[before:]] == ["cloud.unreachable", "cloud.reachable"]
    assert {house.state(name) for name in names} == {"running"}


def test_losses_during_an_outage_are_seen_after_it(house: House) -> None:
    """Misses count good lists only."""
    (name,) = house.running()
    house.world.vanish(name)
    house.look()
    house.world.on_list.extend([does_not_list(DOWN)] * 5)
    house.look(5)
    assert house.state(name) == "running"
    house.look()
    assert house.state(name) == "lost"
