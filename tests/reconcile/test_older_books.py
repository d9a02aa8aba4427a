"""Books that are older than the truth, because a copy was put back: nothing is bought twice, nothing is lost."""

import shutil
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from app.domain.cloud import OrphanOutcome, OrphanSettled
from app.domain.ownership import OrphanPolicy
from app.domain.service import BooksReverted, StartService

from .house import House
from .world import DOWN, TIMEOUT, does_not_list, makes_and, refuses


class Past:
    """What a house's database was at some moment."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._directory = house.path.with_name("past")
        self._directory.mkdir()
        house.close()
        self._copy(house.path.parent, self._directory)
        house.open()

    def comes_back(self, *, with_lock_file: bool) -> None:
        """A snapshot of the volume brings the lock file of its moment; a person copies the database alone."""
        self._house.close()
        if with_lock_file:
            self._copy(self._directory, self._house.path.parent)
        else:
            shutil.copy(self._directory / self._house.path.name, self._house.path)
        self._house.open()
        self._house.execute(
            StartService(
                installation_id="x",
                version="1",
                host="pod-0",
                pid=1,
                sqlite_version="3",
                backend="simulator",
                once_reached=self._house.ledger.once_reached,
            )
        )

    def _copy(self, source: Path, target: Path) -> None:
        for file in source.glob(f"{self._house.path.name}*"):
            shutil.copy(file, target)


def evidence(house: House) -> list[str]:
    """How it was noticed, each time."""
    return [str(item.event.evidence) for item in house.log if isinstance(item.event, BooksReverted)]


BOTH = pytest.mark.parametrize("snapshot", [True, False], ids=["snapshot of the volume", "copied by hand"])


@BOTH
def test_machines_made_since_are_taken_in_and_those_gone_since_are_lost(house: House, *, snapshot: bool) -> None:
    """§7: the books catch up with the cloud; not one order, not one deletion."""
    kept, left = house.running(2)
    past = Past(house)
    (made,) = house.running()
    house.delete(left)
    house.ticks(3)
    assert set(house.world.alive) == {kept, made}
    past.comes_back(with_lock_file=snapshot)
    orders, deletions = len(house.world.orders), len(house.world.deletions)
    house.ticks(4)
    assert {name: house.state(name) for name in (kept, left, made)} == {
        kept: "running",
        left: "lost",
        made: "running",
    }
    assert house.target() == 2
    assert set(house.world.alive) == {kept, made}
    assert (len(house.world.orders), len(house.world.deletions)) == (orders, deletions)
    assert len(evidence(house)) == 1


@BOTH
def test_a_wish_that_was_bought_since_is_not_bought_again(house: House, *, snapshot: bool) -> None:
    """Its machine runs and may carry pods: it is taken back under its own name."""
    (name,) = house.grow()
    past = Past(house)
    house.ticks(2)
    house.world.boot()
    house.tick()
    past.comes_back(with_lock_file=snapshot)
    house.ticks(4)
    assert len(house.world.orders) == 1
    assert house.world.deletions == []
    assert (house.state(name), house.target()) == ("running", 1)


@BOTH
def test_a_wish_that_was_given_back_since_is_not_bought(house: House, *, snapshot: bool) -> None:
    """It was bought, used and deleted; only the cloud's other machines show that time has passed."""
    (stale,) = house.grow()
    past = Past(house)
    house.ticks(2)
    house.delete(stale)
    house.ticks(3)
    (made,) = house.running()
    past.comes_back(with_lock_file=snapshot)
    orders = len(house.world.orders)
    house.ticks(4)
    assert len(house.world.orders) == orders
    assert house.state(stale) == "cancelled"
    assert house.told(stale)[-1] == "cancelled"
    assert (house.state(made), house.target()) == ("running", 1)


def test_an_order_under_way_in_the_backup_is_looked_for_and_not_repeated(house: House) -> None:
    """It came to nothing, was ordered again, used and given back; whether anybody wants it again nobody knows."""
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    assert house.state(name) == "submitting"
    past = Past(house)
    house.ticks(15)
    house.delete(name)
    house.ticks(3)
    assert (house.state(name), len(house.world.orders)) == ("gone", 2)
    past.comes_back(with_lock_file=False)
    house.ticks(15)
    assert house.state(name) == "cancelled"
    assert len(house.world.orders) == 2


