from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.domain.instance.commands import CheckDeadlines
from app.domain.instance.events import InstanceLost
from app.domain.machine import Machine
from app.domain.offering import Contract
from app.domain.service import StartService
from app.errors import CloudError, OutcomeUnknown, Throttled
from app.reconcile.jobs.observe import Observe

from .conftest import MakeHouse
from .house import House, spec
from .world import DOWN, ENDED, does_not_list, does_not_look, lists_only, lists_stale

UNREADABLE = OutcomeUnknown("1 of 12 entries cannot be read: no id", code="unreadable_answer", status=200)
HOUR = timedelta(hours=1)


def lost(house: House) -> dict[str, str]:
    """Which instances the log calls lost, and why."""
    return {item.event.instance: str(item.event.end) for item in house.log if isinstance(item.event, InstanceLost)}


def look(house: House, times: int = 1) -> None:
    """So many listings, ten seconds apart."""
    house.ticks(times, house.observe)


# --- what is there


def test_unchanged_machines_write_nothing_however_often_they_are_listed(house: House) -> None:
    """Ten thousand polled every ten seconds must not fill the log."""
    house.running(20)
    before = house.position()
    look(house, 50)
    assert house.position() == before
    assert house.world.looks == []


def test_one_listing_a_run(house: House) -> None:
    """Of the 120 that Verda allows a minute six are used."""
    house.running(5)
    before = house.world.lists
    look(house, 6)
    assert house.world.lists == before + 6


def test_a_new_status_is_told_once(house: House) -> None:
    """F52: `migrating` for ten minutes, then running again: still running for the autoscaler all along."""
    (name,) = house.running()
    house.world.change(name, "migrating")
    before = house.position()
    for _ in range(60):
        look(house)
        assert house.state(name) == "running"
    assert house.position() == before + 1
    house.world.change(name, "running")
    look(house)
    assert house.instance(name).machine_status == "running"
    assert house.target() == 1


def test_a_machine_under_a_word_nobody_knows_stays_what_it_was_for_ever(house: House) -> None:
    """F52: `hibernating_v2` for days: it exists, may bill, and is nobody's to kill."""
    (name,) = house.running()
    house.world.change(name, "hibernating_v2")
    look(house)
    house.clock.advance(timedelta(days=3))
    house.ticks(3)
    assert (house.state(name), house.target()) == ("running", 1)
    assert name in house.world.alive


def test_a_machine_switched_off_and_on_is_a_member_throughout(house: House) -> None:
    """F53: off for three hours, then on; it costs money and counts, until policy says otherwise."""
    (name,) = house.running()
    house.world.change(name, "offline")
    look(house)
    assert (house.state(name), house.target()) == ("stopped", 1)
    house.clock.advance(3 * HOUR)
    house.ticks(2)
    assert (house.state(name), house.target()) == ("stopped", 1)
    cost = house.instance(name).cost_until(house.now)
    assert cost is not None
    assert cost > Decimal("6.87")
    house.world.change(name, "running")
    look(house)
    assert (house.state(name), house.instance(name).stopped_at) == ("running", None)


def test_a_hibernated_machine_is_lost(house: House) -> None:
    """F53: Verda discontinues it and keeps the volumes: it is no node any more, and nothing is purged."""
    (name,) = house.running()
    house.world.change(name, ENDED)
    look(house, 2)
    assert lost(house) == {name: "discontinued"}
    assert house.world.deletions == []


# --- what is missing


def test_an_evicted_spot_machine_is_lost_within_two_listings(house: House) -> None:
    """F27: its time, its cost at the spot price, the target one lower, and no replacement of our own."""
    names = house.running(3, "spot")
    house.clock.advance(HOUR - timedelta(seconds=20))
    house.world.change(names[1], ENDED)
    look(house, 2)
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
    look(house)
    assert house.state(name) == "running"
    look(house)
    assert lost(house) == {name: "evicted"}


def test_a_machine_that_the_api_no_longer_knows_has_vanished(house: House) -> None:
    """F27, the variant: 404 on the direct look."""
    (name,) = house.running(1, "spot")
    house.world.vanish(name)
    look(house)
    assert house.state(name) == "running"
    look(house)
    assert lost(house) == {name: "vanished"}


def test_one_missing_listing_is_no_evidence(house: House) -> None:
    """Not even a look-up is spent on it."""
    (name,) = house.running()
    house.world.on_list.append(lists_only())
    look(house)
    look(house)
    house.world.on_list.append(lists_only())
    look(house)
    assert (house.state(name), house.world.looks) == ("running", [])


def test_missing_from_many_listings_is_no_evidence_if_the_machine_answers(house: House) -> None:
    """Only the API's own word that it is no more ends an instance."""
    (name,) = house.running()
    house.world.always_list = lists_only()
    look(house, 10)
    assert house.state(name) == "running"
    assert house.world.looks


