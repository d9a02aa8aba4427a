"""The life of one instance: who asked, what was tried and answered, why it ended, what it cost."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.billing import cost_of, rounded
from app.domain.cloud import NEVER_PLACED, DuplicateInstanceDeleted, DuplicateInstanceDetected
from app.domain.envelope import Event, Recorded
from app.domain.explain.page import Page, Section
from app.domain.instance import events as e
from app.domain.instance.fold import begin, evolve
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.events import ScaleUpRequested
from app.domain.words import at, span

_OPERATOR = "operator"
_ENDS = {
    e.End.DELETED: "its machine was deleted and is proven gone",
    e.End.EVICTED: "Verda took the spot machine back, as spot machines may be at any time",
    e.End.DISCONTINUED: "somebody else or Verda ended the machine; nobody here asked for it",
    e.End.VANISHED: "the machine is at the cloud no more, and nobody here asked for it",
}
_CANCELS = {
    e.CancelReason.TARGET_DECREASED: "the target size was decreased before a machine was ordered; nothing was bought",
    e.CancelReason.DELETED: "it was given back while no machine existed for it; nothing was bought",
    e.CancelReason.GROUP_RETIRED: "its group left the configuration before a machine was ordered; nothing was bought",
    e.CancelReason.NEVER_CREATED: "it was given back, and no order for it had created anything",
}
_DELETES = {
    e.DeleteReason.SCALE_DOWN: "as a scale-down",
    e.DeleteReason.FAILED_EXPIRED: "because its creation had failed and nobody took it back",
    e.DeleteReason.STOPPED_TOO_LONG: "because it was switched off for too long",
    e.DeleteReason.DRAINED: "because an operator drained its group",
}


DOUBLES = (DuplicateInstanceDetected.type, DuplicateInstanceDeleted.type)
"""Types of events that tell of machines too many."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """An instance, every event of it, what else its call recorded, machines too many, the time it is told at."""

    instance: Instance
    events: Sequence[Recorded[Event]]
    beside: Sequence[Recorded[Event]]
    doubles: Sequence[Recorded[Event]]
    now: datetime


def explain_instance(story: Story) -> Page:
    """One page on one instance."""
    instance = story.instance
    return Page(
        title=f"{instance.name} of node group {instance.node_group} is {instance.state}.",
        sections=(
            Section(question="Who asked?", answer=tuple(_who_asked(story))),
            Section(question="What was tried, and what was answered?", answer=tuple(_tried(story))),
            Section(question="Where does it stand?", answer=tuple(_standing(story))),
            Section(question="What did it cost?", answer=tuple(_cost(story))),
        ),
    )


def _who_asked(story: Story) -> Iterator[str]:
    instance, first = story.instance, story.events[0]
    if isinstance(first.event, e.InstanceAdopted):
        yield f"{at(first.recorded_at)}  nobody in this log: {_taken_over(first.event, first.cause.actor)}."
        return
    asked = [item.event for item in story.beside if isinstance(item.event, ScaleUpRequested)]
    mine = next((event for event in asked if instance.name in event.instances), None)
    many = f", {mine.delta} more in one call, target size {mine.new_target}" if mine is not None else ""
    yield f"{at(instance.requested_at)}  {instance.requested_by}{many} (correlation id {instance.correlation_id})."


def _taken_over(event: e.InstanceAdopted, actor: str) -> str:
    if event.operator is not None:
        return f"the machine {event.instance_id} was taken over by {event.operator}: {event.reason}"
    if actor == _OPERATOR:  # of a log that does not say more
        return f"the machine {event.instance_id} was taken over by an operator"
    return f"the machine {event.instance_id} carries our mark and was taken over by {actor}"


def _tried(story: Story) -> Iterator[str]:
    told = False
    for item in sorted((*story.events, *story.doubles), key=lambda item: item.position):
        sentence = _attempt(item.event)
        if sentence is not None:
            told = True
            yield f"{at(item.recorded_at)}  {sentence}"
    if not told:
        yield "Nothing yet: no order was placed."


def _attempt(event: Event) -> str | None:
    match event:
        case e.CreateAttempted():
            price = "price unknown" if event.price_per_hour is None else f"{event.price_per_hour} {event.currency}/h"
            what = f"{event.instance_type} {event.contract} in {event.location}, {price}"
            return f"order {event.attempt}: {what}, image {event.image}."
        case e.InstanceCreated(found=e.Found.ANSWERED):
            return f"the cloud answered: the machine is {event.instance_id}."
        case e.InstanceCreated():
            return f"the machine {event.instance_id} was found by its name: the order had gone through."
        case e.CreateRefused():
            again = f"; the next try not before {at(event.retry_at)}" if event.retry_at is not None else ""
            return f"refused, {event.code}: {event.message}{again}."
        case e.CreateOutcomeUnknown():
            return f"no clear answer ({event.reason}): it may have been bought, so it is looked for, not ordered again."
        case e.CreateRuledOut():
            return f"looked for since {at(event.looked_since)} and never seen: that order bought nothing."
        case e.CreateFailed():
            return f"given up and told to the autoscaler, {event.code}: {event.message}."
        case _:
            return _observation(event)


def _observation(event: Event) -> str | None:
    match event:
        case e.InstanceAdopted():
            return f"the machine {event.instance_id} was found at the cloud and taken over."
        case e.InstanceStateObserved():
            return f"{event.news}."
        case e.ScriptFetched():
            return f"its startup script was asked for from {event.source}: {event.outcome}."
        case e.NodePrepared():
            return f"node {event.node} is prepared: {', '.join(event.changes)}."
        case e.NodeRegistered():
            return f"it is node {event.node}, {span(timedelta(seconds=event.waited_s))} after it was seen running."
        case e.NodeJoined():
            return f"ready for pods, {span(timedelta(seconds=event.waited_s))} after it was seen running."
        case e.NodeDoubted():
            return f"doubt about its node, {event.doubt}: {event.message}."
        case e.DeleteAttempted():
            return f"delete call {event.attempt} for {event.instance_id}, OS volume included."
        case DuplicateInstanceDetected():
            return f"a machine too many, {event.instance_id}, carries its name ({event.reason}): it is deleted."
        case DuplicateInstanceDeleted():
            return f"{event.instance_id}, the machine too many, is gone."
        case e.DeleteRefused():
            return f"the cloud did not take it, {event.code}: {event.message}; next try {at(event.retry_at)}."
        case _:
            return None


def _standing(story: Story) -> Iterator[str]:
    instance = story.instance
    if instance.delete_requested_at is not None and instance.delete_reason is not None:
        reason = _DELETES.get(instance.delete_reason, f"({instance.delete_reason})")
        yield f"{at(instance.delete_requested_at)}  given back by {instance.delete_requested_by}, {reason}."
    if instance.ended_at is not None:
        why = _ENDS[instance.end_reason] if instance.end_reason is not None else None
        if instance.cancel_reason is not None:
            why = _CANCELS.get(instance.cancel_reason, str(instance.cancel_reason))
        yield f"{at(instance.ended_at)}  it ended: {why}."
        return
    yield _open_state(instance, story.now)


def _open_state(instance: Instance, now: datetime) -> str:
    match instance.state:
        case InstanceState.REQUESTED if instance.retry_at is not None and instance.retry_at > now:
            return f"Wanted; the next order is placed at {at(instance.retry_at)}."
        case InstanceState.REQUESTED:
            return "Wanted; the next run of the provision job orders it."
        case InstanceState.SUBMITTING if instance.unknown_since is not None:
            return f"An order may have gone through; its machine is looked for since {at(instance.unknown_since)}."
        case InstanceState.SUBMITTING:
            return "An order is under way."
        case InstanceState.PROVISIONING:
            return f"The machine exists and is not running yet; the cloud says {instance.machine_status or 'nothing'}."
        case InstanceState.RUNNING:
            return f"The machine runs since {at(instance.running_at or now)}."
        case InstanceState.STOPPED:
            return f"The machine is switched off since {at(instance.stopped_at or now)} and still paid for."
        case InstanceState.FAILED:
            return f"Its creation failed ({instance.error_code}); it waits for the autoscaler to take it back."
        case _:
            return "The deletion is repeated until the cloud proves the machine gone."


def _cost(story: Story) -> Iterator[str]:
    yield from _own_cost(story)
    yield from _cost_of_doubles(story)


def _cost_of_doubles(story: Story) -> Iterator[str]:
    """A machine too many is taken to cost what its namesake did when it was found; it is in nobody's books."""
    ends = {
        item.event.instance_id: item.recorded_at
        for item in story.doubles
        if isinstance(item.event, DuplicateInstanceDeleted)
    }
    for item in story.doubles:
        if not isinstance(item.event, DuplicateInstanceDetected) or item.event.reason == NEVER_PLACED:
            continue
        time = ends.get(item.event.instance_id, story.now) - item.recorded_at
        lives = [then for since, then in _lives(story.events) if since <= item.recorded_at]
        price = lives[-1].price_per_hour if lives else None
        if price is None:
            yield f"On top {item.event.instance_id}, the machine too many, for {span(time)}; its price is not known."
            continue
        cost = f"{rounded(cost_of(price, time))} {story.instance.currency}"
        yield f"On top {cost} for {item.event.instance_id}, the machine too many: {span(time)} at {price} an hour."


