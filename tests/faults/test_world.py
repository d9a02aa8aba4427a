"""What platform and people do to machines (one row each): the books follow, strangers are left alone."""

from pathlib import Path

import pytest

from app.domain.offering import Contract
from app.ledger.serving import remarks

from .rig import Rig, rig, simulator, spec


def test_a_machine_that_the_api_forgets_is_lost_and_taken_back_when_it_remembers(house: Rig) -> None:
    """`vanish`, `vanish_then_return`: the target falls and rises again; nothing is bought."""
    first, second = house.running(2)
    house.preset("vanish", hostname=first)
    house.preset("vanish_then_return", hostname=second, seconds=45)
    house.ticks(3)
    assert house.lost() == {first: "vanished", second: "vanished"}
    assert house.target() == 0
    house.ticks(4)
    assert (house.state(first), house.state(second), house.target()) == ("lost", "running", 1)
    assert house.truth()["creates_committed"] == 2


@pytest.mark.parametrize(("act", "lost"), [("evict", 1), ("evict_wave", 5)])
def test_evicted_machines_are_lost_whether_one_or_all(tmp_path: Path, act: str, lost: int) -> None:
    """All at once is held by the brake for five listings, and then believed, machine by machine."""
    with simulator() as sim:
        house = rig(tmp_path, sim, spec(contracts=(Contract.SPOT,)))
        house.running(5)
        house.preset(act)
        house.ticks(3)
        assert len(house.lost()) == (1 if lost == 1 else 0)
        house.ticks(3)
        assert set(house.lost().values()) == {"evicted"}
        assert (len(house.lost()), house.target()) == (lost, 5 - lost)
        assert house.truth()["creates_committed"] == 5
        house.shut_down()


@pytest.mark.parametrize("act", ["guest_poweroff", "human_shutdown"])
def test_a_machine_that_is_switched_off_is_stopped_and_still_a_member(house: Rig, act: str) -> None:
    """F53: it is billed on, whoever switched it off."""
    first, second = house.running(2)
    house.preset(act, hostname=first)
    house.ticks(3)
    assert (house.state(first), house.state(second), house.target()) == ("stopped", "running", 2)
    assert house.truth()["deletes_requested"] == 0
    (remark,) = remarks(house.books)
    assert remark.code == "machine-stopped"
    assert remark.message.startswith(f"{first} was switched off at 2026-01-05 00:0")


def test_a_machine_that_a_person_deleted_is_lost(house: Rig) -> None:
    """`human_delete`: discontinued without our asking; the autoscaler decides whether another is needed."""
    first, second = house.running(2)
    house.preset("human_delete", hostname=first)
    house.ticks(4)
    assert house.lost() == {first: "discontinued"}
    assert (house.alive, house.target()) == ([second], 1)


def test_a_machine_with_a_name_of_ours_and_no_mark_is_somebody_elses(house: Rig) -> None:
    """`human_same_hostname`: neither listed nor deleted, also when ours goes."""
    (name,) = house.running()
    house.preset("human_same_hostname")
    house.ticks(4)
    assert (house.target(), house.alive) == (1, [name, name])
    house.delete(name)
    house.ticks(4)
    assert (house.state(name), house.alive) == ("gone", [name])
    assert house.truth()["foreign_deletes"] == 0


def test_a_machine_whose_description_was_edited_is_known_by_its_id(house: Rig) -> None:
    """`human_description_edit`: it stays ours, and it can be deleted."""
    (name,) = house.running()
    house.preset("human_description_edit", hostname=name)
    house.ticks(3)
    assert (house.state(name), house.target()) == ("running", 1)
    house.delete(name)
    house.ticks(4)
    assert (house.state(name), house.alive) == ("gone", [])


def test_a_machine_of_somebody_else_is_nobodys_business(house: Rig) -> None:
    """`foreign_instance`: in the same project, under the same account."""
    house.running()
    house.preset("foreign_instance", status="running")
    house.ticks(5)
    assert (house.target(), len(house.alive)) == (1, 2)
    assert (house.truth()["foreign_deletes"], dict(house.books.cloud.orphans)) == (0, {})


def test_an_empty_account_ends_everything_and_nothing_is_bought(house: Rig) -> None:
    """`balance_zero`: four machines at once; held, looked up one by one, then believed."""
    names = house.running(4)
    house.preset("balance_zero")
    house.ticks(8)
    assert {house.state(name) for name in names} == {"lost"}
    assert (house.target(), house.alive) == (0, [])
    assert house.truth()["creates_committed"] == 4
