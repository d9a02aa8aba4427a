"""A node group: what it has, whether it may grow now, and what became of the last wishes."""

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from decimal import Decimal

from app.domain.billing import rounded
from app.domain.books import Books
from app.domain.cluster.learning import kind_of
from app.domain.envelope import Event, Recorded
from app.domain.explain.page import Page, Section
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.budget import excess, short_runway
from app.domain.nodegroup.events import (
    NodeGroupPaused,
    NodeGroupResumed,
    ScaleDownRequested,
    ScaleUpRejected,
    ScaleUpRequested,
    TargetSizeDecreased,
)
from app.domain.nodegroup.joining import words
from app.domain.nodegroup.state import FOR_EVER, NodeGroup
from app.domain.words import at, span

_LAST = 8


def explain_group(books: Books, group: NodeGroup, events: Sequence[Recorded[Event]], now: datetime) -> Page:
    """One page on one node group; `events` are those of its stream."""
    return Page(
        title=f"Node group {group.name}: {_settings(books, group)}.",
        sections=(
            Section(question="What does it have?", answer=tuple(_has(books, group))),
            Section(question="May it grow now?", answer=tuple(_growth(books, group, now))),
            Section(question="What went wrong lately?", answer=tuple(_troubles(books, group, now))),
            Section(question="Who asked last?", answer=tuple(_asked(events))),
        ),
    )


def _settings(books: Books, group: NodeGroup) -> str:
    low, high = books.size_limits(group)
    spec = group.spec
    offers = " or ".join(spec.contracts)
    return f"{low} to {high} x {spec.instance_type}, {offers}, in {' or '.join(spec.locations)}"


def _has(books: Books, group: NodeGroup) -> Iterator[str]:
    members = books.members(group.name)
    counts = Counter(instance.state for instance in members.listed)
    states = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
    yield f"Target size {members.target_size}" + (f": {states}." if states else ", no instances.")
    learned = books.cluster.learned.get(kind_of(group.spec))
    if learned is not None:
        yield f"Its template follows node {learned.node}, measured at {at(learned.learned_at)}."
    billed = [instance for instance in members.listed if instance.instance_id and instance.price_per_hour is not None]
    if billed:
        hourly = sum((instance.price_per_hour or Decimal(0) for instance in billed), Decimal(0))
        yield f"They cost {rounded(hourly).normalize():f} {billed[0].currency} an hour."


def _growth(books: Books, group: NodeGroup, now: datetime) -> Iterator[str]:
    obstacles = tuple(_obstacles(books, group))
    if obstacles:
        yield "No."
        yield from obstacles
        return
    room = group.spec.max_size - books.target_size(group.name)
    yield f"Yes, by up to {room}: whether it does is the autoscaler's decision, which asks when pods do not fit."
    if books.cloud.reachable is False:
        yield f"But the cloud does not answer since {_when(books.cloud.since)}, so orders wait: {books.cloud.trouble}."
    account = books.cloud.account
    if account is not None and group.spec.kind != "webhook":
        yield f"But Verda takes no orders from this account, next try at {at(account.until)}: {account.message}."
    if group.closed is not None:
        yield f"But every order fails until its settings change or it is resumed: {group.closed.message}."
    for rest in group.rests:
        if now < rest.until < FOR_EVER:
            what = f"{rest.offering.contract} in {rest.offering.location}"
            yield f"{what} is tried last until {at(rest.until)}, for it was refused: {rest.code}."
    if group.spec.instance_type in books.cloud.withdrawn:
        yield f"But {group.spec.instance_type} has left the catalogue, so orders may be refused."


def _obstacles(books: Books, group: NodeGroup) -> Iterator[str]:
    spec, target = group.spec, books.target_size(group.name)
    if group.paused_at is not None:
        yield f"Paused since {at(group.paused_at)} by {group.paused_by}: {group.pause_reason}."
    if group.retired:
        yield "It left the configuration and only shrinks."
        return
    if spec.instance_type not in books.cloud.catalogue:
        yield f"The catalogue has no instance type {spec.instance_type}, so the autoscaler is not told of the group."
        return
    if group.joining.is_open:
        yield f"{words(group)}. Of the last one: {group.joining.message}."
    if target >= spec.max_size:
        yield f"Target size {target} has reached max_size {spec.max_size}."
    over_budget = excess(books, group, 1)
    if over_budget is not None:
        yield f"Budget: {over_budget}."
    short = short_runway(books, group, 1)
    if short is not None:
        yield f"Balance: {short}."


def _troubles(books: Books, group: NodeGroup, now: datetime) -> Iterator[str]:
    mine = (instance for instance in books.instances.values() if instance.node_group == group.name)
    troubled = sorted((one for one in mine if _trouble(one)), key=lambda one: one.position)[-_LAST:]
    if not troubled:
        yield "Nothing that is known of."
    for instance in troubled:
        yield f"{instance.name}: {_trouble(instance)}" + _since(instance, now)


def _trouble(instance: Instance) -> str | None:
    if instance.state is InstanceState.LOST:
        return f"lost, {instance.end_reason}"
    if instance.error_code is not None and (instance.failed_at is not None or instance.instance_id is None):
        return f"{instance.error_code}: {instance.error_message}"
    return None


def _since(instance: Instance, now: datetime) -> str:
    time = instance.ended_at or instance.failed_at
    return "." if time is None else f", {span(now - time)} ago."


def _asked(events: Sequence[Recorded[Event]]) -> Iterator[str]:
    kinds = (
        *(ScaleUpRequested, ScaleUpRejected, ScaleDownRequested, TargetSizeDecreased),
        *(NodeGroupPaused, NodeGroupResumed),
    )
    last = [item for item in events if isinstance(item.event, kinds)][-_LAST:]
    if not last:
        yield "Nobody has asked for anything yet."
    for item in last:
        yield f"{at(item.recorded_at)}  {item.cause.actor}: {_request(item.event)}"


def _request(event: Event) -> str:
    match event:
        case ScaleUpRequested():
            return f"{event.delta} more, granted: target size {event.new_target}."
        case ScaleUpRejected():
            return f"{event.delta} more, refused: {event.message}."
        case ScaleDownRequested():
            return f"gives back {event.count}: target size {event.new_target}."
        case TargetSizeDecreased():
            return f"takes back {event.delta} wishes: target size {event.new_target}."
        case NodeGroupPaused():
            return f"paused by {event.operator}: {event.reason}."
        case NodeGroupResumed():
            return f"resumed by {event.operator}: {event.reason}."
        case _:
            raise TypeError(event.type)


def _when(time: datetime | None) -> str:
    return "an unknown time" if time is None else at(time)
