"""What a refused order leads to: the next rung of the group's ladder, a pause, or failure."""

from dataclasses import replace
from datetime import datetime

from app.domain.account import AccountRefused
from app.domain.books import Books
from app.domain.cloud import NEVER_PLACED, DuplicateInstanceDetected
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
from app.domain.instance.switching import left_on
from app.domain.instance.verdict import (
    LONGEST_ACCOUNT_PAUSE,
    NO_CAPACITY,
    SWITCH_UNANSWERED,
    Verdict,
    account_pause,
    judge,
    pause,
)
from app.domain.nodegroup.events import NodeGroupClosed, OfferingRested
from app.domain.nodegroup.state import FOR_EVER, NodeGroup, Rest
from app.domain.offering import Offering
from app.domain.pauses import is_over


def next_rung(instance: Instance, group: NodeGroup, now: datetime) -> Offering | None:
    """The best offering of the group's ladder for this wish, None if each of them has refused it.

    What was refused to another wish of the group after this one was made is refused to this one too, for as long as the
    offering rests. What was refused before it was made is only put behind the others: should they refuse as well,
    asking is the one way to learn of new stock, and the autoscaler has a back-off of its own.
    """
    if group.closed is not None:
        return None
    rests = {rest.offering: rest for rest in group.rests if _lasts(rest, group, now)}
    willing = [
        rung
        for rung in group.spec.ladder()
        if rung not in instance.closed_rungs and not _refused_since(instance, rests.get(rung))
    ]
    return min(willing, key=lambda rung: rung in rests, default=None)


def likely_rung(group: NodeGroup, now: datetime) -> Offering:
    """What the group's next machine is ordered as if nothing refuses it."""
    resting = {rest.offering for rest in group.rests if _lasts(rest, group, now)}
    return min(group.spec.ladder(), key=lambda rung: rung in resting)


def _lasts(rest: Rest, group: NodeGroup, now: datetime) -> bool:
    return rest.until == FOR_EVER or not is_over(rest.until, now, group.spec.ladder_cooldown)


def _refused_since(instance: Instance, rest: Rest | None) -> bool:
    return rest is not None and rest.position > instance.ordinal


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
    rested = _beyond_this_wish(instance, books, verdict, refused, now)
    if instance.state is InstanceState.DELETING:
        cancelled = InstanceCancelled(
            instance=instance.name, node_group=instance.node_group, reason=CancelReason.NEVER_CREATED
        )
        return Decision((refused, *rested, cancelled, *_left_on(instance, command, books)))
    left = _left_on(instance, command, books) if verdict.rung_closed else ()
    if instance.state is not InstanceState.SUBMITTING:
        return Decision((refused, *rested, *left))
    if verdict.final or (verdict.rung_closed and _is_last_rung(instance, books, now)):
        return Decision((refused, *rested, *left, _failed_for(instance, refused)))
    return Decision((refused, *rested, *left))


def _left_on(instance: Instance, command: RecordCreateRefused, books: Books) -> tuple[Event, ...]:
    """A machine of our own that this call or one before it may have switched on, and that the wish now lets go of.

    A wish with more attempts than offerings closed has had a call that nobody answered, here or at a machine before
    this one: rather one stop too many than a machine left on.
    """
    earlier = instance.attempt > len(instance.closed_rungs) + 1
    return left_on(instance, books) if earlier or command.code == SWITCH_UNANSWERED else ()


def _beyond_this_wish(
    instance: Instance, books: Books, verdict: Verdict, refused: CreateRefused, now: datetime
) -> tuple[Event, ...]:
    """What the refusal means for other wishes: of the account, for the offering, of the group."""
    if verdict.is_about_the_account:
        return account_refused(instance, books, refused, now)
    if verdict.is_about_the_offering:
        return _rested(instance, books, refused, now)
    if verdict.final and not verdict.passes and books.groups[instance.node_group].closed is None:
        return (NodeGroupClosed(node_group=instance.node_group, code=refused.code, message=refused.message),)
    return ()