@pytest.mark.parametrize("error", [DOWN, UNREADABLE, Throttled("slow", code="rate_limit_exceeded")])
def test_a_look_up_that_fails_is_no_verdict(house: House, error: CloudError) -> None:
    """It is asked again in the next round."""
    (name,) = house.running()
    house.world.vanish(name)
    house.world.on_look.extend([does_not_look(error)] * 3)
    look(house, 4)
    assert house.state(name) == "running"
    look(house)
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
    look(house, 9)
    assert house.state(name) == "provisioning"
    look(house, 2)
    assert lost(house) == {name: "evicted"}


# --- lists that lie


def test_one_empty_list_changes_nothing(house: House) -> None:
    """F25: twelve, none, twelve."""
    names = house.running(12)
    before = house.position()
    house.world.on_list.append(lists_only())
    look(house, 3)
    assert {house.state(name) for name in names} == {"running"}
    assert (house.position(), house.world.looks) == (before, [])


def test_a_page_of_a_list_changes_nothing(house: House) -> None:
    """F25: seven of twelve, once."""
    names = house.running(12)
    before = house.position()
    house.world.on_list.append(lists_only(*names[:7]))
    look(house, 3)
    assert (house.position(), house.world.looks) == (before, [])


def test_a_list_that_cannot_be_read_whole_changes_nothing_but_reachability(house: House) -> None:
    """F25: one of twelve entries lacks its id: who knows whose it is?"""
    names = house.running(12)
    house.world.on_list.extend([does_not_list(UNREADABLE)] * 5)
    look(house, 5)
    assert {house.state(name) for name in names} == {"running"}
    assert house.types()[-1] == "cloud.unreachable"
    assert house.types().count("cloud.unreachable") == 1
    look(house)
    assert house.types()[-1] == "cloud.reachable"


def test_many_missing_at_once_are_not_believed_at_first(house: House) -> None:
    """More than a fifth, and at least three: hold, raise the alarm once, and believe it only after several more."""
    names = house.running(10)
    for name in names[:3]:
        house.world.vanish(name)
    with capture_logs() as logs:
        look(house, 4)
    assert lost(house) == {}
    assert house.world.looks == []
    (alarm,) = [line for line in logs if line["log_level"] == "error"]
    assert (alarm["event"], alarm["missing"], alarm["live"]) == (
        "many machines missing at once, not believed yet",
        3,
        10,
    )
    look(house)
    assert set(lost(house)) == set(names[:3])
    assert house.target() == 7


def test_all_machines_gone_for_want_of_money_are_believed_in_the_end(house: House) -> None:
    """An empty account discontinues everything at once: no create loop, one loss each."""
    names = house.running(4)
    for name in names:
        house.world.change(name, ENDED)
    look(house, 4)
    assert lost(house) == {}
    look(house)
    assert lost(house) == dict.fromkeys(names, "discontinued")
    house.ticks(3)
    assert len(house.world.orders) == 4


@pytest.mark.parametrize(("total", "missing"), [(10, 2), (15, 3), (2, 2)])
def test_few_missing_at_once_are_believed_after_two_listings(house: House, total: int, missing: int) -> None:
    """Two are never many, and three of fifteen are exactly a fifth."""
    names = house.running(total)
    for name in names[:missing]:
        house.world.vanish(name)
    look(house, 2)
    assert set(lost(house)) == set(names[:missing])


def test_the_brake_is_the_operator_s(make_house: MakeHouse) -> None:
    """At 100 % it never holds."""
    house = make_house(loss_brake=1.0)
    names = house.running(4)
    for name in names:
        house.world.vanish(name)
    look(house, 2)
    assert set(lost(house)) == set(names)


def test_a_mass_deletion_of_our_own_is_not_held(house: House) -> None:
    """We asked for it."""
    names = house.running(10)
    house.delete(*names)
    house.terminate.run()
    look(house)
    assert {house.state(name) for name in names} == {"gone"}


def test_look_ups_are_spread_over_rounds(make_house: MakeHouse) -> None:
    """Twenty a run: the request budget is shared with everything else."""
    house = make_house(loss_brake=1.0)
    house.configure(spec(max_size=100))
    names = house.running(25)
    for name in names:
        house.world.vanish(name)
    look(house, 2)
    assert (len(lost(house)), len(house.world.looks)) == (20, 20)
    look(house)
    assert (len(lost(house)), len(house.world.looks)) == (25, 25)


# --- an API in trouble