def test_an_order_under_way_in_the_backup_whose_machine_exists_is_kept(house: House) -> None:
    """Found by its name, as after any crash."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    past = Past(house)
    house.tick()
    past.comes_back(with_lock_file=False)
    house.world.boot()
    house.ticks(3)
    assert (house.state(name), len(house.world.orders)) == ("running", 1)


def test_a_wish_dropped_with_the_old_books_and_given_back_stays_dropped(house: House) -> None:
    """Once the autoscaler has been told that it is deleted, its machine goes if it is ever seen."""
    (name,) = house.grow()
    past = Past(house)
    house.ticks(2)
    past.comes_back(with_lock_file=False)
    assert house.state(name) == "cancelled"
    house.delete(name)
    house.ticks(4)
    assert house.world.alive == {}
    assert house.state(name) == "cancelled"


def test_wishes_from_before_the_start_wait_for_one_look_at_the_cloud(house: House) -> None:
    """Books are believed once they were held against the cloud; what is wished for meanwhile is not held up."""
    (old,) = house.grow()
    house.restart()
    (new,) = house.grow()
    house.world.on_list.extend([does_not_list(DOWN)] * 2)
    house.tick(house.observe, house.provision)
    assert [order.hostname for order in house.world.orders] == [new]
    house.tick(house.observe, house.provision)
    house.tick(house.observe, house.provision)
    assert [order.hostname for order in house.world.orders] == [new, old]
    assert evidence(house) == []


def test_an_ordinary_restart_drops_nothing(house: House) -> None:
    """Machines run, wishes wait, the process is killed: that is no older book."""
    house.running(2)
    (name,) = house.grow()
    house.restart()
    house.ticks(2)
    assert house.state(name) == "provisioning"
    assert evidence(house) == []


# --- what becomes of machines that the books do not know


def test_by_policy_report_they_are_left_alone_and_told_with_their_price(house: House) -> None:
    """The operator decides; the metric and `v_events` say what it costs until then."""
    house.observe.orphans = OrphanPolicy.REPORT
    machine = house.world.add(house.machine("h100-aaaaaaaa"))
    house.ticks(100)
    assert house.world.deletions == []
    assert house.target() == 0
    orphan = house.books.cloud.orphans[machine.instance_id]
    assert (orphan.hostname, orphan.price_per_hour) == ("h100-aaaaaaaa", Decimal("2.29"))
    assert orphan.reason == "ours by its mark and name, and not in the books (orphans: report)"
    assert house.types().count("cloud.orphan-detected") == 1


def test_by_policy_delete_they_go_after_the_grace_with_their_disk(house: House) -> None:
    """Ten minutes in which somebody may say no: sixty listings; then a look, a deletion, and what it all cost."""
    house.observe.orphans = OrphanPolicy.DELETE
    house.world.add(house.machine("h100-aaaaaaaa", os_volume_id="v-1", volume_ids=("v-1", "data")))
    house.ticks(60)
    assert house.world.deletions == []
    house.ticks(4)
    assert [(one.instance_id, one.volume_ids) for one in house.world.deletions] == [("id-by-hand", ("v-1",))]
    (settled,) = [item.event for item in house.log if isinstance(item.event, OrphanSettled)]
    assert settled.outcome is OrphanOutcome.DELETED
    # Seen at 0 s, unwanted at 600 s, deleted at 610 s, looked up after a pause of 15 s at 630 s; 2.29 an hour.
    assert settled.cost == Decimal("0.400750")
    assert not house.books.cloud.orphans
    assert not house.books.cloud.surplus


def test_by_policy_delete_a_stale_list_deletes_nobody(house: House) -> None:
    """The direct look decides, as always."""
    house.observe.orphans = OrphanPolicy.DELETE
    machine = house.world.add(house.machine("h100-aaaaaaaa"))
    house.look()
    house.world.records.clear()
    house.world.always_list = lambda _show: (machine,)
    house.ticks(70)
    assert house.world.deletions == []


@pytest.mark.parametrize("policy", [OrphanPolicy.DELETE, OrphanPolicy.REPORT])
def test_no_policy_touches_what_is_not_ours(house: House, policy: OrphanPolicy) -> None:
    """Another cluster's, another installation's, a person's with our mark pasted in, one without any mark."""
    house.observe.orphans = policy
    others = (
        house.machine("web-1", "id-1", description="a web server"),
        house.machine("h100-zzzzzzzz", "id-2", description="ca:v1 cluster=c10 installation=inst1x group=h100"),
        house.machine("h100-yyyyyyyy", "id-3", description="ca:v1 cluster=c1 installation=inst2 group=h100"),
        house.machine("workstation", "id-4", description="ca:v1 cluster=c1 installation=inst1 group=h100"),
    )
    for machine in others:
        house.world.add(machine)
    house.ticks(70)
    assert house.world.deletions == []
    assert len(house.world.alive) == 4


