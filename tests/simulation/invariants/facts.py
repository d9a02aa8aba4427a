"""What holds for every fact, at the moment it is published; `story` is the instance's before the fact."""

from collections.abc import Callable, Iterator

from app.domain.cloud import CatalogueChanged, DuplicateInstanceDetected
from app.domain.envelope import Event, Recorded
from app.domain.instance.events import (
    CancelReason,
    CreateAttempted,
    CreateFailed,
    CreateRuledOut,
    DeleteReason,
    DeleteRequested,
    ErrorClass,
    FailureCode,
    InstanceAdopted,
    InstanceCancelled,
    InstanceCreated,
    InstanceGone,
    InstanceLost,
    InstanceRequested,
    InstanceStateObserved,
)
from app.domain.instance.lifecycle import InstanceState, Phase, phase_of
from app.domain.nodegroup.events import ScaleUpRequested
from app.reconcile.jobs.observe import LIST_LAG
from app.reconcile.jobs.upkeep import FAILED_EXPIRY
from app.rpc.interceptors import ACTOR
from app.simulator.records import Status
from tests.simulation.stage import Stage
from tests.simulation.witness import Story

_SIGHTINGS = 3
_MOST_WITHDRAWN = 5
_OUT_OF_STOCK = {FailureCode.OUT_OF_STOCK, FailureCode.INSUFFICIENT_FUNDS, FailureCode.QUOTA_EXCEEDED}

Fact = Callable[[Stage, Recorded[Event], Story | None], Iterator[str]]


def the_log_has_no_gaps_and_no_backward_times(
    stage: Stage, item: Recorded[Event], _story: Story | None
) -> Iterator[str]:
    """Positions count on by one, times never go back, and every event says who caused it."""
    log = stage.witness.log
    if item.position != len(log) + 1:
        yield f"position {item.position} follows {len(log)}"
    if log and item.recorded_at < log[-1].recorded_at:
        yield f"position {item.position} was recorded before its predecessor"
    if not item.cause.actor or not item.cause.correlation_id:
        yield f"position {item.position} has no cause"


def growth_stays_below_the_maximum(stage: Stage, item: Recorded[Event], _story: Story | None) -> Iterator[str]:
    """No scale-up leads beyond a group's maximum, and none into a retired group."""
    event = item.event
    if isinstance(event, ScaleUpRequested):
        most = stage.witness.maxima.get(event.node_group, 0)
        if event.new_target > most:
            yield f"{event.node_group} grew to {event.new_target} of at most {most}"