def test_throttling_changes_nothing_at_all(house: House) -> None:
    """F24: 429 for two minutes with wishes meanwhile: last snapshot stays, no outage, no loss, the wish is kept."""
    (old,) = house.running()
    house.world.always_list = does_not_list(Throttled("Rate limit", code="x", retry_after=timedelta(seconds=17)))
    before = house.position()
    look(house, 12)
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
    look(house, 100)
    house.world.always_list = lambda show: show()
    look(house, 3)
    assert [item.event.type for item in house.log[before:]] == ["cloud.unreachable", "cloud.reachable"]
    assert {house.state(name) for name in names} == {"running"}


def test_losses_during_an_outage_are_seen_after_it(house: House) -> None:
    """Misses count good lists only."""
    (name,) = house.running()
    house.world.vanish(name)
    look(house)
    house.world.on_list.extend([does_not_list(DOWN)] * 5)
    look(house, 5)
    assert house.state(name) == "running"
    look(house)
    assert house.state(name) == "lost"


# --- what is not in the books


def test_machines_made_since_an_older_backup_are_adopted(house: House) -> None:
    """With their group, price and state; the autoscaler sees them in its next list."""
    house.world.add(house.machine("h100-aaaaaaaa"))
    look(house)
    assert (house.state("h100-aaaaaaaa"), house.target()) == ("running", 1)
    assert house.instance("h100-aaaaaaaa").price_per_hour == Decimal("2.29")
    look(house, 3)
    assert house.told("h100-aaaaaaaa") == ["adopted", "state-observed"]


def test_machines_of_others_are_left_alone(house: House) -> None:
    """F13: unmarked, another cluster's, another installation's, a human's with our mark pasted in."""
    others = (
        house.machine("web-1", "id-1", description="a web server"),
        house.machine("h100-zzzzzzzz", "id-2", description="ca:v1 cluster=c10 installation=inst10 group=h100"),
        house.machine("h100-yyyyyyyy", "id-3", description="ca:v1 cluster=c1 installation=inst2 group=h100"),
        house.machine("workstation", "id-4", description="ca:v1 cluster=c1 installation=inst1 group=h100"),
    )
    for machine in others:
        house.world.add(machine)
    house.ticks(5)
    assert set(house.world.alive) == {machine.hostname for machine in others}
    assert house.target() == 0
    assert set(house.books.cloud.orphans) == {"id-3", "id-4"}
    assert house.types().count("cloud.orphan-detected") == 2


def test_two_machines_of_one_name_become_one(house: House) -> None:
    """Keep the first, delete the other."""
    house.world.add(house.machine("h100-aaaaaaaa", "id-second", created_at=house.now + timedelta(seconds=1)))
    house.world.add(house.machine("h100-aaaaaaaa", "id-first", created_at=house.now))
    house.ticks(4)
    assert house.instance("h100-aaaaaaaa").instance_id == "id-first"
    assert house.world.alive["h100-aaaaaaaa"].instance_id == "id-first"
    assert not house.books.cloud.surplus


def test_a_stale_list_does_not_make_a_deleted_machine_too_many(house: House) -> None:
    """It shows what is gone; the direct look knows better."""
    (name,) = house.running()
    shown = house.world.alive[name]
    house.delete(name)
    house.ticks(3)
    assert house.state(name) == "gone"
    house.world.always_list = lists_stale(shown)
    house.ticks(5)
    assert "cloud.duplicate-instance-detected" not in house.types()
    assert len(house.world.deletions) == 1


def test_a_deleted_machine_that_is_really_back_is_deleted_again(house: House) -> None:
    """It bills, and nobody wants it."""
    (name,) = house.running()
    machine = house.world.alive[name]
    house.delete(name)
    house.ticks(3)
    house.world.add(machine)
    house.ticks(4)
    assert house.world.alive == {}
    assert house.state(name) == "gone"


@pytest.mark.parametrize("error", [DOWN, UNREADABLE])
def test_nothing_is_deleted_as_too_many_while_it_cannot_be_looked_at(house: House, error: CloudError) -> None:
    """A list alone deletes nobody."""
    house.running()
    first = next(iter(house.world.alive.values()))
    other = replace(first, instance_id="id-other", created_at=house.now)
    house.world.always_list = lists_stale(first, other)
    house.world.always_look = does_not_look(error)
    house.ticks(5)
    assert house.world.deletions == []


# --- what comes back


def test_a_machine_believed_lost_that_is_listed_again_is_taken_back(house: House) -> None:
    """The API forgot it for a while; it runs, costs money and may carry pods."""
    (name,) = house.running()
    machine = house.world.alive[name]
    house.world.vanish(name)
    look(house, 2)
    assert (house.state(name), house.target()) == ("lost", 0)
    house.world.add(machine)
    look(house, 2)
    assert (house.state(name), house.target()) == ("running", 1)
    assert house.instance(name).cost is None


