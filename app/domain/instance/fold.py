"""The fold of an instance's events: what each makes of it."""

from datetime import datetime
from decimal import Decimal
from typing import assert_never

from app.domain.envelope import Recorded
from app.domain.instance.events import (
    AnyInstanceEvent,
    CreateAttempted,
    CreateFailed,
    CreateOutcomeUnknown,
    CreateRefused,
    CreateRuledOut,
    DeleteAttempted,
    DeleteRefused,
    DeleteRequested,
    ErrorClass,
    FetchOutcome,
    InstanceAdopted,
    InstanceCancelled,
    InstanceCreated,
    InstanceGone,
    InstanceLost,
    InstanceRequested,
    InstanceStateObserved,
    NodeDoubted,
    NodeJoined,
    NodeMeasured,
    NodePreparationAttempted,
    NodePrepared,
    NodeRegistered,
    ProviderIdLearned,
    ProviderIdRepairAttempted,
    ScriptAssigned,
    ScriptFetched,
)
from app.domain.instance.lifecycle import InstanceState, Phase, phase_of
from app.domain.instance.state import Instance
from app.domain.offering import Offering
from app.domain.records import replace


def begin(recorded: Recorded[InstanceRequested | InstanceAdopted]) -> Instance:
    """The first event of a stream."""
    event = recorded.event
    instance = Instance(
        name=event.instance,
        node_group=event.node_group,
        state=InstanceState.REQUESTED,
        provider_id=event.provider_id,
        ordinal=recorded.position,
        requested_at=recorded.recorded_at,
        requested_by=recorded.cause.actor,
        correlation_id=recorded.cause.correlation_id,
    )
    return evolve(instance, recorded)


def evolve(instance: Instance, recorded: Recorded[AnyInstanceEvent]) -> Instance:
    """Fold one event. Never raises and never judges: what was recorded has happened."""
    placed = replace(instance, version=recorded.version, position=recorded.position)
    event = recorded.event
    match event:
        case InstanceRequested():
            return placed
        case CreateAttempted() | InstanceCreated() | CreateRefused() | CreateOutcomeUnknown() | CreateRuledOut():
            return _evolve_creation(placed, event, recorded.recorded_at)
        case CreateFailed():
            return replace(
                placed,
                state=placed.state if placed.state is InstanceState.DELETING else InstanceState.FAILED,
                error_class=event.error_class,
                error_code=event.code,
                error_message=event.message,
                failed_at=recorded.recorded_at,
            )
        case InstanceStateObserved():
            return _observed(placed, event, recorded.recorded_at)
        case (
            ProviderIdLearned()
            | NodeRegistered()
            | NodeJoined()
            | NodeMeasured()
            | NodeDoubted()
            | ProviderIdRepairAttempted()
            | NodePreparationAttempted()
            | NodePrepared()
        ):
            return _evolve_node(placed, event, recorded.recorded_at)
        case ScriptAssigned() | ScriptFetched():
            return _evolve_script(placed, event, recorded.recorded_at)
        case DeleteRequested():
            return replace(
                placed,
                state=placed.state if placed.state.is_ended else InstanceState.DELETING,
                delete_requested_at=recorded.recorded_at,
                delete_requested_by=recorded.cause.actor,
                delete_reason=event.reason,
                retry_at=None,
            )
        case DeleteAttempted() | DeleteRefused():
            return _evolve_deletion(placed, event)
        case InstanceGone() | InstanceLost():
            state = InstanceState.GONE if isinstance(event, InstanceGone) else InstanceState.LOST
            return replace(placed, state=state, ended_at=recorded.recorded_at, end_reason=event.end, cost=event.cost)
        case InstanceAdopted():
            return replace(
                placed,
                state=InstanceState.PROVISIONING,
                node_group=event.node_group,
                provider_id=event.provider_id,
                instance_id=event.instance_id,
                instance_type=event.instance_type,
                image=event.image,
                ended_at=None,
                end_reason=None,
                cancel_reason=None,
                cost=None,
            )
        case InstanceCancelled():
            return replace(
                placed,
                state=InstanceState.CANCELLED,
                ended_at=recorded.recorded_at,
                cancel_reason=event.reason,
                attempted_at=None,
                unknown_since=None,
            )
        case _:
            assert_never(event)


def _evolve_deletion(instance: Instance, event: DeleteAttempted | DeleteRefused) -> Instance:
    if isinstance(event, DeleteAttempted):
        return replace(instance, delete_attempt=event.attempt, delete_code=None, retry_at=event.retry_at)
    return replace(instance, delete_code=event.code, retry_at=event.retry_at)


def _evolve_script(instance: Instance, event: ScriptAssigned | ScriptFetched, at: datetime) -> Instance:
    if isinstance(event, ScriptAssigned):
        assigned = replace(instance, script=event.script, script_token=event.token_digest, script_fetches=0)
        return replace(assigned, script_fetched_at=None, script_source=None)
    asked = replace(instance, script_fetches=instance.script_fetches + 1)
    if event.outcome is not FetchOutcome.SERVED:
        return asked
    return replace(asked, script_fetched_at=at, script_source=event.source)