def _own_cost(story: Story) -> Iterator[str]:
    instance, until = story.instance, story.instance.ended_at or story.now
    cost = instance.cost if instance.cost is not None else instance.cost_until(until)
    if instance.created_at is None:
        yield "Nothing: no machine was ever created for it."
        return
    if cost is None or instance.price_per_hour is None:
        yield f"The machine existed for {span(until - instance.created_at)}; its price is not known."
        return
    price = f"{instance.price_per_hour} an hour"
    if instance.price_since is not None:
        price += f" since {at(instance.price_since)}, another price before"
    counting = "" if instance.ended_at is not None else ", and counting"
    yield f"{cost} {instance.currency}: {span(until - instance.created_at)} at {price}{counting}."
    if instance.running_at is None:
        yield "Nothing of it was of use: it was never seen running."
        return
    idle = _when_running(story.events)
    if idle is not None and instance.running_at > instance.created_at:
        share, time = idle.cost_until(instance.running_at), instance.running_at - instance.created_at
        yield f"Of it {share} {instance.currency} for {span(time)} before it was seen running."


def _when_running(events: Sequence[Recorded[Event]]) -> Instance | None:
    """The instance as it was when it was first seen running, at its price of that time."""
    return next((then for _, then in _lives(events) if then.running_at is not None), None)


def _lives(events: Sequence[Recorded[Event]]) -> Iterator[tuple[datetime, Instance]]:
    """The instance as it was after each of its events."""
    instance: Instance | None = None
    for item in events:
        if isinstance(item.event, e.InstanceRequested | e.InstanceAdopted) and instance is None:
            instance = begin(item)  # type: ignore[arg-type] # narrowed by its event
        elif instance is not None:
            instance = evolve(instance, item)  # type: ignore[arg-type] # a stream has events of one kind
        if instance is not None:
            yield item.recorded_at, instance
