"""Defects in giving up what takes too long."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from app.domain import deadlines
from app.domain.instance.events import CancelReason, DeleteReason, InstanceCancelled
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from tests.simulation.defects import Change, Defect

_overdue = deadlines._overdue


def _not_overdue(*states: InstanceState) -> Any:
    def overdue(instance: Instance, *rest: Any) -> Any:
        return () if instance.state in states else _overdue(instance, *rest)

    return overdue


def _overdue_at_once(instance: Instance, spec: Any, command: Any, now: Any) -> Any:
    return _overdue(instance, spec, replace(command, failed_expiry=timedelta(minutes=1)), now)


def _patient(instance: Instance, spec: Any, command: Any, now: Any) -> Any:
    patient = spec.model_copy(update={"create_timeout": 3 * spec.create_timeout})
    return _overdue(instance, patient, command, now)


def _cancel_expired(instance: Instance, reason: DeleteReason) -> Any:
    del reason
    return InstanceCancelled(instance=instance.name, node_group=instance.node_group, reason=CancelReason.DELETED)


DEADLINES = (
    Defect(
        name="never-give-up-wishes",
        words="a wish without a machine never fails",
        changes=lambda: [
            Change(
                holder=deadlines,
                name="_overdue",
                new=_not_overdue(InstanceState.REQUESTED, InstanceState.SUBMITTING),
            )
        ],
    ),
    Defect(
        name="never-give-up-slow-machines",
        words="a machine that never runs never fails",
        changes=lambda: [Change(holder=deadlines, name="_overdue", new=_not_overdue(InstanceState.PROVISIONING))],
    ),
    Defect(
        name="never-expire-failures",
        words="a failed instance that nobody collects is kept for ever",
        changes=lambda: [Change(holder=deadlines, name="_overdue", new=_not_overdue(InstanceState.FAILED))],
    ),
    Defect(
        name="give-up-wishes-late",
        words="a wish without a machine fails after three times its time",
        changes=lambda: [Change(holder=deadlines, name="_overdue", new=_patient)],
    ),
    Defect(
        name="expire-failures-at-once",
        words="a failed instance goes before the autoscaler has seen it",
        changes=lambda: [Change(holder=deadlines, name="_overdue", new=_overdue_at_once)],
    ),
    Defect(
        name="cancel-what-expires",
        words="a failed instance that expires is cancelled, whatever became of its order",
        changes=lambda: [Change(holder=deadlines, name="release", new=_cancel_expired)],
    ),
    Defect(
        name="keep-the-switched-off",
        words="machines that the operator wants deleted when switched off stay",
        changes=lambda: [Change(holder=deadlines, name="_overdue", new=_not_overdue(InstanceState.STOPPED))],
    ),
)