def _evolve_creation(
    instance: Instance,
    event: CreateAttempted | InstanceCreated | CreateRefused | CreateOutcomeUnknown | CreateRuledOut,
    at: datetime,
) -> Instance:
    match event:
        case CreateAttempted():
            return replace(
                instance,
                state=InstanceState.SUBMITTING,
                attempt=event.attempt,
                attempted_at=at,
                unknown_since=None,
                retry_at=None,
                instance_type=event.instance_type,
                image=event.image,
                location=event.location,
                contract=event.contract,
                price_per_hour=event.price_per_hour,
                billed_before=Decimal(0),
                price_since=None,
                currency=event.currency,
            )
        case InstanceCreated():
            return replace(
                instance,
                state=InstanceState.PROVISIONING if _wanted(instance) else instance.state,
                instance_id=event.instance_id,
                provider_id=event.provider_id,
                created_at=instance.created_at or at,
                attempted_at=None,
                unknown_since=None,
                retry_at=None,
            )
        case CreateRefused():
            closed = instance.closed_rungs
            if event.rung_closed and instance.instance_type and instance.location and instance.contract:
                rung = Offering(
                    instance_type=instance.instance_type, location=instance.location, contract=instance.contract
                )
                closed = (*closed, rung)
            refused = replace(
                instance,
                state=InstanceState.REQUESTED if _wanted(instance) else instance.state,
                closed_rungs=closed,
                attempted_at=None,
                unknown_since=None,
                retry_at=event.retry_at,
                # An order that was taken and never placed is refused late: what it left is not the instance's machine.
                instance_id=None,
                earlier_ids=(*instance.earlier_ids, *([instance.instance_id] if instance.instance_id else [])),
                machine_status=None,
                status_since=None,
                created_at=None,
                billed_before=Decimal(0),
                price_since=None,
                ip=None,
                os_volume_id=None,
                volume_ids=(),
            )
            if instance.error_class is ErrorClass.OUT_OF_RESOURCES and event.error_class is ErrorClass.OTHER:
                return refused  # what another group may help against is not hidden by what came after it
            return replace(refused, error_class=event.error_class, error_code=event.code, error_message=event.message)
        case CreateOutcomeUnknown():
            return replace(instance, unknown_since=instance.unknown_since or at)
        case CreateRuledOut():
            return replace(
                instance,
                state=InstanceState.REQUESTED if _wanted(instance) else instance.state,
                attempted_at=None,
                unknown_since=None,
            )


def _evolve_node(
    instance: Instance,
    event: ProviderIdLearned
    | NodeRegistered
    | NodeJoined
    | NodeMeasured
    | NodeDoubted
    | ProviderIdRepairAttempted
    | NodePreparationAttempted
    | NodePrepared,
    at: datetime,
) -> Instance:
    match event:
        case ProviderIdLearned():
            return replace(instance, provider_id=event.provider_id, provider_id_learned=True)
        case NodeRegistered():
            return replace(instance, node_uid=event.uid, node_registered_at=at, node_problem=None)
        case NodeJoined():
            return replace(instance, node_ready_at=at)
        case NodeMeasured():
            return replace(instance, node_measured_at=at)
        case NodeDoubted():
            return replace(instance, node_problem=event.message)
        case ProviderIdRepairAttempted():
            return replace(instance, repaired_uid=event.uid)
        case NodePreparationAttempted():
            before = instance.node_prepared if instance.prepared_uid == event.uid else ()
            return replace(instance, prepared_uid=event.uid, node_preparing=event.changes, node_prepared=before)
        case NodePrepared():
            done = (*instance.node_prepared, *event.changes)
            return replace(instance, node_preparing=(), node_prepared=done)


def _wanted(instance: Instance) -> bool:
    """Still a wish for a machine, as opposed to failed or deleting."""
    return instance.state in {InstanceState.REQUESTED, InstanceState.SUBMITTING, InstanceState.PROVISIONING}


def _observed(instance: Instance, event: InstanceStateObserved, at: datetime) -> Instance:
    running = event.state is InstanceState.RUNNING
    stopped = event.state is InstanceState.STOPPED
    is_new_word = event.status != instance.machine_status
    # What spoke against the deletion was the machine's status, and that is another now.
    refused_for_the_old_word = is_new_word and instance.delete_code is not None
    observed = replace(
        instance.repriced(event.price_per_hour, at),
        state=event.state,
        machine_status=event.status,
        status_since=at if is_new_word else instance.status_since,
        retry_at=None if refused_for_the_old_word else instance.retry_at,
        contract=event.contract or instance.contract,
        location=event.location or instance.location,
        created_at=event.created_at or instance.created_at or at,
        ip=event.ip or instance.ip,
        os_volume_id=event.os_volume_id or instance.os_volume_id,
        volume_ids=event.volume_ids or instance.volume_ids,
        running_at=(instance.running_at or at) if running else instance.running_at,
        stopped_at=(instance.stopped_at or at) if stopped else None,
    )
    if not _is_never_placed(instance, event):
        return observed
    return replace(observed, created_at=None, price_per_hour=None, billed_before=Decimal(0), price_since=None)


def _is_never_placed(instance: Instance, event: InstanceStateObserved) -> bool:
    """Once said of a machine that never ran it holds, whatever the record is called later, until the machine runs."""
    phase = phase_of(event.status)
    if phase in {Phase.RUNNING, Phase.STOPPED}:
        return False
    return instance.was_never_placed or (phase is Phase.NO_CAPACITY and instance.running_at is None)
