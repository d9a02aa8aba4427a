"""Every way in which a deletion can go wrong (one row each): the machine goes, its disk goes, nothing else goes."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from .rig import Rig

CASES: Mapping[str, Mapping[str, Any]] = {
    "delete_refused_provisioning": {"times": 3},
    "delete_partial": {"n": 1},
    "delete_lost": {},
    "delete_timeout_before_commit": {},
    "delete_timeout_after_commit": {},
    "delete_403_already": {},
}


@pytest.mark.parametrize("preset", CASES)
def test_a_deletion_that_goes_wrong_ends_right(house: Rig, preset: str) -> None:
    """Two of three go, in the end for good, with their disks; the third and its disk stay."""
    first, second, third = house.running(3)
    if "timeout" in preset:
        house.lose_patience()
    house.preset(preset, **CASES[preset])
    house.delete(first, second)
    assert house.target() == 1
    for _ in range(15):
        house.tick()
        if {house.state(first), house.state(second)} == {"gone"}:
            break
    assert (house.state(first), house.state(second), house.state(third)) == ("gone", "gone", "running")
    house.ticks(2)
    assert house.alive == [third]
    assert house.volumes == [f"{third}-os"]
    truth = house.truth()
    assert (truth["creates_committed"], truth["foreign_deletes"], truth["deletes_of_never_requested"]) == (3, 0, 0)


def test_a_disk_that_the_api_kept_is_swept_and_no_other(house: Rig) -> None:
    """`os_volume_left`: five minutes after the machine is gone, by its name; a stranger's loose disk stays."""
    kept, gone = house.running(2)
    house.preset("os_volume_left")
    house.delete(gone)
    house.ticks(3)
    assert (house.state(gone), house.volumes) == ("gone", sorted([f"{kept}-os", f"{gone}-os"]))
    house.sweep.run()
    assert len(house.volumes) == 2
    house.clock.advance(timedelta(minutes=5))
    house.sweep.run()
    assert house.volumes == [f"{kept}-os"]
    assert house.types()[-1] == "cloud.orphan-volume-deleted"


def test_a_disk_that_never_gets_free_keeps_nobody_waiting(house: Rig) -> None:
    """`volume_stuck_detaching`: the machine is gone all the same, and the disk is left to the next sweeps."""
    (name,) = house.running()
    house.preset("volume_stuck_detaching")
    house.delete(name)
    house.ticks(6)
    assert (house.state(name), house.alive) == ("gone", [])
    house.clock.advance(timedelta(minutes=10))
    house.sweep.run()
    house.sweep.run()
    assert house.state(name) == "gone"


def test_a_machine_deleted_while_provisioning_goes_as_soon_as_it_may(house: Rig) -> None:
    """Verda refuses for as long as it provisions; it runs for no listing longer than it must."""
    (name,) = house.grow()
    house.ticks(2)
    house.delete(name)
    house.ticks(6)
    assert "delete-refused" in house.told(name)
    assert (house.state(name), house.alive, house.volumes) == ("gone", [], [])
