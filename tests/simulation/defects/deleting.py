"""Defects in giving machines back."""

import contextlib
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from app.cloud.port import DeletionResult
from app.domain.books import Books
from app.domain.envelope import Cause, Decision, Event
from app.domain.instance import decide as instance_decide
from app.domain.instance.commands import AttemptDelete, ConfirmEnded
from app.domain.instance.events import CancelReason, DeleteAttempted, DeleteReason, DeleteRequested, InstanceCancelled
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup import decide as group_decide
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes
from app.domain.nodegroup.events import TargetSizeDecreased
from app.errors import CloudError, InvalidRequest
from app.reconcile.jobs import sweep, terminate
from app.reconcile.jobs.sweep import Sweep
from app.reconcile.jobs.terminate import Terminate
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from tests.simulation.defects import Change, Defect

_attempt_delete = instance_decide.attempt_delete
_delete_nodes = group_decide.delete_nodes
_delete_nodes_call = CloudProvider.NodeGroupDeleteNodes
_decrease_target_size = group_decide.decrease_target_size
_take_answer = Terminate._take_answer
_is_due_for_deletion = instance_decide.is_due_for_deletion


def _with_volumes(choose: Any) -> Any:
    def attempt_delete(command: AttemptDelete, books: Books, now: datetime) -> Decision:
        events: list[Event] = []
        for event in _attempt_delete(command, books, now).events:
            assert isinstance(event, DeleteAttempted)
            events.append(event.model_copy(update={"volume_ids": choose(books.instances[event.instance])}))
        return Decision(tuple(events))

    return attempt_delete


def _delete_without_intent(self: Terminate) -> None:
    cause, now = self.bench.cause(self.name), self.bench.clock.now()
    books = self.bench.books
    due = tuple(
        item.name for item in books.listed_instances() if instance_decide.is_due_for_deletion(item, now, frozenset())
    )
    decided = _attempt_delete(AttemptDelete(instances=due), books, now).events
    attempts = [event for event in decided if isinstance(event, DeleteAttempted)]
    if attempts:
        self._delete(attempts, cause)
    self.bench.record(AttemptDelete(instances=due), cause)
    for surplus in list(self.bench.books.cloud.surplus.values()):
        self._delete_surplus(surplus, cause)


def _refused_is_done(self: Terminate, name: str, answer: Any, cause: Cause) -> None:
    if answer.result is DeletionResult.REFUSED:
        self.bench.record(ConfirmEnded(instance=name, instance_id=answer.instance_id, known_by_id=True), cause)
    else:
        _take_answer(self, name, answer, cause)


def _accepted_is_done(self: Terminate, name: str, answer: Any, cause: Cause) -> None:
    if answer.result is DeletionResult.ACCEPTED:
        self.bench.record(ConfirmEnded(instance=name, instance_id=answer.instance_id, known_by_id=True), cause)
    else:
        _take_answer(self, name, answer, cause)


def _confirm_blindly(self: Terminate, name: str, instance_id: str, cause: Cause) -> None:
    self.bench.record(ConfirmEnded(instance=name, instance_id=instance_id, known_by_id=False), cause)


def _due_once(instance: Instance, *rest: Any) -> bool:
    del rest
    return instance.state is InstanceState.DELETING and instance.instance_id is not None and not instance.delete_attempt


def _decrease_anything_coming(command: DecreaseTargetSize, books: Books) -> Decision:
    members = books.members(command.node_group)
    coming = (InstanceState.REQUESTED, InstanceState.SUBMITTING)
    released = [item for item in members.listed if item.state in coming][command.delta :]
    if not released or command.delta >= 0:
        return _decrease_target_size(command, books)
    decreased = TargetSizeDecreased(
        node_group=command.node_group,
        delta=-command.delta,
        new_target=members.target_size - len(released),
        instances=tuple(item.name for item in released),
    )
    return Decision((decreased, *(_cancel(item) for item in released)))


def _cancel(item: Instance) -> InstanceCancelled:
    return InstanceCancelled(instance=item.name, node_group=item.node_group, reason=CancelReason.TARGET_DECREASED)


def _release_without_doubt(instance: Instance, reason: DeleteReason, _books: Books) -> tuple[Event, ...]:
    name, group = instance.name, instance.node_group
    if instance.instance_id is not None:
        return (DeleteRequested(instance=name, node_group=group, reason=reason),)
    return (InstanceCancelled(instance=name, node_group=group, reason=CancelReason.DELETED),)


def _due_late(instance: Instance, now: datetime, interrupted: Any) -> bool:
    asked_at = instance.delete_requested_at
    is_late = asked_at is not None and now - asked_at >= timedelta(minutes=4)
    return is_late and _is_due_for_deletion(instance, now, interrupted)


def _delete_what_is_known(self: CloudProvider, request: Any, context: Any) -> Any:
    """Whoever is not known is not meant."""
    known = pb.NodeGroupDeleteNodesRequest(id=request.id)
    for node in request.nodes:
        with contextlib.suppress(InvalidRequest):
            self._named(node)
            known.nodes.append(node)
    return _delete_nodes_call(self, known, context)


