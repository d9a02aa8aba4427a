"""One run: many lives of one installation, each but the last ended by a kill, and then the reckoning."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from alembic import command

from app.rpc.client import CallFailed, Client
from app.store.backup import backups
from app.store.migrate import alembic_config
from app.store.sqlite import writer_engine
from tests.torture.autoscaler import Autoscaler, failed
from tests.torture.stage import GROUPS, Stage, pause, until
from tests.torture.verdict import broken, differences, twins

_OLDEST_REVISION = "0001"
_SETTLING_S = 240.0
_FOREIGN = ("gpu-aaaaaaaa", "bobs-machine")


class Moment(StrEnum):
    """When the process is killed."""

    START = "at its start"
    WORK = "at work"
    STOP = "while it stops"


_MOMENTS = (Moment.START, Moment.WORK, Moment.STOP)
_OFTEN = (30, 55, 15)


@dataclass(kw_only=True)
class Outcome:
    """What became of a run."""

    seed: int
    kills: Counter[Moment] = field(default_factory=Counter)
    findings: Sequence[str] = ()
    calls: int = 0
    promised: int = 0
    given_back: int = 0
    machines: int = 0
    twins: int = 0
    longest_twins_s: float = 0.0
    disks_left: int = 0
    copies: int = 0


def run(seed: int, kills: int, directory: Path) -> Outcome:
    """Kill so often. The database is new, or one of the oldest version, to be migrated."""
    draw = random.Random(f"torture/{seed}")  # noqa: S311 - reproducible on purpose
    outcome = Outcome(seed=seed)
    with Stage(directory, seed) as stage:
        if draw.random() < 0.5:
            make_old_database(stage.database)
        for name in _FOREIGN:
            stage.control("POST", "/instances", {"hostname": name})
        try:
            with Autoscaler(stage.address, seed) as autoscaler:
                _torment(stage, kills, draw, outcome)
            left = _settle(stage)
            stage.stop()
        except AssertionError as error:
            outcome.findings = (str(error),)
            return outcome
        _reckon(stage, autoscaler, outcome, left)
    return outcome


def _torment(stage: Stage, kills: int, draw: random.Random, outcome: Outcome) -> None:
    for number in range(kills):
        moment = draw.choices(_MOMENTS, _OFTEN)[0] if number else Moment.START
        _live_and_die(stage, moment, draw)
        outcome.kills[moment] += 1
    stage.start()
    until(stage.answers, "the provider answers")


def _reckon(stage: Stage, autoscaler: Autoscaler, outcome: Outcome, left: Sequence[str]) -> None:
    truth = stage.truth()
    outcome.findings = (*left, *broken(stage, autoscaler, truth), *_missing(stage))
    outcome.calls, outcome.promised = autoscaler.calls, autoscaler.promised.total()
    outcome.given_back = sum(len(ids) for ids in autoscaler.given_back.values())
    outcome.machines = len(truth["instances"])
    doubles = twins(truth)
    outcome.twins, outcome.longest_twins_s = len(doubles), max(doubles.values(), default=0.0)
    outcome.disks_left = len(truth["orphan_volumes"])
    outcome.copies = len(backups(stage.copies, stage.database))


def make_old_database(path: Path) -> None:
    """An empty database as the first version made it."""
    engine = writer_engine(path)
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), _OLDEST_REVISION)
    engine.dispose()


def _live_and_die(stage: Stage, moment: Moment, draw: random.Random) -> None:
    stage.start()
    if moment is Moment.START:
        pause(draw.uniform(0.0, 0.8))
        stage.kill()
        return
    until(stage.answers, "the provider answers")
    if moment is Moment.WORK:
        pause(draw.uniform(0.0, 1.5))
        stage.kill()
    else:
        pause(draw.uniform(0.0, 0.5))
        stage.kill_while_stopping(draw.uniform(0.0, 0.1))


def _settle(stage: Stage) -> Sequence[str]:
    """Faults off; collect what failed until books and cloud agree. What still differs when time is up."""
    left: Sequence[str] = ()

    def agree() -> bool:
        nonlocal left
        stage.calm()
        _collect(stage)
        left = tuple(differences(stage))
        if left:
            pause(0.3)
        return not left

    try:
        until(agree, "books and cloud agree", _SETTLING_S)
    except AssertionError:
        return left
    return ()


def _collect(stage: Stage) -> None:
    with Client(stage.address) as client:
        for group in GROUPS:
            try:
                ids = failed(client.instances(group))
                if ids:
                    client.delete_nodes(group, ids)
            except CallFailed:
                return  # asked again in a moment; whoever never answers is found out by the clock


def _missing(stage: Stage) -> Sequence[str]:
    """Foreign machines that are gone."""
    alive = {item["hostname"] for item in stage.machines() if item["foreign"]}
    return [f"{name}, somebody else's, is gone" for name in _FOREIGN if name not in alive]
