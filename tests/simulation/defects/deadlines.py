"""Defects in giving up what takes too long."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.domain import deadlines
from app.domain.books import Books
from app.domain.envelope import Event
from app.domain.instance.commands import CheckDeadlines
from app.domain.instance.events import CancelReason, DeleteReason
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.instance.switching import cancelled
from tests.simulation.defects import Change, Defect

Overdue = Callable[[Instance, Books, CheckDeadlines, datetime], Iterable[Event]]

_overdue = deadlines._overdue


def _not_overdue(*states: InstanceState) -> Overdue:
    def overdue(instance: Instance, books: Books, command: CheckDeadlines, now: datetime) -> Iterable[Event]:
        return () if instance.state in states else _overdue(instance, books, command, now)

    return overdue


def _overdue_at_once(instance: Instance, books: Books, command: CheckDeadlines, now: datetime) -> Iterable[Event]:
    return _overdue(instance, books, replace(command, failed_expiry=timedelta(minutes=1)), now)


def _patient(instance: Instance, books: Books, command: CheckDeadlines, now: datetime) -> Iterable[Event]:
    group = books.groups[instance.node_group]
    spec = group.spec.model_copy(update={"create_timeout": 3 * group.spec.create_timeout})
    groups = books.groups.insert(instance.node_group, replace(group, spec=spec))
    return _overdue(instance, replace(books, groups=groups), command, now)


def _cancel_expired(instance: Instance, reason: DeleteReason, books: Books) -> Sequence[Event]:
    del reason
    return cancelled(instance, CancelReason.DELETED, books)


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
