"""The breaker of a group whose machines never become nodes: buying more of them helps nobody.

The witness is the autoscaler: it gives such a machine back as one it never saw registered. An API server that is wrong
or out of reach can therefore neither open the breaker nor keep it closed.
"""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime, timedelta

from app.domain.books import Books
from app.domain.envelope import Decision, Event
from app.domain.instance.events import CreateFailed, ErrorClass, FailureCode
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.commands import DeleteNodes, IncreaseSize, RecordJoined
from app.domain.nodegroup.events import (
    BreakerOpened,
    BreakerProbed,
    JoinFailed,
    JoinSucceeded,
    Rejection,
    ScaleUpRejected,
)
from app.domain.nodegroup.state import NodeGroup
from app.domain.pauses import is_over
from app.domain.words import at
from app.errors import RuleViolation

_FIRST_PAUSE = timedelta(minutes=30)
_LONGEST_PAUSE = timedelta(hours=6)
_FAIR_CHANCE = timedelta(minutes=2)
"""What a kubelet needs at least after its machine runs. One that had less was not slow to join but late to run."""


def pause(probes: int) -> timedelta:
    """How long to wait for the next try after so many: half an hour, doubled each time up to six hours."""
    return min(_FIRST_PAUSE * (1 << min(probes, 10)), _LONGEST_PAUSE)


def held_back(command: IncreaseSize, books: Books, now: datetime) -> Decision | None:
    """The refusal of a scale-up while the breaker is open and no try is due; None if it has no say."""
    group = books.groups.get(command.node_group)
    if group is None or group.name not in books.served_names or command.delta <= 0 or not _is_shut(group, now):
        return None
    message = words(group)
    rejected = ScaleUpRejected(
        node_group=group.name,
        delta=command.delta,
        target_size=books.target_size(group.name),
        reason=Rejection.NEVER_JOINED,
        message=message,
    )
    return Decision((rejected,), RuleViolation(message, node_group=group.name, reason=Rejection.NEVER_JOINED))


def _is_shut(group: NodeGroup, now: datetime) -> bool:
    return group.joining.is_open and not is_over(group.joining.probe_at, now, _LONGEST_PAUSE)


def words(group: NodeGroup) -> str:
    """Why a group with an open breaker buys nothing, and what to do."""
    return (
        f"{FailureCode.NEVER_JOINED}: the last {group.joining.failures} machines of {group.name} ran and never became "
        f"nodes; the next is tried from {group.joining.probe_at:%Y-%m-%d %H:%M} UTC on; mend its startup script, join "
        f"token or provider id, then resume {group.name} or change its configuration"
    )


def probe_or_fail(instance: Instance, group: NodeGroup, now: datetime) -> tuple[Event, ...] | None:
    """What the breaker says of a wish that is about to be ordered: nothing, "this one is the try", or "no" (None)."""
    joining = group.joining
    if not joining.is_open or joining.probe == instance.name:
        return ()
    if _is_shut(group, now):
        return None
    probe = joining.probes + 1
    return (BreakerProbed(node_group=group.name, instance=instance.name, probe=probe, next_at=now + pause(probe)),)


def failed_by_breaker(instance: Instance, group: NodeGroup) -> CreateFailed:
    """The wish fails with a code that tells the autoscaler's reader why."""
    return CreateFailed(
        instance=instance.name,
        node_group=group.name,
        error_class=ErrorClass.OTHER,
        code=FailureCode.NEVER_JOINED,
        message=words(group),
    )


def with_failures(command: DeleteNodes, decision: Decision, books: Books, now: datetime) -> Decision:
    """The deletion with what it says about joining: these machines ran, and the autoscaler never saw their nodes."""
    group = books.groups[command.node_group]
    wanted = dict.fromkeys(name for name in command.instances if name in command.unregistered)
    failed = [one for name in wanted if (one := books.instances.get(name)) and _never_joined(one, now)]
    return replace(decision, events=(*decision.events, *_failures(failed, group, now)))


def _never_joined(instance: Instance, now: datetime) -> bool:
    """It ran, and no node of it was ever seen by anybody; one that was not even running says nothing about joining."""
    return (
        instance.state is InstanceState.RUNNING
        and instance.running_at is not None
        and now - instance.running_at >= _FAIR_CHANCE
        and not instance.provider_id_learned
        and instance.node_ready_at is None
    )


def _failures(failed: Iterable[Instance], group: NodeGroup, now: datetime) -> Iterable[Event]:
    in_a_row, limit = group.joining.failures, group.spec.never_joined_breaker
    for instance in failed:
        in_a_row += 1
        ran = now - (instance.running_at or now)
        yield JoinFailed(
            node_group=group.name,
            instance=instance.name,
            in_a_row=in_a_row,
            ran_s=max(int(ran.total_seconds()), 0),
            wished_at=instance.requested_at,
            message=known_of(instance),
        )
    if limit and in_a_row >= limit and in_a_row > group.joining.failures and not group.joining.is_open:
        yield BreakerOpened(node_group=group.name, in_a_row=in_a_row, probe_at=now + pause(0))


def known_of(instance: Instance) -> str:
    """What is known of a machine that is not a node."""
    if instance.node_problem is not None:
        return instance.node_problem
    where = f"at {instance.location or 'an unknown place'}, address {instance.ip or 'unknown'}"
    if instance.node_registered_at is not None:
        return f"{where}: its node registered and was never ready"
    return f"{where}: no node with provider id {instance.provider_id} has registered{boot_evidence(instance)}"


def boot_evidence(instance: Instance) -> str:
    """How far the machine got, by its own startup script; nothing if it is not one that is fetched."""
    if instance.script_fetched_at is not None:
        when = f"{at(instance.script_fetched_at)} UTC from {instance.script_source}"
        return f"; it fetched its startup script at {when}, so it booted and reached us: what comes after that fails"
    if instance.script_token is not None:
        return "; it never fetched its startup script: it has not got that far, or does not reach the script server"
    return ""


def record_joined(command: RecordJoined, books: Books) -> Decision:
    """A machine became a node. It says something only if it was ordered no earlier than the last one that failed."""
    instance = books.instances.get(command.instance)
    if instance is None or not instance.state.is_live:
        return Decision()
    return Decision(success(instance, books.groups[instance.node_group]))


def success(instance: Instance, group: NodeGroup) -> tuple[Event, ...]:
    """The end of a row of failures, if there is one and this machine is younger than its last."""
    joining = group.joining
    if not joining.failures or joining.wished_at is None or instance.requested_at < joining.wished_at:
        return ()
    return (JoinSucceeded(node_group=group.name, instance=instance.name),)
