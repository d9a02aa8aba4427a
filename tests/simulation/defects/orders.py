"""Defects in ordering machines."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from app.domain.books import Books
from app.domain.envelope import Cause, Decision
from app.domain.ids import Mark
from app.domain.instance import decide as instance_decide
from app.domain.instance import ladder, verdict
from app.domain.instance.commands import (
    AttemptCreate,
    RecordCreated,
    RecordCreateRefused,
    RecordCreateUnknown,
    Refusal,
)
from app.domain.instance.events import CreateAttempted, ErrorClass, Found
from app.domain.instance.ladder import next_rung
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import Offering
from app.errors import CloudError, OutcomeUnknown
from app.reconcile.jobs import observe, provision, scripts
from app.reconcile.jobs.observe import LIST_LAG, Observe
from app.reconcile.jobs.provision import Provision
from app.reconcile.jobs.scripts import Scripts
from tests.simulation.defects import Change, Defect

_outcome = provision.outcome
_order_for = provision.order_for
_rule_out_unknown = Observe._rule_out_unknown


def _order_without_intent(self: Provision, instance: Instance, cause: Cause) -> None:
    books = self.bench.books
    group = books.groups[instance.node_group]
    rung = next_rung(instance, group, self.bench.clock.now())
    if rung is None or instance.state is not InstanceState.REQUESTED or group.retired:
        self.bench.record(AttemptCreate(instance=instance.name), cause)
        return
    guess = instance_decide._attempt(instance, group, rung, books)
    order = _order_for(guess, group.spec, books.installation)
    try:
        instance_id = self.bench.cloud.create_instance(order)
    except CloudError as error:
        for item in self.bench.record(AttemptCreate(instance=instance.name), cause):
            if isinstance(item.event, CreateAttempted):
                self.bench.record(_outcome(item.event, error), cause)
        return
    self.bench.record(AttemptCreate(instance=instance.name), cause)
    created = RecordCreated(instance=instance.name, instance_id=instance_id, found=Found.ANSWERED)
    self.bench.record(created, cause)


def _refused(attempt: CreateAttempted, error: CloudError) -> RecordCreateRefused:
    return RecordCreateRefused(
        instance=attempt.instance,
        attempt=attempt.attempt,
        refusal=Refusal.NOT_SENT,
        status=error.status,
        code=error.code,
        message=error.message,
        retry_after=timedelta(seconds=2),
    )


def _unknown_is_refused_if(fits: Any) -> Any:
    def outcome(attempt: CreateAttempted, error: CloudError) -> Any:
        if isinstance(error, OutcomeUnknown) and fits(error):
            return _refused(attempt, error)
        return _outcome(attempt, error)

    return outcome


def _order(**changes: Any) -> Any:
    return lambda *args: replace(_order_for(*args), **changes)


def _order_with_wrong_group(*args: Any) -> Any:
    order = _order_for(*args)
    mark = Mark.parse(order.description)
    assert mark is not None
    return replace(order, description=replace(mark, group="gpu").text())


def _attempt_any(command: AttemptCreate, books: Books, now: datetime) -> Decision:
    instance = books.instances[command.instance]
    group = books.groups[instance.node_group]
    rung = next_rung(instance, group, now)
    return Decision() if rung is None else Decision((instance_decide._attempt(instance, group, rung, books),))


def _due_with_the_released(self: Provision) -> list[Instance]:
    wanted = {InstanceState.REQUESTED, InstanceState.CANCELLED}
    due = [item for item in self.bench.books.instances.values() if item.state in wanted]
    taken = [item for item in due if item.name not in self._in_flight][: self.parallel - len(self._in_flight)]
    self._in_flight.update({item.name: item.node_group for item in taken})
    return taken


def _first_rung(instance: Instance, group: NodeGroup, now: datetime) -> Offering | None:
    del instance, now
    return group.spec.ladder()[0]


def _mark_all_interrupted(self: Provision) -> None:
    for instance in self.bench.books.listed_instances():
        if instance.create_is_open and instance.unknown_since is None:
            command = RecordCreateUnknown(instance=instance.name, attempt=instance.attempt, reason="x")
            self.bench.record(command, self.bench.cause(self.name))


def _rule_out_at_once(self: Observe, machines: Any, taken_at: datetime, cause: Cause) -> None:
    _rule_out_unknown(self, machines, taken_at + LIST_LAG, cause)


ORDERS = (
    Defect(
        name="order-without-intent",
        words="the create call is made first and written down afterwards",
        changes=lambda: [Change(holder=Provision, name="_attempt", new=_order_without_intent)],
    ),
    Defect(
        name="retry-unknown-orders",
        words="a create call of unknown outcome is repeated without looking for its machine",
        changes=lambda: [Change(holder=provision, name="outcome", new=_unknown_is_refused_if(lambda _: True))],
    ),
    Defect(
        name="retry-timeouts",
        words="a create call that timed out counts as not executed",
        changes=lambda: [
            Change(holder=provision, name="outcome", new=_unknown_is_refused_if(lambda error: error.code == "timeout"))
        ],
    ),
    Defect(
        name="take-5xx-for-refusals",
        words="an HTTP status from 500 on counts as not executed",
        changes=lambda: [
            Change(
                holder=provision,
                name="outcome",
                new=_unknown_is_refused_if(lambda error: error.status is not None and error.status >= 500),
            )
        ],
    ),
    Defect(
        name="take-odd-answers-for-refusals",
        words="an answer without a readable id counts as not executed",
        changes=lambda: [
            Change(
                holder=provision,
                name="outcome",
                new=_unknown_is_refused_if(lambda error: error.code == "unreadable_answer"),
            )
        ],
    ),
    Defect(
        name="forget-interrupted-orders",
        words="orders that a crash interrupted are not looked for after the start",
        changes=lambda: [Change(holder=Provision, name="_mark_interrupted", new=lambda _: None)],
    ),
    Defect(
        name="doubt-orders-under-way",
        words="orders under way count as interrupted",
        changes=lambda: [Change(holder=Provision, name="_mark_interrupted", new=_mark_all_interrupted)],
    ),
    Defect(
        name="rule-out-at-first-sight",
        words="one listing without the machine proves that an unknown order did nothing",
        changes=lambda: [Change(holder=observe, name="_SIGHTINGS_TO_RULE_OUT", new=1)],
    ),
    Defect(
        name="rule-out-without-patience",
        words="three listings prove it however fast they follow each other, though lists lag",
        changes=lambda: [Change(holder=Observe, name="_rule_out_unknown", new=_rule_out_at_once)],
    ),
    Defect(
        name="order-without-mark",
        words="machines carry no mark",
        changes=lambda: [Change(holder=provision, name="order_for", new=_order(description=""))],
    ),
    Defect(
        name="order-with-wrong-group",
        words="machines carry another group's mark",
        changes=lambda: [Change(holder=provision, name="order_for", new=_order_with_wrong_group)],
    ),
    Defect(
        name="order-what-was-given-back",
        words="a wish that is given back while its startup script is being stored is ordered all the same",
        changes=lambda: [Change(holder=Provision, name="_insist", new=lambda *_: None)],
    ),
    Defect(
        name="order-without-script",
        words="machines are ordered without the startup script that was made for them",
        changes=lambda: [Change(holder=provision, name="order_for", new=_order(startup_script_id=None))],
    ),
    Defect(
        name="leave-scripts",
        words="startup scripts stay at the cloud",
        changes=lambda: [Change(holder=Scripts, name="run", new=lambda _: None)],
    ),
    Defect(
        name="sweep-every-script",
        words="other installations' startup scripts are deleted as left behind",
        changes=lambda: [Change(holder=scripts, name="is_script_name", new=lambda *_: True)],
    ),
    Defect(
        name="forget-interrupted-uploads",
        words="startup scripts whose upload was not answered are not looked for",
        changes=lambda: [Change(holder=Scripts, name="_left", new=lambda *_: ())],
    ),
    Defect(
        name="order-without-system-disk",
        words="the API chooses the system disk, and leaves it behind when a spot machine is evicted",
        changes=lambda: [Change(holder=provision, name="order_for", new=_order(os_volume=None))],
    ),
    Defect(
        name="recreate-released-slots",
        words="a cancelled wish is ordered again",
        changes=lambda: [
            Change(holder=Provision, name="_take_due", new=_due_with_the_released),
            Change(holder=instance_decide, name="attempt_create", new=_attempt_any),
        ],
    ),
    Defect(
        name="order-the-refused-again",
        words="the next attempt does not take the next place or contract",
        changes=lambda: [Change(holder=instance_decide, name="next_rung", new=_first_rung)],
    ),
    Defect(
        name="stock-outs-are-other-errors",
        words="no capacity is told as class 99, so no other group is tried",
        changes=lambda: [
            Change(holder=module, name="NO_CAPACITY", new=replace(verdict.NO_CAPACITY, error_class=ErrorClass.OTHER))
            for module in (ladder, verdict)
        ],
    ),
)