def test_an_orphan_that_left_is_no_longer_counted(house: House) -> None:
    """Missing twice, and its own look-up says so; what it cost since it was seen: 90 s at 2.29 an hour."""
    house.world.add(house.machine("workstation", "id-4", description="ca:v1 cluster=c1 installation=inst1 group=h100"))
    house.look(8)
    del house.world.records["id-4"]
    house.look()
    assert set(house.books.cloud.orphans) == {"id-4"}
    house.look()
    assert not house.books.cloud.orphans
    (settled,) = [item.event for item in house.log if isinstance(item.event, OrphanSettled)]
    assert (settled.outcome, settled.cost) == (OrphanOutcome.VANISHED, Decimal("0.057250"))


# --- an order in doubt, and a machine with its name that does not carry our mark


def test_a_doubt_ends_although_a_machine_without_our_mark_has_the_name(house: House) -> None:
    """Somebody has edited its description, or made one of that name: it is left alone, and the deletion ends."""
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    stranger = house.world.add(house.machine(name, description="mine"))
    house.ticks(3)
    house.delete(name)
    assert house.state(name) == "deleting"
    house.ticks(12)
    assert house.state(name) == "cancelled"
    assert house.world.alive[name] == stranger
    assert house.world.deletions == []
    assert house.books.cloud.orphans["id-by-hand"].reason == "has the name of an instance of ours, but not our mark"


def test_while_it_is_wanted_nothing_is_ordered_beside_a_machine_of_its_name(house: House) -> None:
    """It may be ours after all; the creation fails in time instead, and the autoscaler deletes it."""
    house.world.on_create.append(refuses(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    house.world.add(house.machine(name, description="mine"))
    house.ticks(61)
    assert house.state(name) == "failed"
    assert len(house.world.orders) == 1


def test_a_machine_whose_mark_comes_back_is_found(house: House) -> None:
    """The description was edited and put right again."""
    house.world.on_create.append(makes_and(TIMEOUT))
    (name,) = house.grow()
    house.provision.run()
    machine = house.world.alive[name]
    house.world.add(replace(machine, description="mine"))
    house.ticks(2)
    house.world.add(machine)
    house.world.boot()
    house.ticks(2)
    assert house.state(name) == "running"


# --- a deletion that was refused


def test_a_deletion_refused_while_provisioning_is_repeated_as_soon_as_the_machine_runs(house: House) -> None:
    """Verda refuses to delete what is provisioning; the pause of up to a minute ends with the status."""
    (name,) = house.grow()
    house.provision.run()
    house.world.change(name, "provisioning")
    house.look()
    house.delete(name)
    for _ in range(8):
        house.terminate.run()
        house.clock.advance(timedelta(seconds=30))
    assert house.told(name).count("delete-refused") == 6  # after 2, 4, 8, 16, 32 s: always due again, then 60 s
    house.world.boot()
    house.observe.run()
    house.terminate.run()
    assert house.told(name)[-1] == "delete-attempted"
    assert house.world.alive == {}


def test_a_deletion_that_was_taken_is_not_repeated_because_the_status_moves(house: House) -> None:
    """It moves because of the deletion."""
    (name,) = house.running()
    machine = house.world.alive[name]
    house.delete(name)
    house.terminate.run()
    house.world.add(replace(machine, status="deleting"))
    house.look()
    house.terminate.run()
    assert len(house.world.deletions) == 1
