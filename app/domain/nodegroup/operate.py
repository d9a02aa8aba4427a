"""What an operator may do to a node group by hand: decisions that stay in the log with their reason."""

from app.domain.books import Books
from app.domain.envelope import Decision
from app.domain.instance.events import DeleteReason
from app.domain.nodegroup.commands import DrainNodeGroup, PauseNodeGroup, ResumeNodeGroup
from app.domain.nodegroup.decide import release
from app.domain.nodegroup.events import (
    BreakerClosed,
    BreakerClosing,
    NodeGroupPaused,
    NodeGroupResumed,
    ScaleDownRequested,
)
from app.domain.nodegroup.state import NodeGroup
from app.errors import InvalidRequest, NotFound

_LONGEST_REASON = 500


def pause(command: PauseNodeGroup, books: Books) -> Decision:
    """Keep the group from growing. A paused group stays paused, with the reason of the first pause.

    Raises:
        NotFound: no such group.
        InvalidRequest: no reason, or one that is too long.
    """
    group = _group(command, books)
    if group.paused_at is not None:
        return Decision()
    return Decision((NodeGroupPaused(node_group=group.name, operator=command.operator, reason=command.reason),))


def resume(command: ResumeNodeGroup, books: Books) -> Decision:
    """Let the group grow again, whether an operator kept it from that, its settings, or machines that never joined.

    Raises:
        NotFound: no such group.
        InvalidRequest: no reason, or one that is too long.
    """
    group = _group(command, books)
    closed = (BreakerClosed(node_group=group.name, reason=BreakerClosing.OPERATOR),) if group.joining.is_open else ()
    if group.paused_at is None and group.closed is None:
        return Decision(closed)
    resumed = NodeGroupResumed(node_group=group.name, operator=command.operator, reason=command.reason)
    return Decision((resumed, *closed))


def drain(command: DrainNodeGroup, books: Books) -> Decision:
    """Pause the group and give every instance back that counts in its target size.

    Raises:
        NotFound: no such group.
        InvalidRequest: no reason, or one that is too long.
    """
    group = _group(command, books)
    paused = pause(PauseNodeGroup(node_group=group.name, operator=command.operator, reason=command.reason), books)
    live = sorted(books.members(group.name).live.values(), key=lambda instance: instance.ordinal)
    if not live:
        return paused
    scale_down = ScaleDownRequested(
        node_group=group.name, count=len(live), new_target=0, instances=tuple(instance.name for instance in live)
    )
    releases = (event for instance in live for event in release(instance, DeleteReason.DRAINED, books))
    return Decision((*paused.events, scale_down, *releases))


def require_reason(reason: str) -> None:
    """See that an operator says why.

    Raises:
        InvalidRequest: no reason, or one that is too long.
    """
    length = len(reason.strip())
    if not 0 < length <= _LONGEST_REASON:
        must = f"must be 1 to {_LONGEST_REASON} characters"
        raise InvalidRequest(f"reason {must}, has {length}: say why, those who look later will ask")


def _group(command: PauseNodeGroup | ResumeNodeGroup | DrainNodeGroup, books: Books) -> NodeGroup:
    require_reason(command.reason)
    if command.node_group not in books.groups:
        known = ", ".join(books.group_order) or "none"
        raise NotFound(f"there is no node group {command.node_group!r}: known are {known}")
    return books.groups[command.node_group]