def _delete_only_the_living(command: DeleteNodes, books: Books) -> Decision:
    """What was lost is not remembered as given back."""
    lost = {name for name in command.instances if name in books.instances and _is_lost(books.instances[name])}
    return _delete_nodes(
        replace(command, instances=tuple(name for name in command.instances if name not in lost)), books
    )


def _is_lost(instance: Instance) -> bool:
    return instance.state is InstanceState.LOST


def _sweep_everything(self: Sweep) -> None:
    """Whatever is named like one of our disks."""
    with contextlib.suppress(CloudError):
        for volume in self.bench.cloud.volumes():
            if volume.name.endswith(sweep.OS_VOLUME_SUFFIX) and volume.status != "deleted":
                self.bench.cloud.delete_volume(volume.volume_id, permanent=True)


def _release_every_wish(command: DecreaseTargetSize, books: Books) -> Decision:
    """However few were asked for."""
    wishes = sum(1 for one in books.members(command.node_group).listed if one.state is InstanceState.REQUESTED)
    return _decrease_target_size(replace(command, delta=min(command.delta, -wishes)), books)


DELETING = (
    Defect(
        name="release-every-wish",
        words="a decrease takes back more than was asked for",
        changes=lambda: [Change(holder=group_decide, name="decrease_target_size", new=_release_every_wish)],
    ),
    Defect(
        name="forget-the-system-disk",
        words="the OS volume is not named in the deletion and goes to the trash instead of away",
        changes=lambda: [Change(holder=instance_decide, name="attempt_delete", new=_with_volumes(lambda _: ()))],
    ),
    Defect(
        name="delete-every-volume",
        words="whatever is attached goes with the machine, also somebody's data",
        changes=lambda: [
            Change(holder=instance_decide, name="attempt_delete", new=_with_volumes(lambda one: one.volume_ids))
        ],
    ),
    Defect(
        name="delete-without-intent",
        words="the delete call is made first and written down afterwards",
        changes=lambda: [Change(holder=Terminate, name="run", new=_delete_without_intent)],
    ),
    Defect(
        name="refused-deletions-are-done",
        words="a machine whose deletion was refused drops out of the books",
        changes=lambda: [Change(holder=Terminate, name="_take_answer", new=_refused_is_done)],
    ),
    Defect(
        name="accepted-deletions-are-done",
        words="a machine whose deletion was accepted drops out of the books, though some are never executed",
        changes=lambda: [Change(holder=Terminate, name="_take_answer", new=_accepted_is_done)],
    ),
    Defect(
        name="believe-already-gone",
        words="an answer that the machine is already gone is believed without a look",
        changes=lambda: [Change(holder=Terminate, name="_confirm", new=_confirm_blindly)],
    ),
    Defect(
        name="delete-only-once",
        words="a deletion that had no effect is not repeated",
        changes=lambda: [
            Change(holder=module, name="is_due_for_deletion", new=_due_once) for module in (instance_decide, terminate)
        ],
    ),
    Defect(
        name="delete-at-leisure",
        words="a machine that is given back is deleted four minutes later",
        changes=lambda: [
            Change(holder=module, name="is_due_for_deletion", new=_due_late) for module in (instance_decide, terminate)
        ],
    ),
    Defect(
        name="never-delete-the-surplus",
        words="machines too many are noticed and not deleted",
        changes=lambda: [Change(holder=Terminate, name="_delete_surplus", new=lambda *_: None)],
    ),
    Defect(
        name="release-in-flight",
        words="a wish is released while its create call may be under way",
        changes=lambda: [Change(holder=group_decide, name="decrease_target_size", new=_decrease_anything_coming)],
    ),
    Defect(
        name="cancel-in-doubt",
        words="a wish of unknown outcome is cancelled when it is given back, and its machine forgotten",
        changes=lambda: [Change(holder=group_decide, name="release", new=_release_without_doubt)],
    ),
    Defect(
        name="ignore-unknown-nodes",
        words="a call that names a stranger's node deletes the others",
        changes=lambda: [Change(holder=CloudProvider, name="NodeGroupDeleteNodes", new=_delete_what_is_known)],
    ),
    Defect(
        name="forget-that-the-lost-was-given-back",
        words="giving back what is believed lost is not written down",
        changes=lambda: [Change(holder=group_decide, name="delete_nodes", new=_delete_only_the_living)],
    ),
    Defect(
        name="sweep-attached-disks",
        words="a machine's system disk is deleted while the machine lives",
        changes=lambda: [Change(holder=Sweep, name="run", new=_sweep_everything)],
    ),
    Defect(
        name="never-sweep",
        words="system disks that the cloud left behind stay",
        changes=lambda: [Change(holder=Sweep, name="run", new=lambda _: None)],
    ),
)