def test_a_stale_list_does_not_bring_a_lost_machine_back(house: House) -> None:
    """The direct look says that it is no more."""
    (name,) = house.running()
    shown = house.world.alive[name]
    house.world.change(name, ENDED)
    look(house, 2)
    house.world.always_list = lists_stale(shown)
    look(house, 3)
    assert house.state(name) == "lost"


def test_a_machine_that_comes_back_after_its_instance_was_forgotten_does_not_stop_the_job(house: House) -> None:
    """Days later, out of memory, under a stream that has begun long ago: taken back if lost, deleted if deleted."""
    kept, deleted = house.running(2)
    machines = dict(house.world.alive)
    house.world.vanish(kept)
    house.delete(deleted)
    house.ticks(3)
    assert (house.state(kept), house.state(deleted)) == ("lost", "gone")
    house.clock.advance(timedelta(days=3))
    house.housekeeping.run()
    assert not house.books.instances
    for machine in machines.values():
        house.world.add(machine)
    house.ticks(4)
    assert (house.state(kept), house.target()) == ("running", 1)
    assert set(house.world.alive) == {kept}


# --- the first look of a new database


def _new(path: Path, world_of: House) -> House:
    """A new database beside the same cloud, as if the old one were lost."""
    house = House(path=path, clock=world_of.clock)
    house.world = world_of.world
    house.restart()
    house.execute(
        StartService(installation_id="inst2", version="1", host="pod-0", pid=1, sqlite_version="3", backend="simulator")
    )
    house.configure(spec())
    house.catalog.run()
    return house


def test_a_lost_database_serves_only_after_its_machines_were_claimed(house: House, tmp_path: Path) -> None:
    """F51: down for three minutes, then five machines wait; with a claim they are back in their groups."""
    house.configure(spec(), spec("old"))
    names = (*house.running(4), *house.running(1, "old"))
    fresh = _new(tmp_path / "fresh.db", house)
    try:
        fresh.world.on_list.extend([does_not_list(DOWN)] * 18)
        fresh.ticks(18, fresh.observe)
        assert not fresh.has_seen_the_cloud()
        fresh.ticks(3, fresh.observe)
        assert not fresh.has_seen_the_cloud()
        assert len(fresh.books.cloud.orphans) == 5
        assert fresh.world.deletions == []
        fresh.restart()
        fresh.observe = Observe(bench=fresh.observe.bench, loss_brake=0.2, claim=True)
        fresh.tick(fresh.observe)
        assert fresh.has_seen_the_cloud()
        assert {fresh.state(name) for name in names} == {"running"}
        assert (fresh.target(), fresh.target("old")) == (4, 1)
        assert fresh.books.groups["old"].retired
        assert [group.name for group in fresh.books.served_groups] == ["h100", "old"]
    finally:
        fresh.close()


def test_claimed_machines_can_be_deleted_like_our_own(house: House, tmp_path: Path) -> None:
    """Their mark names the predecessor; the log says that they are ours."""
    (name,) = house.running()
    fresh = _new(tmp_path / "fresh.db", house)
    try:
        fresh.observe = Observe(bench=fresh.observe.bench, loss_brake=0.2, claim=True)
        fresh.tick()
        fresh.delete(name)
        fresh.ticks(3)
        assert (fresh.state(name), fresh.world.alive) == ("gone", {})
    finally:
        fresh.close()


def _in_disorder(machines: Sequence[Machine]) -> Sequence[Machine]:
    return sorted(machines, key=lambda machine: machine.instance_id, reverse=True)


def test_the_order_of_a_list_means_nothing(house: House) -> None:
    """Verda promises none."""
    house.running(5)
    before = house.position()
    house.world.always_list = lambda show: _in_disorder(show())
    look(house, 3)
    assert house.position() == before


def test_the_contract_and_price_kept_are_those_of_the_machine(house: House) -> None:
    """F31: what was really bought, whatever the order was."""
    (name,) = house.grow()
    house.provision.run()
    machine = house.world.alive[name]
    changed = replace(machine, contract=Contract.SPOT, price_per_hour=Decimal("0.80"))
    house.world.records[machine.instance_id] = changed
    look(house)
    assert (house.instance(name).contract, house.instance(name).price_per_hour) == ("spot", Decimal("0.80"))


def test_deadlines_do_not_touch_what_was_just_adopted(house: House) -> None:
    """Old machines are not late machines."""
    house.world.add(house.machine("h100-aaaaaaaa", status="unknown", created_at=house.now - timedelta(days=9)))
    look(house)
    house.execute(CheckDeadlines(failed_expiry=timedelta(minutes=30)))
    assert house.state("h100-aaaaaaaa") == "provisioning"
