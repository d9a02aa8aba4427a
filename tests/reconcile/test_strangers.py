from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from app.domain.instance.commands import CheckDeadlines
from app.domain.machine import Machine
from app.domain.offering import Contract
from app.domain.service import StartService
from app.errors import CloudError, OutcomeUnknown
from app.reconcile.jobs.observe import Observe

from .house import House, spec
from .world import DOWN, ENDED, does_not_list, does_not_look, lists_stale

UNREADABLE = OutcomeUnknown("1 of 12 entries cannot be read: no id", code="unreadable_answer", status=200)


# --- what is not in the books


def test_machines_made_since_an_older_backup_are_adopted(house: House) -> None:
    """With their group, price and state; the autoscaler sees them in its next list."""
    house.world.add(house.machine("h100-aaaaaaaa"))
    house.look()
    assert (house.state("h100-aaaaaaaa"), house.target()) == ("running", 1)
    assert house.instance("h100-aaaaaaaa").price_per_hour == Decimal("2.29")
    house.look(3)
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
    house.look(2)
    assert (house.state(name), house.target()) == ("lost", 0)
    house.world.add(machine)
    house.look(2)
    assert (house.state(name), house.target()) == ("running", 1)
    assert house.instance(name).cost is None


def test_a_stale_list_does_not_bring_a_lost_machine_back(house: House) -> None:
    """The direct look says that it is no more."""
    (name,) = house.running()
    shown = house.world.alive[name]
    house.world.change(name, ENDED)
    house.look(2)
    house.world.always_list = lists_stale(shown)
    house.look(3)
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
    house.look(3)
    assert house.position() == before


def test_the_contract_and_price_kept_are_those_of_the_machine(house: House) -> None:
    """F31: what was really bought, whatever the order was."""
    (name,) = house.grow()
    house.provision.run()
    machine = house.world.alive[name]
    changed = replace(machine, contract=Contract.SPOT, price_per_hour=Decimal("0.80"))
    house.world.records[machine.instance_id] = changed
    house.look()
    assert (house.instance(name).contract, house.instance(name).price_per_hour) == ("spot", Decimal("0.80"))


def test_deadlines_do_not_touch_what_was_just_adopted(house: House) -> None:
    """Old machines are not late machines."""
    house.world.add(house.machine("h100-aaaaaaaa", status="unknown", created_at=house.now - timedelta(days=9)))
    house.look()
    house.execute(CheckDeadlines(failed_expiry=timedelta(minutes=30)))
    assert house.state("h100-aaaaaaaa") == "provisioning"
