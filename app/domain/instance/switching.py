"""Machines of our own that may be on. No list shows what was switched on and not recorded: only its wish knows of it.

A start call without an answer is repeated, at the same machine; until it is answered nobody else gets the machine, and
if it never is, the machine is switched off.
"""

from app.domain.books import Books
from app.domain.cloud import DuplicateInstanceDetected
from app.domain.envelope import Event
from app.domain.ids import own_instance_id, place_of
from app.domain.instance.events import CancelReason, InstanceCancelled
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import Offering


def taken(instance: Instance, group: NodeGroup, books: Books) -> tuple[Offering, ...]:
    """Machines of our own that others have, may have, or have left to be switched off: there is one of each."""
    if group.spec.kind != "webhook":
        return ()
    places = {one.location for one in _others(instance, books)}
    left = (place_of(instance_id) for instance_id in books.cloud.surplus)
    places |= {machine for node_group, machine in left if node_group == group.name}
    return tuple(rung for rung in group.spec.ladder() if rung.location in places)


def doubted(instance: Instance, group: NodeGroup) -> Offering | None:
    """The machine of our own that the wish may have switched on: it has to be asked again, whichever else is free."""
    in_doubt = group.spec.kind == "webhook" and instance.start_in_doubt
    return instance.tried if in_doubt and instance.tried in group.spec.ladder() else None


def cancelled(instance: Instance, reason: CancelReason, books: Books) -> tuple[Event, ...]:
    """The end of a wish for which no machine is known, with what it may have switched on."""
    cancel = InstanceCancelled(instance=instance.name, node_group=instance.node_group, reason=reason)
    in_doubt = instance.start_in_doubt or instance.unknown_since is not None
    return (cancel, *left_on(instance, books)) if in_doubt else (cancel,)


def left_on(instance: Instance, books: Books) -> tuple[Event, ...]:
    """The intent to switch off the machine of our own that a wish has tried, unless another wish has that machine."""
    group = instance.node_group
    if books.groups[group].spec.kind != "webhook" or instance.location is None:
        return ()
    if any(one.location == instance.location for one in _others(instance, books)):
        return ()
    instance_id = own_instance_id(group, instance.location, instance.name)
    reason = "may have been switched on"
    return (DuplicateInstanceDetected(instance_id=instance_id, instance=instance.name, reason=reason),)


def _others(instance: Instance, books: Books) -> tuple[Instance, ...]:
    """The other instances of the group that have a machine or may have one."""
    listed = books.members(instance.node_group).listed
    return tuple(one for one in listed if one.name != instance.name and (one.may_exist or one.start_in_doubt))
