from collections.abc import Callable, Sequence

import pytest

from app.domain.envelope import Event, Recorded
from app.domain.instance.events import CreateAttempted, InstanceCreated

from .conftest import MakeHouse
from .house import House
from .world import NO_STOCK, TIMEOUT, Killed, makes_and, refuses


def _killed_at(kind: type[Event]) -> Callable[[Sequence[Recorded[Event]]], None]:
    def trap(recorded: Sequence[Recorded[Event]]) -> None:
        if any(isinstance(item.event, kind) for item in recorded):
            raise Killed

    return trap


def _run_into_death(house: House) -> None:
    with pytest.raises(Killed):
        house.provision.run()
    house.restart()


def _settle(house: House) -> None:
    """Long enough for every doubt to be resolved and every deletion to be done."""
    for _ in range(16):
        house.world.boot()
        house.tick()


def test_killed_before_the_intent_nothing_has_happened(house: House) -> None:
    """The wish is still there and is ordered once."""
    (name,) = house.grow()
    house.trap.on_append = _killed_at(CreateAttempted)
    _run_into_death(house)
    assert (house.state(name), house.world.orders) == ("requested", [])
    _settle(house)
    assert (house.state(name), set(house.world.alive)) == ("running", {name})


def test_killed_between_intent_and_order_the_order_is_made_once_the_doubt_is_gone(house: House) -> None:
    """F46, case 1: nobody can know that it was never sent, so it is looked for first."""
    (name,) = house.grow()
    house.world.on_create.append(refuses(Killed()))
    _run_into_death(house)
    house.ticks(5)
    assert (house.state(name), len(house.world.records)) == ("submitting", 0)
    _settle(house)
    assert (house.state(name), set(house.world.alive)) == ("running", {name})
    assert len(house.world.records) == 1


def test_killed_between_order_and_answer_the_machine_is_adopted(house: House) -> None:
    """F46, case 2: the log says that it was looked up, not answered."""
    (name,) = house.grow()
    house.world.on_create.append(makes_and(Killed()))
    _run_into_death(house)
    _settle(house)
    assert (house.state(name), set(house.world.alive)) == ("running", {name})
    assert (len(house.world.orders), len(house.world.records)) == (1, 1)
    (found,) = [item.event for item in house.log if isinstance(item.event, InstanceCreated)]
    assert found.found == "looked-up"


def test_killed_between_answer_and_record_the_machine_is_adopted(house: House) -> None:
    """F46, case 3: it knew the id and had no time to write it down."""
    (name,) = house.grow()
    house.trap.on_append = _killed_at(InstanceCreated)
    _run_into_death(house)
    assert (house.state(name), house.instance(name).instance_id) == ("submitting", None)
    _settle(house)
    assert (house.state(name), set(house.world.alive)) == ("running", {name})
    assert (len(house.world.orders), len(house.world.records)) == (1, 1)


def test_killed_right_after_the_record_nothing_is_left_to_do(house: House) -> None:
    """It was durable."""
    (name,) = house.grow()
    house.trap.on_appended = _killed_at(InstanceCreated)
    _run_into_death(house)
    assert house.state(name) == "provisioning"
    _settle(house)
    assert len(house.world.orders) == 1


def test_killed_again_while_looking_the_machine_is_still_found(house: House) -> None:
    """The settle period begins with the first doubt that was written, whoever wrote it."""
    (name,) = house.grow()
    house.world.on_create.append(makes_and(Killed()))
    _run_into_death(house)
    for _ in range(3):
        house.world.on_list.append(lambda _show: ())
        house.tick()
        house.restart()
    _settle(house)
    assert (house.state(name), len(house.world.records)) == ("running", 1)


def test_a_restart_forgets_how_often_it_looked_and_only_looks_longer(house: House) -> None:
    """What the job remembers between runs delays verdicts when it is lost; it never hastens them."""
    (name,) = house.grow()
    house.world.on_create.append(refuses(TIMEOUT))
    house.provision.run()
    house.ticks(9)
    house.restart()
    house.ticks(2, house.observe)
    assert house.state(name) == "submitting"
    house.tick(house.observe)
    assert house.state(name) == "requested"


def test_a_deletion_survives_a_restart_at_any_step(house: House) -> None:
    """F17: deleting, unmanaged, target lower by one; and it is carried through."""
    (name,) = house.running()
    house.delete(name)
    house.restart()
    assert (house.state(name), house.target()) == ("deleting", 0)
    house.tick(house.terminate)
    house.restart()
    house.tick(house.observe)
    assert (house.state(name), house.world.alive) == ("gone", {})


class _Countdown:
    """Kills at the n-th instant, once."""

    def __init__(self, at: int) -> None:
        self.at = at
        self.seen = 0

    def __call__(self, _: object) -> None:
        self.seen += 1
        if self.seen == self.at:
            raise Killed


def _arm(house: House, countdown: _Countdown) -> None:
    house.world.instant = countdown
    house.trap.on_append = countdown
    house.trap.on_appended = countdown


def _life(house: House, countdown: _Countdown) -> tuple[str, ...]:
    """Two wishes, the first refused at its first place; then one of them is given back and one more is wanted."""
    house.world.on_create.append(refuses(NO_STOCK))
    first, second = house.grow(2)
    third = ""
    _arm(house, countdown)
    for step in range(32):
        try:
            house.tick()
        except Killed:
            house.restart()
            _arm(house, countdown)
        house.world.boot()
        if step == 15:
            _disarm(house)
            house.delete(first)
            (third,) = house.grow()
            _arm(house, countdown)
    return first, second, third


def _disarm(house: House) -> None:
    house.world.instant = lambda _: None
    house.trap.on_append = house.trap.on_appended = lambda _: None


def test_killed_at_any_instant_of_a_life_every_wish_has_one_machine(house: House) -> None:
    """F49: no accepted wish forgotten, no machine without an owner, no wish with two, every deletion done.

    The instants are before and after each commit, order and deletion; the first life counts them and is not killed.
    """
    at, instants = 0, 1
    while at <= instants:
        countdown = _Countdown(at)
        first, second, third = _life(house, countdown)
        _disarm(house)
        assert (house.state(first), house.state(second), house.state(third)) == ("gone", "running", "running"), at
        assert set(house.world.alive) == {second, third}, at
        assert house.target() == 2, at
        made = [machine.hostname for machine in house.world.records.values()]
        assert sorted(made) == sorted((first, second, third)), at
        instants = max(instants, countdown.seen)
        house.delete(second, third)
        house.ticks(2)
        assert house.world.alive == {}
        house.world.records.clear()
        house.world.on_create.clear()
        at += 1
    assert at > 30


def test_two_houses_never_share_a_database(make_house: MakeHouse) -> None:
    """The second process refuses to start, so no effect is ever decided twice."""
    house = make_house()
    with pytest.raises(Exception, match="in use"):
        House(path=house.path)
