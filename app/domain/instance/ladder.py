"""What a refused order leads to: the next rung of the group's ladder, a pause, or failure."""

from datetime import datetime

from app.domain.books import Books
from app.domain.cloud import DuplicateInstanceDetected
from app.domain.envelope import Decision, Event
from app.domain.instance.commands import RecordCreateRefused
from app.domain.instance.events import (
    CancelReason,
    CreateFailed,
    CreateRefused,
    ErrorClass,
    FailureCode,
    InstanceCancelled,
)
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.instance.verdict import NO_CAPACITY, judge, pause
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import Contract, Offering


def next_rung(instance: Instance, group: NodeGroup) -> Offering | None:
    """The best offering of the group's ladder that has not refused this wish yet."""
    return next((rung for rung in group.spec.ladder() if rung not in instance.closed_rungs), None)


def record_create_refused(command: RecordCreateRefused, books: Books, now: datetime) -> Decision:
    """The create call did nothing: try the next rung, wait and try again, or give up."""
    instance = books.instances.get(command.instance)
    if instance is None or not instance.create_is_open or instance.attempt != command.attempt:
        return Decision()
    verdict = judge(command)
    refused = CreateRefused(
        instance=instance.name,
        node_group=instance.node_group,
        attempt=command.attempt,
        error_class=verdict.error_class,
        code=verdict.code,
        message=verdict.message(command.message),
        rung_closed=verdict.rung_closed,
        retry_at=None if verdict.rung_closed else now + pause(command.attempt, command.retry_after),
    )
    if instance.state is InstanceState.DELETING:
        cancelled = InstanceCancelled(
            instance=instance.name, node_group=instance.node_group, reason=CancelReason.NEVER_CREATED
        )
        return Decision((refused, cancelled))
    if instance.state is not InstanceState.SUBMITTING:
        return Decision((refused,))
    if verdict.final or (verdict.rung_closed and _is_last_rung(instance, books)):
        return Decision((refused, _failed_for(instance, refused)))
    return Decision((refused,))


def _is_last_rung(instance: Instance, books: Books) -> bool:
    """No offering is left once the one that was just tried is closed too."""
    tried = Offering(
        instance_type=instance.instance_type or "",
        location=instance.location or "",
        contract=instance.contract or Contract.ON_DEMAND,
    )
    closed = {*instance.closed_rungs, tried}
    return all(rung in closed for rung in books.groups[instance.node_group].spec.ladder())


def never_placed(instance: Instance, books: Books, instance_id: str, words: str) -> tuple[Event, ...]:
    """The order was taken and came to nothing for want of stock: what remains of it goes, the next rung is tried.

    On the last rung the wish fails and keeps the machine's record, which goes when the autoscaler collects the failure.
    """
    message = NO_CAPACITY.message(words)
    if instance.attempt == 0 or _is_last_rung(instance, books):
        failed = CreateFailed(
            instance=instance.name,
            node_group=instance.node_group,
            error_class=NO_CAPACITY.error_class,
            code=NO_CAPACITY.code,
            message=message,
        )
        return (failed,)
    refused = CreateRefused(
        instance=instance.name,
        node_group=instance.node_group,
        attempt=instance.attempt,
        error_class=NO_CAPACITY.error_class,
        code=NO_CAPACITY.code,
        message=message,
        rung_closed=True,
        retry_at=None,
    )
    left = DuplicateInstanceDetected(instance_id=instance_id, instance=instance.name, reason="never placed")
    return left, refused


def _failed_for(instance: Instance, refused: CreateRefused) -> CreateFailed:
    """Out of resources if any rung said so: then another group may still help and the autoscaler should try it."""
    if instance.error_class is ErrorClass.OUT_OF_RESOURCES and refused.error_class is not ErrorClass.OUT_OF_RESOURCES:
        return give_up(instance)
    return CreateFailed(
        instance=instance.name,
        node_group=instance.node_group,
        error_class=refused.error_class,
        code=refused.code,
        message=refused.message,
    )


def give_up(instance: Instance) -> CreateFailed:
    """The creation has failed for the last reason that was seen, or for having taken too long without any."""
    return CreateFailed(
        instance=instance.name,
        node_group=instance.node_group,
        error_class=instance.error_class or ErrorClass.OTHER,
        code=instance.error_code or FailureCode.CREATE_TIMEOUT,
        message=instance.error_message or "no machine could be ordered in time",
    )
