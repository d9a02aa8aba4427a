"""What holds exactly once nothing is disturbed any more and time has passed."""

from collections.abc import Iterator, Mapping

from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.simulator.core import PROJECT_USER
from app.simulator.records import Status
from tests.simulation.invariants.bounded import is_beyond_our_books
from tests.simulation.setting import FOREIGN_SCRIPT
from tests.simulation.stage import Stage
from tests.simulation.violation import Always

_FITTING: Mapping[str, frozenset[InstanceState]] = {
    Status.RUNNING: frozenset({InstanceState.RUNNING}),
    Status.OFFLINE: frozenset({InstanceState.STOPPED}),
    # A machine that has run and broke is a node that is not ready, and the autoscaler's to judge.
    Status.ERROR: frozenset({InstanceState.RUNNING, InstanceState.STOPPED}),
    Status.INSTALLATION_FAILED: frozenset({InstanceState.RUNNING, InstanceState.STOPPED}),
}


def every_wish_has_its_machine(stage: Stage) -> Iterator[str]:
    """Every listed instance stands on a machine of its name that is as the books say; nothing is on its way."""
    for instance in stage.books.listed_instances():
        machine = stage.world.state.instances.get(instance.instance_id or "")
        if machine is None or machine.hostname != instance.name or machine.ended_ms is not None:
            yield f"{instance.name} is {instance.state} and its machine {machine.status if machine else 'unknown'}"
        elif instance.state not in _FITTING.get(machine.status, ()):
            yield f"{instance.name} is {instance.state} and its machine {machine.status}"
        elif instance.state is InstanceState.STOPPED and _goes_when_switched_off(stage, instance):
            yield f"{instance.name} is switched off and to be deleted for that"


def _goes_when_switched_off(stage: Stage, instance: Instance) -> bool:
    return stage.books.groups[instance.node_group].spec.stopped_action == "delete"


def every_machine_has_its_wish(stage: Stage) -> Iterator[str]:
    """Every machine that we ordered and that costs money is some live instance's."""
    owned = {instance.instance_id for instance in stage.books.listed_instances() if instance.state.is_live}
    for item in stage.machines:
        if item.id not in owned:
            yield f"{item.hostname} {item.id} is {item.status} and nobody's"


def no_intent_is_open(stage: Stage) -> Iterator[str]:
    """No order without outcome, no machine too many, no deletion unfinished."""
    yield from (f"{name} has an open order" for name in stage.witness.open_orders())
    yield from (f"{one.instance_id} is still one too many" for one in stage.books.cloud.surplus.values())
    for instance in stage.books.listed_instances():
        if instance.state is InstanceState.DELETING or instance.create_is_open:
            yield f"{instance.name} is {instance.state} and not finished"


def no_system_disk_is_left(stage: Stage) -> Iterator[str]:
    """No OS volume of a machine of ours costs money without its machine."""
    for volume in stage.world.state.volumes.values():
        owner = stage.world.state.instances.get(volume.last_instance_id or "")
        if owner is None or owner.foreign or not volume.is_os or volume.billed_from_ms is None:
            continue
        if is_beyond_our_books(stage, owner):
            continue
        if volume.instance_id is None or owner.ended_ms is not None:
            yield f"the volume {volume.name} of {owner.hostname}, which is {owner.status}, is {volume.status}"


def no_script_is_left(stage: Stage) -> Iterator[str]:
    """Startup scripts are at the cloud for machines that come; those of others stay."""
    names = [script.name for script in stage.world.state.scripts.values()]
    yield from (f"the script {name} is left" for name in names if name != FOREIGN_SCRIPT)
    yield from (f"the books still know the script {name}" for name in stage.books.cloud.scripts)


def our_deletions_erase_the_system_disk(stage: Stage) -> Iterator[str]:
    """Where we could see the OS volume it is gone for good with the machine, not in the trash."""
    for item in stage.world.state.instances.values():
        by_us = item.wish is not None and item.wish.actor == PROJECT_USER and item.end_reason == "deleted"
        volume = stage.world.state.volumes.get(item.os_volume_id or "")
        if item.foreign or not by_us or volume is None or item.id in stage.cloud.known.failed_looks:
            continue
        went_with_it = volume.deleted_ms == item.ended_ms  # else the platform has put it there later, for want of money
        if not volume.gone and went_with_it:
            yield f"the OS volume of {item.hostname} is {volume.status}"


def the_books_hold_what_was_promised(stage: Stage) -> Iterator[str]:
    """Every target size is the number of machines, over all groups."""
    for group in stage.books.groups:
        names = {item.name for item in stage.books.members(group).listed}
        machines = {item.hostname for item in stage.machines if item.hostname.rpartition("-")[0] == group}
        if names != machines:
            yield f"{group} counts {sorted(names)} and has {sorted(machines)}"


SETTLED: tuple[Always, ...] = (
    every_wish_has_its_machine,
    every_machine_has_its_wish,
    no_intent_is_open,
    no_system_disk_is_left,
    no_script_is_left,
    our_deletions_erase_the_system_disk,
    the_books_hold_what_was_promised,
)
