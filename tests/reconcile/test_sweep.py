"""Disks that outlived their machines: which go, which stay."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.domain.cloud import OrphanVolumeDeleted, RecordSurplus, RecordSurplusGone
from app.domain.instance.commands import ConfirmEnded
from app.domain.machine import Volume
from app.domain.observation import ObserveMachines
from app.domain.offering import Contract

from .house import House, spec
from .world import DOWN


def disk(name: str, *, volume_id: str = "v-1", status: str = "detached", instance_id: str | None = None) -> Volume:
    """A system disk as the API lists it."""
    return Volume(
        volume_id=volume_id, name=name, status=status, size_gb=100, is_os_volume=True, instance_id=instance_id
    )


def gone(house: House) -> str:
    """An instance that was deleted and is proven gone, its grace over."""
    (name,) = house.running()
    house.delete(name)
    house.ticks(3)
    assert house.state(name) == "gone"
    house.clock.advance(timedelta(minutes=5))
    return name


def put(house: House, *volumes: Volume) -> None:
    """These are the project's volumes."""
    house.world.disks = {volume.volume_id: volume for volume in volumes}


def see_disk(house: House, name: str, volume_id: str) -> None:
    """The machine shows this system disk, as the next listing would."""
    machine = replace(house.world.records["id-0001"], os_volume_id=volume_id)
    house.execute(ObserveMachines(machines=(machine,), backend="simulator", claim=False))
    assert house.instance(name).os_volume_id == volume_id


def test_a_disk_left_by_a_deleted_machine_goes_for_good(house: House) -> None:
    """F29: its deletion was asked for and the API kept it; nobody would ever look at it again."""
    name = gone(house)
    put(house, disk(f"{name}-os"))
    house.sweep.run()
    assert house.world.swept == [("v-1", True)]
    assert house.log[-1].event == OrphanVolumeDeleted(volume_id="v-1", instance=name, size_gb=100)
    house.sweep.run()
    assert len(house.world.swept) == 1


def test_the_trash_is_the_operator_s_choice_for_it_too(house: House) -> None:
    """F29: volume_policy: trash."""
    house.configure(spec(os_volume_permanent=False))
    name = gone(house)
    put(house, disk(f"{name}-os"))
    house.sweep.run()
    assert house.world.swept == [("v-1", False)]


def test_nobody_else_s_volume_is_touched(house: House) -> None:
    """Names of strangers, data volumes, attached disks, disks that are being detached: all stay."""
    name = gone(house)
    ours = f"{name}-os"
    put(
        house,
        disk("h100-zzzzzzzz-os", volume_id="stranger"),
        disk(name, volume_id="other name"),
        disk("-os", volume_id="no name"),
        replace(disk(ours, volume_id="data"), is_os_volume=False),
        disk(ours, volume_id="attached", status="attached", instance_id="id-0001"),
        disk(ours, volume_id="detaching", status="detaching"),
    )
    house.sweep.run()
    assert house.world.swept == []


def test_a_machine_that_lives_keeps_its_disk_whatever_the_volume_list_says(house: House) -> None:
    """One odd list must not cost a machine its disk."""
    (name,) = house.running()
    see_disk(house, name, "v-own")
    house.clock.advance(timedelta(hours=1))
    put(house, disk(f"{name}-os", volume_id="v-own"))
    house.sweep.run()
    assert house.world.swept == []


def test_a_deletion_under_way_is_given_time(house: House) -> None:
    """The API detaches a disk before it deletes it."""
    (name,) = house.running()
    house.delete(name)
    house.ticks(3)
    put(house, disk(f"{name}-os"))
    house.sweep.run()
    assert house.world.swept == []


@pytest.mark.parametrize(("contract", "swept"), [(Contract.SPOT, [("v-1", True)]), (Contract.ON_DEMAND, [])])
def test_disks_of_lost_machines(house: House, contract: Contract, swept: list[tuple[str, bool]]) -> None:
    """F53: hibernating an on-demand machine keeps its disk on purpose; a spot machine's was ordered to go with it."""
    house.configure(spec(contracts=(contract,)))
    (name,) = house.running()
    house.execute(ConfirmEnded(instance=name, instance_id="id-0001", known_by_id=True))
    assert house.state(name) == "lost"
    house.clock.advance(timedelta(minutes=5))
    put(house, disk(f"{name}-os"))
    house.sweep.run()
    assert house.world.swept == swept


def test_what_was_given_back_while_it_was_believed_lost_leaves_no_disk(house: House) -> None:
    """Its machine returned and was deleted as one too many; that the instance stays lost must not keep the disk."""
    (name,) = house.running()
    house.execute(ConfirmEnded(instance=name, instance_id="id-0001", known_by_id=True))
    house.delete(name)
    assert house.state(name) == "lost"
    house.clock.advance(timedelta(minutes=5))
    put(house, disk(f"{name}-os"))
    house.sweep.run()
    assert house.world.swept == [("v-1", True)]


def test_a_second_machine_of_one_name_leaves_no_disk(house: House) -> None:
    """The instance lives on and would keep the other's disk on the bill for as long; its own stays."""
    (name,) = house.running()
    see_disk(house, name, "v-own")
    house.clock.advance(timedelta(minutes=5))
    put(house, disk(f"{name}-os", volume_id="v-twin"), disk(f"{name}-os", volume_id="v-own"))
    house.sweep.run()
    assert house.world.swept == [("v-twin", True)]


def test_a_second_machine_keeps_its_disk_until_it_is_gone(house: House) -> None:
    """While its deletion is under way the disk is on its way as well."""
    (name,) = house.running()
    see_disk(house, name, "v-own")
    house.clock.advance(timedelta(minutes=5))
    put(house, disk(f"{name}-os", volume_id="v-twin"))
    house.execute(RecordSurplus(instance=name, instance_id="id-twin", reason="duplicate"))
    house.sweep.run()
    assert house.world.swept == []
    house.execute(RecordSurplusGone(instance_id="id-twin"))
    house.sweep.run()
    assert house.world.swept == [("v-twin", True)]


def test_a_newborn_is_given_time_to_attach_its_disk(house: House) -> None:
    """Nothing is a second machine's while the first has only just come."""
    (name,) = house.running()
    see_disk(house, name, "v-own")
    put(house, disk(f"{name}-os", volume_id="v-twin"))
    house.sweep.run()
    assert house.world.swept == []


def test_what_cannot_be_listed_or_deleted_now_is_left_for_the_next_time(house: House) -> None:
    """The sweep is no matter of life and death."""
    name = gone(house)
    put(house, disk(f"{name}-os"))
    house.world.on_volumes.append(DOWN)
    house.sweep.run()
    assert house.world.swept == []
    house.sweep.run()
    assert house.world.swept == [("v-1", True)]


def test_instances_forgotten_by_memory_are_known_to_the_store(house: House) -> None:
    """A disk may turn up weeks later."""
    name = gone(house)
    house.clock.advance(timedelta(days=3))
    house.housekeeping.run()
    assert name not in house.ledger.books.instances
    put(house, disk(f"{name}-os"))
    house.sweep.run()
    assert house.world.swept == [("v-1", True)]
