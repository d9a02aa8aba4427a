"""Decisions about node groups: what a command may do to the books, all or nothing."""

from app.domain.books import Books
from app.domain.envelope import Decision, Event
from app.domain.ids import ProviderIdTemplate
from app.domain.instance.events import (
    CancelReason,
    DeleteReason,
    DeleteRequested,
    InstanceRequested,
)
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.instance.switching import cancelled
from app.domain.nodegroup.budget import excess, short_runway
from app.domain.nodegroup.commands import ApplyConfiguration, DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.domain.nodegroup.events import (
    BreakerClosed,
    BreakerClosing,
    NodeGroupConfigured,
    NodeGroupRetired,
    Rejection,
    ScaleDownRequested,
    ScaleUpRejected,
    ScaleUpRequested,
    TargetSizeDecreased,
)
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.nodegroup.state import NodeGroup
from app.domain.service import ConfigurationLoaded
from app.errors import Conflict, InvalidRequest, NotFound, RuleViolation


def served_group(books: Books, node_group: str) -> NodeGroup:
    """The node group of that name as the autoscaler may name it.

    Raises:
        NotFound: there is none, or it is not served (yet).
    """
    if node_group not in books.served_names:
        raise NotFound(f"there is no node group {node_group!r}", node_group=node_group)
    return books.groups[node_group]


def increase_size(command: IncreaseSize, books: Books) -> Decision:
    """Accept a scale-up as a whole or refuse it as a whole.

    Raises:
        InvalidRequest: delta is not positive.
        NotFound: no such group.
        Conflict: a minted name was used before.
    """
    if command.delta <= 0:
        raise InvalidRequest(f"delta must be positive, is {command.delta}", node_group=command.node_group)
    group = served_group(books, command.node_group)
    target = books.target_size(group.name)
    if group.retired:
        message = f"node group {group.name} left the configuration and only shrinks"
        return _rejected(command, target, Rejection.RETIRED, message)
    if group.paused_at is not None:
        message = f"node group {group.name} is paused since {group.paused_at:%Y-%m-%d %H:%M} UTC by {group.paused_by}"
        return _rejected(command, target, Rejection.PAUSED, f"{message}: {group.pause_reason}")
    new_target = target + command.delta
    if new_target > group.spec.max_size:
        message = f"{target} + {command.delta} is more than max_size {group.spec.max_size} of {group.name}"
        return _rejected(command, target, Rejection.MAX_SIZE, message)
    over_budget = excess(books, group, command.delta)
    if over_budget is not None:
        return _rejected(command, target, Rejection.BUDGET, over_budget)
    short = short_runway(books, group, command.delta)
    if short is not None:
        return _rejected(command, target, Rejection.BALANCE, short)
    if len(set(command.names)) != command.delta or any(name in books.instances for name in command.names):
        raise Conflict("a minted instance name was used before", node_group=group.name)
    scale_up = ScaleUpRequested(
        node_group=group.name, delta=command.delta, new_target=new_target, instances=command.names
    )
    template = ProviderIdTemplate(group.spec.provider_id_template)
    wishes = tuple(
        InstanceRequested(
            instance=name, node_group=group.name, provider_id=template.provider_id(name=name, group=group.name)
        )
        for name in command.names
    )
    return Decision((scale_up, *wishes))


def _rejected(command: IncreaseSize, target: int, reason: Rejection, message: str) -> Decision:
    event = ScaleUpRejected(
        node_group=command.node_group, delta=command.delta, target_size=target, reason=reason, message=message
    )
    return Decision((event,), RuleViolation(message, node_group=command.node_group, reason=reason))


def decrease_target_size(command: DecreaseTargetSize, books: Books) -> Decision:
    """Release the newest wishes for which no machine may exist, as many as there are up to the number asked.

    Releasing fewer than asked is a success: a refusal would halt the autoscaler's whole loop, and touching a machine
    would break the contract.

    Raises:
        InvalidRequest: delta is not negative.
        NotFound: no such group.
        RuleViolation: nothing can be released.
    """
    if command.delta >= 0:
        raise InvalidRequest(f"delta must be negative, is {command.delta}", node_group=command.node_group)
    group = served_group(books, command.node_group)
    members = books.members(group.name)
    unfulfilled = [instance for instance in members.listed if instance.state is InstanceState.REQUESTED]
    released = unfulfilled[command.delta :]
    if not released:
        raise RuleViolation(
            f"all {members.target_size} instances of {group.name} exist, are being created or have failed: "
            "none can be released, delete them by name",
            node_group=group.name,
        )
    decreased = TargetSizeDecreased(
        node_group=group.name,
        delta=-command.delta,
        new_target=members.target_size - len(released),
        instances=tuple(instance.name for instance in released),
    )
    dropped = (event for one in released for event in cancelled(one, CancelReason.TARGET_DECREASED, books))
    return Decision((decreased, *dropped))


