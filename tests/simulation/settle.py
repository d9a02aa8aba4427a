"""Quiescence: everything that disturbs ends, time passes, and everything must come to agree exactly."""

from tests.simulation import autoscaler
from tests.simulation.inspector import Inspector
from tests.simulation.setting import POOLS
from tests.simulation.stage import Stage
from tests.simulation.violation import Violated

_MINUTES = 75
"""Longer than everything that expires by itself, one after the other."""
_LEAST = 6
"""Prices are read every five minutes."""
_AMPLE = 16


def calm(stage: Stage) -> None:
    """No more faults, and the platform mends what it broke: what is stuck or lost goes on."""
    world = stage.world
    stage.effects.disarm()
    stage.disk.mend()
    stage.cloud.down = False
    stage.cloud.exchange.faults.clear()
    stage.cloud.late_s.clear()
    stage.cloud.see()
    world.catch_up()
    world.state.skew_ms = 0
    world.state.market.removed.clear()
    world.account.top_up(10**11)
    for location, families in POOLS.items():
        for family in families:
            world.capacity.set_free(family, location, _AMPLE)
    for item in stage.machines:
        item.hidden = False
        if item.status in {"ordered", "provisioning", "validating", "migrating", "deleting"}:
            stage.cloud.trouble("unstick", id=item.id)
        if item.status == "migrating":
            world.lifecycle.become(item, "running")


def settle(stage: Stage, inspector: Inspector) -> int:
    """Let time pass until all agree, with the autoscaler collecting failures. Minutes it took. Raises: Violated."""
    calm(stage)
    minutes = 0
    while minutes < _MINUTES and not (minutes >= _LEAST and inspector.is_settled()):
        stage.agenda.pace = 1 if minutes < 10 else 3
        stage.pass_time(60)
        autoscaler.delete_failed(stage)
        inspector.check()
        minutes += 1
    inspector.settled()
    stage.pass_time(60)  # what is done and under way still has to be written down
    before = stage.witness.position
    stage.pass_time(300)
    written = [item.event for item in stage.witness.log[before:]]
    if written:
        raise Violated("a_settled_provider_writes_nothing", f"{written[0]}")
    inspector.settled()
    inspector.sample()
    return minutes
