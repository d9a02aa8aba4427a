"""What holds after every step and after every piece of a job: the answers, and the promises behind them."""

from collections import Counter
from collections.abc import Iterable, Iterator

from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.rpc.gen import externalgrpc_pb2 as pb
from app.simulator.core import PROJECT_USER
from tests.simulation.setting import FOREIGN_SCRIPT
from tests.simulation.stage import Stage
from tests.simulation.steps.trouble import DATA_VOLUME
from tests.simulation.violation import Always

_CREATING = pb.InstanceStatus.instanceCreating
_LEGAL = {pb.InstanceStatus.instanceRunning, _CREATING, pb.InstanceStatus.instanceDeleting}
_LIVE = {pb.InstanceStatus.instanceRunning, _CREATING}
_CLASSES = {1, 99}
_LONGEST = 500


def listed_groups_always_answer(stage: Stage) -> Iterator[str]:
    """One failing group halts the autoscaler's whole loop, so reads of a listed group never fail."""
    yield from stage.picture().refusals


def target_is_what_is_listed(stage: Stage) -> Iterator[str]:
    """The target size is the number of listed instances that run or come, over the wire and at once."""
    for group in stage.picture().groups:
        live = sum(1 for node in group.nodes if node.status.instanceState in _LIVE)
        if group.target != live:
            yield f"{group.name}: target size {group.target}, {live} live instances listed"


def wire_states_are_legal(stage: Stage) -> Iterator[str]:
    """Every listed instance has an id of its own and a state, and errors stand only beside the state creating."""
    ids: Counter[str] = Counter()
    for group in stage.picture().groups:
        for node in group.nodes:
            ids[node.id] += 1
            error = node.status.errorInfo
            if not node.id or node.status.instanceState not in _LEGAL:
                yield f"{group.name}: {node.id!r} has state {node.status.instanceState}"
            if error.errorCode and node.status.instanceState != _CREATING:
                yield f"{node.id} has an error and is not creating"
            if error.errorCode and (error.instanceErrorClass not in _CLASSES or len(error.errorMessage) > _LONGEST):
                yield f"{node.id} has an error of class {error.instanceErrorClass}"
            if not error.errorCode and (error.errorMessage or error.instanceErrorClass):
                yield f"{node.id} has half an error"
    yield from (f"{count} instances are listed as {name}" for name, count in ids.items() if count > 1)


def failures_are_told(stage: Stage) -> Iterator[str]:
    """A failed instance is listed as creating with an error until it is deleted, or the autoscaler never learns."""
    for group in stage.picture().groups:
        told = {node.id for node in group.nodes if node.status.errorInfo.errorCode}
        for instance in stage.books.members(group.name).listed:
            if instance.state is InstanceState.FAILED and instance.provider_id not in told:
                yield f"{instance.name} failed and is not listed with its error"


def retired_groups_only_shrink(stage: Stage) -> Iterator[str]:
    """A group that left the configuration has no minimum, and its present size as its maximum."""
    for group in stage.picture().groups:
        if stage.books.groups[group.name].retired and (group.smallest, group.largest) != (0, group.target):
            yield f"{group.name} is retired with {group.target} and lists {group.smallest} to {group.largest}"


def what_was_given_back_never_lives_again(stage: Stage) -> Iterator[str]:
    """A deletion that was answered with OK is final: the slot never counts again."""
    for name in stage.witness.released:
        instance = stage.books.instances.get(name)
        if instance is not None and instance.state.is_live:
            yield f"{name} was given back and is {instance.state}"


def the_books_hold_only_our_machines(stage: Stage) -> Iterator[str]:
    """No instance stands on a machine that we have not ordered, or on one with another name."""
    for instance in _listed(stage):
        if instance.instance_id is None:
            continue
        machine = stage.world.state.instances.get(instance.instance_id)
        if machine is None:
            yield f"{instance.name} stands on {instance.instance_id}, which never existed"
        elif machine.foreign:
            yield f"{instance.name} stands on somebody else's machine {machine.hostname}"
        elif machine.hostname != instance.name:
            yield f"{instance.name} stands on the machine {machine.hostname}"


def no_two_instances_share_a_machine(stage: Stage) -> Iterator[str]:
    """One machine, one instance."""
    owners: dict[str, str] = {}
    for instance in _listed(stage):
        if instance.instance_id is not None:
            if instance.instance_id in owners:
                yield f"{instance.name} and {owners[instance.instance_id]} share {instance.instance_id}"
            owners[instance.instance_id] = instance.name


def no_foreign_machine_is_touched(stage: Stage) -> Iterator[str]:
    """What is not ours is never deleted: machines, their volumes, and volumes that somebody attached to ours.

    Without money the platform does that, and its journal then names nobody.
    """
    if stage.world.state.counters.foreign_deletes:
        yield f"{stage.world.state.counters.foreign_deletes} deletions of other people's machines"
    for volume in stage.world.state.volumes.values():
        owner = stage.world.state.instances.get(volume.last_instance_id or "")
        is_other_s = owner is not None and (owner.foreign or volume.name == DATA_VOLUME)
        if is_other_s and volume.deleted_ms is not None and _is_deleted_by_us(stage, volume.id):
            yield f"the volume {volume.name} was deleted, last attached to {volume.last_instance_id}"


def _is_deleted_by_us(stage: Stage, volume_id: str) -> bool:
    rows = (row for row in stage.world.state.journal if row.object_id == volume_id and row.actor == PROJECT_USER)
    return any(row.action in {"trash:complete", "delete:complete"} for row in rows)


def no_foreign_script_is_touched(stage: Stage) -> Iterator[str]:
    """Another installation's startup script stays, however much its name looks like ours."""
    if all(script.name != FOREIGN_SCRIPT for script in stage.world.state.scripts.values()):
        yield f"{FOREIGN_SCRIPT} is gone"


def provider_ids_stay(stage: Stage) -> Iterator[str]:
    """Compared byte for byte, an id changes when the machine's becomes known, and when a node spells it anew."""
    witness = stage.witness
    for instance in _listed(stage):
        known = witness.spelled.get(instance.name, instance.provider_id)
        is_learnt = instance.provider_id_learned and instance.name not in witness.learnt
        if known != instance.provider_id and not is_learnt and not known.startswith("verda://pending/"):
            yield f"{instance.name} was listed as {known} and is now {instance.provider_id}"
        witness.spelled[instance.name] = instance.provider_id
        if instance.provider_id_learned:
            witness.learnt.add(instance.name)
    for group in stage.picture().groups:
        ids = {instance.provider_id for instance in stage.books.members(group.name).listed}
        yield from (f"{node.id} is listed and is nobody's id" for node in group.nodes if node.id not in ids)


def _listed(stage: Stage) -> Iterable[Instance]:
    return stage.books.listed_instances()


ALWAYS: tuple[Always, ...] = (
    listed_groups_always_answer,
    target_is_what_is_listed,
    wire_states_are_legal,
    failures_are_told,
    retired_groups_only_shrink,
    what_was_given_back_never_lives_again,
    the_books_hold_only_our_machines,
    no_two_instances_share_a_machine,
    no_foreign_machine_is_touched,
    no_foreign_script_is_touched,
    provider_ids_stay,
)
