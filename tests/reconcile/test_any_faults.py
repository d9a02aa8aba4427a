"""A cloud that fails in every way it can, a process that is killed at any moment, and wishes all the while."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.clock import SeededIds
from app.cloud.port import DeletionResult
from app.domain.machine import Machine, Order
from app.errors import RuleViolation
from app.reconcile.jobs.job import Job

from .house import House, copy_database
from .world import (
    BUSY,
    DOWN,
    ENDED,
    NO_MONEY,
    NO_STOCK,
    QUOTA,
    TIMEOUT,
    WRONG_IMAGE,
    Answers,
    Deletions,
    Killed,
    Listing,
    answers,
)

GROUPS = ("h100", "spot")


class Weather:
    """Chance. While it is bad, any call may fail, lie or be the last one."""

    def __init__(self, house: House, seed: int) -> None:
        self.random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self.house = house
        self.world = house.world
        self.is_bad = True
        self.shown: list[Listing] = [()]
        self.world.always_create = self._create
        self.world.always_list = self._list
        self.world.always_look = self._look
        self.world.always_delete = self._delete

    def clear_up(self) -> None:
        """From now on everything works."""
        self.is_bad = False

    def _create(self, _order: Order, create: Callable[[], str]) -> str:
        chance = self.random.random() if self.is_bad else 0.0
        if 0.45 <= chance < 0.75:
            raise self.random.choice((NO_STOCK, NO_STOCK, NO_STOCK, QUOTA, NO_MONEY, WRONG_IMAGE, DOWN, BUSY, TIMEOUT))
        if 0.75 <= chance < 0.80:
            raise Killed
        made = create()
        if 0.80 <= chance < 0.90:
            raise TIMEOUT
        if 0.90 <= chance < 0.95:
            raise Killed
        if chance >= 0.95:
            self.world.records[made] = replace(self.world.records[made], status="no_capacity")
        return made

    def _list(self, show: Callable[[], Listing]) -> Listing:
        chance = self.random.random() if self.is_bad else 0.0
        now = tuple(show())
        self.shown.append(now)
        if 0.70 <= chance < 0.80:
            raise self.random.choice((DOWN, BUSY, TIMEOUT))
        if 0.80 <= chance < 0.90:
            return self.shown[-self.random.randrange(1, min(len(self.shown), 8) + 1)]
        if 0.90 <= chance < 0.97:
            return tuple(machine for machine in now if self.random.random() < 0.6)
        return () if chance >= 0.97 else now

    def _look(self, look: Callable[[], Machine | None]) -> Machine | None:
        if self.is_bad and self.random.random() < 0.2:
            raise self.random.choice((DOWN, TIMEOUT))
        return look()

    def _delete(self, deletions: Deletions, delete: Callable[[], Answers]) -> Answers:
        chance = self.random.random() if self.is_bad else 0.0
        if 0.60 <= chance < 0.80:
            result = self.random.choice((DeletionResult.ACCEPTED, DeletionResult.REFUSED))
            return answers(result, "not now")(deletions, delete)
        if 0.80 <= chance < 0.90:
            raise self.random.choice((DOWN, TIMEOUT, BUSY, Killed()))
        answered = delete()
        if chance >= 0.90:
            raise self.random.choice((TIMEOUT, Killed()))
        return answered

    def wish(self) -> None:
        """The autoscaler wants something."""
        group, chance = self.random.choice(GROUPS), self.random.random()
        listed = [instance.name for instance in self.house.books.members(group).listed]
        try:
            if chance < 0.25:
                self.house.grow(self.random.randrange(1, 4), group)
            elif chance < 0.40 and listed:
                self.house.delete(*self.random.sample(listed, 1), group=group)
            elif chance < 0.45:
                self.house.shrink(1, group)
        except RuleViolation:
            pass

    def move_machines(self) -> None:
        """Machines go their way: forward, into errors, away."""
        steps = {
            "ordered": ("ordered", "provisioning"),
            "provisioning": ("provisioning", "provisioning", "running", "running", "running", "error"),
            "running": ("running",) * 99 + (ENDED,),
            "no_capacity": ("no_capacity",) * 9 + (ENDED,),
        }
        for machine in list(self.world.records.values()):
            status = self.random.choice(steps.get(machine.status, (machine.status,)))
            volume = f"os-{machine.instance_id}" if status == "running" else machine.os_volume_id
            self.world.records[machine.instance_id] = replace(machine, status=status, os_volume_id=volume)

    def arm(self) -> None:
        """Any commit may be the last thing that happens."""

        def perhaps(_: object) -> None:
            if self.is_bad and self.random.random() < 0.02:
                raise Killed

        self.house.trap.on_append = self.house.trap.on_appended = perhaps

    def work(self) -> None:
        """The jobs run, in any order, not all of them; the process may not live through it."""
        house = self.house
        self.arm()
        jobs: Sequence[Job] = (house.provision, house.terminate, house.observe, house.deadlines)
        try:
            for job in self.random.sample(jobs, 3):
                job.run()
        except Killed:
            house.restart()
        house.trap.on_append = house.trap.on_appended = lambda _: None
        house.clock.advance(self.random.choice((1, 5, 10, 10, 10, 40)))


def _settle(house: House, times: int) -> None:
    for _ in range(times):
        house.world.boot()
        house.tick()


def _problems(house: House) -> Sequence[object]:
    """What must not be: two machines of one name, one without an owner, an owner without one, anything unfinished."""
    alive = [machine for machine in house.world.records.values() if machine.status != ENDED]
    names = [machine.hostname for machine in alive]
    listed = list(house.books.listed_instances())
    return [
        *(("two machines", name) for name in set(names) if names.count(name) > 1),
        *(("nobody's machine", name) for name in set(names) - {instance.name for instance in listed}),
        *(("no machine", instance.name) for instance in listed if instance.name not in names),
        *((instance.state, instance.name) for instance in listed if instance.state != "running"),
        *(("too many", extra) for extra in house.books.cloud.surplus),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_whatever_happened_everything_settles_once_the_weather_is_fine(
    seed: int, started: Path, tmp_path: Path
) -> None:
    """F09, F49: no wish forgotten, no machine without an owner, no slot with two machines, deletions finish."""
    house = House(path=copy_database(started, tmp_path), ids=SeededIds(seed))
    weather = Weather(house, seed)
    for _ in range(60):
        weather.wish()
        weather.move_machines()
        weather.work()
    weather.clear_up()
    _settle(house, 40)
    for group in GROUPS:
        failed = [instance.name for instance in house.books.members(group).listed if instance.state == "failed"]
        if failed:
            house.delete(*failed, group=group)
    _settle(house, 30)
    assert _problems(house) == []
    for group in GROUPS:
        assert house.target(group) == len(house.books.members(group).listed)
    house.close()