def names_are_never_used_again(_stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """A name is minted for one wish."""
    if isinstance(item.event, InstanceRequested) and story is not None:
        yield f"{item.event.instance} is wanted a second time"


def only_the_autoscaler_gives_back(stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """Nothing is given back unasked but what failed long ago and what the operator wants gone when switched off."""
    event = item.event
    if not isinstance(event, DeleteRequested) or story is None:
        return
    if event.reason is DeleteReason.SCALE_DOWN and item.cause.actor != ACTOR:
        yield f"{event.instance} is to go, and nobody asked for it"
    if event.reason is DeleteReason.FAILED_EXPIRED:
        age = None if story.failed_at is None else item.recorded_at - story.failed_at
        if age is None or age.total_seconds() < FAILED_EXPIRY.total_seconds() - stage.clock_slack_s:
            yield f"{event.instance} expired {age} after it failed"
    if event.reason is DeleteReason.STOPPED_TOO_LONG:
        spec = stage.books.groups[event.node_group].spec
        if spec.stopped_action != "delete":
            yield f"{event.instance} is to go because it is switched off, and its group says to leave it"


def nothing_is_cancelled_in_flight(stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """A wish is dropped only while no machine may exist for it: no create call open, none of unknown outcome."""
    event = item.event
    if not isinstance(event, InstanceCancelled) or story is None:
        return
    if story.open_attempt is not None:
        yield f"{event.instance} was cancelled ({event.reason}) with attempt {story.open_attempt.attempt} open"
    if story.machine is not None:
        yield f"{event.instance} was cancelled ({event.reason}) and has the machine {story.machine}"
    if event.reason is CancelReason.TARGET_DECREASED and stage.cloud.known.order(event.instance).under_way:
        yield f"{event.instance} was released while its create call was under way"


def an_order_waits_for_the_last_one(_stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """Attempts count up, and a new one begins only when the outcome of the last one is in the log."""
    event = item.event
    if isinstance(event, CreateAttempted) and story is not None:
        if story.open_attempt is not None:
            yield f"{event.instance}: attempt {event.attempt} begins while {story.open_attempt.attempt} is open"
        if story.machine is not None or story.ended or story.delete_requested:
            yield f"{event.instance} is ordered although it has a machine, is deleted or has ended"
        if event.attempt != story.attempts + 1:
            yield f"{event.instance}: attempt {event.attempt} follows {story.attempts}"


def a_refused_offering_is_used_up(_stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """What was out of stock is not ordered again for the same wish: the next place or contract is."""
    event = item.event
    if isinstance(event, CreateAttempted) and story is not None and (event.location, event.contract) in story.closed:
        yield f"{event.instance}: {event.contract} in {event.location} was refused before"


def running_does_not_lead_back(_stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """A stale listing does not make a running machine one that is coming."""
    event = item.event
    if not isinstance(event, InstanceStateObserved) or story is None:
        return
    if story.state == InstanceState.RUNNING and event.state is InstanceState.PROVISIONING:
        yield f"{event.instance} ran and is {event.state} again"


def an_empty_catalogue_changes_nothing(_stage: Stage, item: Recorded[Event], _story: Story | None) -> Iterator[str]:
    """A catalogue without entries is an error of the cloud's, not the end of everything it sells."""
    event = item.event
    if isinstance(event, CatalogueChanged) and event.withdrawn_count > _MOST_WITHDRAWN:
        yield f"{event.withdrawn_count} instance types were withdrawn at once"


def doubt_ends_by_looking_long_enough(stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """An unknown order is ruled out after several lists without its host name, over the time that lists may lag.

    A stranger of that name does not stand in the way once nothing is going to be ordered again.
    """
    event = item.event
    if not isinstance(event, CreateRuledOut) or story is None:
        return
    if story.unknown_at is None:
        yield f"{event.instance} was ruled out and was never unknown"
        return
    if not story.called:
        return  # the process did not know whether its intent was written, or died before it made the call
    seconds = (item.recorded_at - story.unknown_at).total_seconds()
    order = stage.cloud.known.order(event.instance)
    is_given_up = story.failed_at is not None or story.delete_requested
    looks = order.lists_without_ours if is_given_up else order.lists_without_it
    if seconds < LIST_LAG.total_seconds() - stage.clock_slack_s or looks < _SIGHTINGS:
        yield f"{event.instance} was ruled out after {seconds} s and {looks} lists"


def nothing_is_written_off_without_the_clouds_word(
    stage: Stage, item: Recorded[Event], story: Story | None
) -> Iterator[str]:
    """An instance ends only after the cloud said of its machine, asked by id, that it is no more."""
    event = item.event
    if not isinstance(event, InstanceLost | InstanceGone) or story is None:
        return
    if story.machine is None:
        yield f"{event.instance} ended and has no machine"
        return
    known = stage.cloud.known
    word = known.last_word.get(story.machine, "never heard of")
    if word is not None and phase_of(word) is not Phase.ENDED:
        yield f"{event.instance} was written off, and the cloud's last word of its machine was {word}"
    if isinstance(event, InstanceLost) and known.absences.get(story.machine, 0) < 2:
        yield f"{event.instance} was written off after {known.absences.get(story.machine, 0)} lists without it"


def what_ended_stays_ended(stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """Gone and cancelled are for ever; only what was lost without our asking may be found again.

    And a wish that an older backup held, which may have come true since.
    """
    event = item.event
    if story is None or not story.ended or not isinstance(event, InstanceAdopted | InstanceCreated | CreateAttempted):
        return
    if not isinstance(event, InstanceAdopted) or (story.ended != InstanceLost.type and not story.dropped):
        yield f"{event.instance} ended as {story.ended} and then: {event.type}"
    elif event.instance in stage.witness.released:
        yield f"{event.instance} was given back and is taken in again"


def only_our_machines_are_taken_in(stage: Stage, item: Recorded[Event], _story: Story | None) -> Iterator[str]:
    """Adopted or created, the machine is one that we ordered, under this name and for this group."""
    event = item.event
    if not isinstance(event, InstanceAdopted | InstanceCreated):
        return
    machine = stage.world.state.instances.get(event.instance_id)
    if machine is None or machine.foreign or machine.hostname != event.instance:
        words = "never existed" if machine is None else f"is {machine.hostname}, foreign: {machine.foreign}"
        yield f"{event.instance} took in {event.instance_id}, which {words}"


def an_old_stock_out_is_not_the_new_order(stage: Stage, item: Recorded[Event], story: Story | None) -> Iterator[str]:
    """What is left of an order that was never placed is not taken for what became of the next one, elsewhere."""
    event = item.event
    if not isinstance(event, InstanceCreated) or story is None or story.open_attempt is None:
        return
    machine, order = stage.world.state.instances.get(event.instance_id), story.open_attempt
    if machine is not None and machine.status == Status.NO_CAPACITY and machine.location != order.location:
        yield f"{event.instance} took {event.instance_id} in {machine.location} for its order in {order.location}"
    if event.instance_id in story.had:
        yield f"{event.instance} took {event.instance_id} again, which an order before its last had made"


def nothing_wanted_is_surplus(stage: Stage, item: Recorded[Event], _story: Story | None) -> Iterator[str]:
    """A machine too many is ours, and no live instance stands on it."""
    event = item.event
    if not isinstance(event, DuplicateInstanceDetected):
        return
    machine = stage.world.state.instances.get(event.instance_id)
    if machine is None or machine.foreign:
        yield f"{event.instance_id} was called too many and is not ours"
    for instance in stage.books.listed_instances():
        if instance.instance_id == event.instance_id and instance.state.is_live:
            yield f"{event.instance_id} was called too many and is {instance.name}'s"


def failures_have_the_right_class(_stage: Stage, item: Recorded[Event], _story: Story | None) -> Iterator[str]:
    """Out of stock, money or quota is class 1, so the autoscaler tries another group; nothing else is."""
    event = item.event
    if isinstance(event, CreateFailed):
        scarce = event.code in _OUT_OF_STOCK
        if scarce is not (event.error_class is ErrorClass.OUT_OF_RESOURCES):
            yield f"{event.instance} failed with {event.code} as class {event.error_class}"


FACTS: tuple[Fact, ...] = (
    the_log_has_no_gaps_and_no_backward_times,
    growth_stays_below_the_maximum,
    names_are_never_used_again,
    only_the_autoscaler_gives_back,
    nothing_is_cancelled_in_flight,
    an_order_waits_for_the_last_one,
    a_refused_offering_is_used_up,
    running_does_not_lead_back,
    an_empty_catalogue_changes_nothing,
    doubt_ends_by_looking_long_enough,
    nothing_is_written_off_without_the_clouds_word,
    what_ended_stays_ended,
    only_our_machines_are_taken_in,
    an_old_stock_out_is_not_the_new_order,
    nothing_wanted_is_surplus,
    failures_have_the_right_class,
)