def delete_nodes(command: DeleteNodes, books: Books) -> Decision:
    """Accept the deletion of every named instance or of none. Deleting and ended ones are fine: that is idempotence.

    Of one that may return it is written down once: should its machine come back, nobody wants it any more.
    Minimum size is not checked here: the autoscaler checks it itself, and failed instances must go at any size.

    Raises:
        NotFound: no such group.
        InvalidRequest: an instance is unknown or belongs to another group.
    """
    group = served_group(books, command.node_group)
    wanted: list[Instance] = []
    lost: list[Instance] = []
    for name in dict.fromkeys(command.instances):
        instance = books.instances.get(name)
        if instance is None:
            raise InvalidRequest(f"{name!r} is no instance of ours", node_group=group.name, instance=name)
        if instance.node_group != group.name:
            raise InvalidRequest(
                f"{name} belongs to node group {instance.node_group}, not to {group.name}", instance=name
            )
        if instance.state.is_live:
            wanted.append(instance)
        elif instance.may_return:
            lost.append(instance)
    final = (
        DeleteRequested(instance=instance.name, node_group=instance.node_group, reason=DeleteReason.SCALE_DOWN)
        for instance in lost
    )
    releases = (*(event for one in wanted for event in release(one, DeleteReason.SCALE_DOWN, books)), *final)
    if not wanted:
        return Decision(releases)
    scale_down = ScaleDownRequested(
        node_group=group.name,
        count=len(wanted),
        new_target=books.target_size(group.name) - len(wanted),
        instances=tuple(instance.name for instance in wanted),
    )
    return Decision((scale_down, *releases))


def release(instance: Instance, reason: DeleteReason, books: Books) -> tuple[Event, ...]:
    """What lets go of a live instance: a deletion if a machine may exist, else a cancellation."""
    if instance.may_exist:
        return (DeleteRequested(instance=instance.name, node_group=instance.node_group, reason=reason),)
    return cancelled(instance, CancelReason.DELETED, books)


def apply_configuration(command: ApplyConfiguration, books: Books) -> Decision:
    """Bring the groups of the books in line with the configuration; one that left it is retired, never forgotten."""
    events: list[Event] = []
    known_settings = (
        books.installation.configuration_sha256,
        books.installation.cluster_name,
        books.installation.max_hourly_cost,
        books.installation.balance_runway_s,
    )
    settings = (command.sha256, command.cluster_name, command.max_hourly_cost, command.balance_runway_s)
    if settings != known_settings:
        events.append(
            ConfigurationLoaded(
                sha256=command.sha256,
                cluster_name=command.cluster_name,
                node_groups=len(command.specs),
                max_hourly_cost=command.max_hourly_cost,
                balance_runway_s=command.balance_runway_s,
            )
        )
    for spec in command.specs:
        known = books.groups.get(spec.name)
        if known is None or known.retired or known.spec != spec:
            if known is not None and known.joining.is_open:
                events.append(BreakerClosed(node_group=spec.name, reason=BreakerClosing.RECONFIGURED))
            events.append(configured(spec))
    named = {spec.name for spec in command.specs}
    for group in (books.groups[name] for name in books.group_order):
        if group.name not in named and not group.retired:
            events.extend(_retired(group, books))
    return Decision(tuple(events))


def configured(spec: NodeGroupSpec) -> NodeGroupConfigured:
    """The event that names a group."""
    return NodeGroupConfigured(
        node_group=spec.name,
        min_size=spec.min_size,
        max_size=spec.max_size,
        instance_type=spec.instance_type,
        spec=spec,
    )


def _retired(group: NodeGroup, books: Books) -> list[Event]:
    listed = books.members(group.name).listed
    unsent = [instance for instance in listed if instance.state is InstanceState.REQUESTED]
    retired = NodeGroupRetired(node_group=group.name, instances=len(listed) - len(unsent))
    return [retired, *(event for one in unsent for event in cancelled(one, CancelReason.GROUP_RETIRED, books))]
