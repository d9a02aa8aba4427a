"""What holds for every call that costs or saves money, at the moment before it is made."""

from collections.abc import Callable, Iterator, Sequence

from app.cloud.port import Deletion
from app.domain.ids import Mark, is_instance_name
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Order
from app.reconcile.jobs.observe import LIST_LAG
from tests.simulation import setting
from tests.simulation.stage import Stage

_SIGHTINGS = 3

OrderCheck = Callable[[Stage, Order], Iterator[str]]
DeletionCheck = Callable[[Stage, Sequence[Deletion]], Iterator[str]]
SweepCheck = Callable[[Stage, str], Iterator[str]]


def every_order_follows_its_intent(stage: Stage, order: Order) -> Iterator[str]:
    """What is about to be ordered stands in the log, durable, as an attempt without outcome."""
    story = stage.witness.stories.get(order.hostname)
    attempt = story.open_attempt if story is not None else None
    if attempt is None:
        yield f"{order.hostname} is ordered without an intent in the log"
    elif (attempt.instance_type, attempt.location, attempt.contract, attempt.image) != (
        order.instance_type,
        order.location,
        order.contract,
        order.image,
    ):
        yield f"{order.hostname}: the order is another than the intent"


def only_what_is_wanted_is_ordered(stage: Stage, order: Order) -> Iterator[str]:
    """No machine is ordered for a slot that was given back, has ended or has a machine."""
    instance = stage.books.instances.get(order.hostname)
    if instance is None or instance.state is not InstanceState.SUBMITTING or instance.instance_id is not None:
        yield f"{order.hostname} is ordered and is {instance.state if instance else 'unknown'}"
    if order.hostname in stage.witness.released:
        yield f"{order.hostname} is ordered and was given back"


def one_order_at_a_time(stage: Stage, order: Order) -> Iterator[str]:
    """No second create call for a host name while one is under way."""
    if stage.cloud.known.order(order.hostname).under_way:
        yield f"{order.hostname} is ordered twice at once"


def doubt_is_settled_before_ordering_again(stage: Stage, order: Order) -> Iterator[str]:
    """After a create call of unknown outcome the machine was looked for, long and often enough, before the next."""
    story = stage.cloud.known.order(order.hostname)
    if story.doubtful_since_ms is not None:
        seconds = (stage.agenda.now_ms - story.doubtful_since_ms) / 1000
        if seconds < LIST_LAG.total_seconds() - stage.clock_slack_s or story.lists_without_it < _SIGHTINGS:
            yield f"{order.hostname} is ordered again {seconds} s and {story.lists_without_it} lists after doubt"


def orders_carry_our_mark(stage: Stage, order: Order) -> Iterator[str]:
    """Without its mark a machine whose answer got lost would be nobody's; without its system disk named, it stays."""
    mark = Mark.parse(order.description)
    group = stage.witness.stories[order.hostname].node_group if order.hostname in stage.witness.stories else ""
    ours = Mark(cluster=setting.CLUSTER, installation=stage.books.installation.installation_id, group=group)
    if mark != ours or not is_instance_name(order.hostname, group):
        yield f"{order.hostname} is ordered with the mark {order.description!r}"
    if dict(order.tags) != dict(ours.tags()):
        yield f"{order.hostname} is ordered with the tags {order.tags}"
    if order.os_volume is None or not order.os_volume.permanent:
        yield f"{order.hostname} is ordered without saying that its system disk goes with it"


def orders_carry_their_script(stage: Stage, order: Order) -> Iterator[str]:
    """Where the group has a startup script, the machine is ordered with one made for it, and only there."""
    scripts = stage.world.state.scripts
    group = stage.witness.stories[order.hostname].node_group if order.hostname in stage.witness.stories else ""
    text = scripts[order.startup_script_id].text if order.startup_script_id in scripts else ""
    if group in setting.SCRIPTS and text != f"#!/bin/sh\njoin {order.hostname}\n":
        yield f"{order.hostname} is ordered with the script {text!r}"
    if group not in setting.SCRIPTS and order.startup_script_id is not None:
        yield f"{order.hostname} is ordered with the script {text!r}, and its group has none"


def every_deletion_follows_its_intent(stage: Stage, deletions: Sequence[Deletion]) -> Iterator[str]:
    """Only what the log wants gone is deleted: a deletion attempted for this machine, or a machine too many."""
    intended = {machine for story in stage.witness.stories.values() for machine in story.delete_attempts}
    for deletion in deletions:
        if deletion.instance_id not in intended and deletion.instance_id not in stage.books.cloud.surplus:
            yield f"{deletion.instance_id} is deleted without an intent in the log"


def deletions_name_the_system_disk_and_no_other(stage: Stage, deletions: Sequence[Deletion]) -> Iterator[str]:
    """The OS volume goes with its machine, for good, as soon as we know it; nobody's data does."""
    for deletion in deletions:
        instance = stage.books.find_by_key(deletion.instance_id)
        known = instance.os_volume_id if instance is not None else None
        if deletion.instance_id in stage.books.cloud.surplus:
            known = stage.cloud.known.looked.get(deletion.instance_id)  # a listing may show it a moment later
        named = deletion.volume_ids or ()
        if known is not None and (named != (known,) or not deletion.permanent):
            yield f"{deletion.instance_id} is deleted with {named}, its OS volume is {known}"
        if known is None and named:
            yield f"{deletion.instance_id} is deleted with {named}, and none of them is known to be its OS volume"


def only_disks_without_a_use_are_swept(stage: Stage, volume_id: str) -> Iterator[str]:
    """A volume is deleted by itself only if it is the system disk of a machine of ours that is no more."""
    volume = stage.world.state.volumes[volume_id]
    machine = stage.world.state.instances.get(volume.last_instance_id or "")
    is_left = machine is not None and not machine.foreign and machine.ended_ms is not None
    if not volume.is_os or not is_left or volume.instance_id is not None:
        yield f"{volume.name} is deleted, the {volume.status} volume of {machine.hostname if machine else 'nobody'}"


ORDERS: tuple[OrderCheck, ...] = (
    every_order_follows_its_intent,
    only_what_is_wanted_is_ordered,
    one_order_at_a_time,
    doubt_is_settled_before_ordering_again,
    orders_carry_our_mark,
    orders_carry_their_script,
)
DELETIONS: tuple[DeletionCheck, ...] = (every_deletion_follows_its_intent, deletions_name_the_system_disk_and_no_other)
SWEEPS: tuple[SweepCheck, ...] = (only_disks_without_a_use_are_swept,)