def _rested(
    instance: Instance, books: Books, refused: CreateRefused | CreateFailed, now: datetime
) -> tuple[Event, ...]:
    """The offering rests, unless it does so already because of a refusal that this wish has been counted among."""
    group, tried = books.groups[instance.node_group], instance.tried
    if tried not in group.spec.ladder() or not group.spec.ladder_cooldown:
        return ()
    known = next((rest for rest in group.rests if rest.offering == tried and _lasts(rest, group, now)), None)
    if _refused_since(instance, known):
        return ()
    return (
        OfferingRested(
            node_group=group.name,
            instance_type=tried.instance_type,
            location=tried.location,
            contract=tried.contract,
            code=refused.code,
            message=refused.message,
            until=now + group.spec.ladder_cooldown,
        ),
    )


def account_refused(instance: Instance, books: Books, refused: CreateRefused, now: datetime) -> tuple[Event, ...]:
    """No order of the account is tried for a while, unless that was said after this wish was made."""
    known = books.cloud.account
    if known is not None and known.position > instance.ordinal:
        return ()
    until = now + account_pause(known.failures + 1 if known else 1)
    return (AccountRefused(code=refused.code, message=refused.message, until=until),)


def refused_with_the_account(instance: Instance, books: Books, now: datetime) -> CreateFailed | None:
    """The failure of a wish that shares in the account's refusal; None if its order is to be tried.

    Machines of our own are no business of the account's.
    """
    known = books.cloud.account
    if books.groups[instance.node_group].spec.kind == "webhook":
        return None
    if known is None or (is_over(known.until, now, LONGEST_ACCOUNT_PAUSE) and known.position < instance.ordinal):
        return None
    code = FailureCode(known.code)
    return CreateFailed(
        instance=instance.name,
        node_group=instance.node_group,
        error_class=ErrorClass.OUT_OF_RESOURCES if code is FailureCode.INSUFFICIENT_FUNDS else ErrorClass.OTHER,
        code=code,
        message=known.message,
    )


def _is_last_rung(instance: Instance, books: Books, now: datetime) -> bool:
    """No offering is left once the one that was just tried is closed too."""
    closed = (*instance.closed_rungs, instance.tried)
    return next_rung(replace(instance, closed_rungs=closed), books.groups[instance.node_group], now) is None


def never_placed(instance: Instance, books: Books, instance_id: str, words: str, now: datetime) -> tuple[Event, ...]:
    """The order was taken and came to nothing for want of stock: what remains of it goes, the next rung is tried.

    On the last rung the wish fails and keeps the machine's record, which goes when the autoscaler collects the failure.
    """
    message = NO_CAPACITY.message(words)
    if instance.attempt == 0 or _is_last_rung(instance, books, now):
        failed = CreateFailed(
            instance=instance.name,
            node_group=instance.node_group,
            error_class=NO_CAPACITY.error_class,
            code=NO_CAPACITY.code,
            message=message,
        )
        return (*_rested(instance, books, failed, now), failed)
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
    left = DuplicateInstanceDetected(instance_id=instance_id, instance=instance.name, reason=NEVER_PLACED)
    return (left, refused, *_rested(instance, books, refused, now))


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


def exhausted(instance: Instance, group: NodeGroup, now: datetime) -> CreateFailed:
    """Every offering has refused this wish, some of them in answer to another one of the group."""
    if instance.error_class is ErrorClass.OUT_OF_RESOURCES:
        return give_up(instance)
    if group.closed is not None:
        return CreateFailed(
            instance=instance.name,
            node_group=instance.node_group,
            error_class=ErrorClass.OTHER,
            code=group.closed.code,
            message=group.closed.message,
        )
    rest = next((rest for rest in group.rests if _lasts(rest, group, now) and _refused_since(instance, rest)), None)
    if rest is None:
        return give_up(instance)
    return CreateFailed(
        instance=instance.name,
        node_group=instance.node_group,
        error_class=ErrorClass.OUT_OF_RESOURCES,
        code=rest.code,
        message=rest.message,
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
