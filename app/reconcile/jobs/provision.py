"""Order the machines that are wanted: intent, call, outcome, each durable before the next."""

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import ClassVar

from app.domain.envelope import Cause
from app.domain.ids import Mark
from app.domain.instance.commands import (
    AttemptCreate,
    RecordCreated,
    RecordCreateRefused,
    RecordCreateUnknown,
    Refusal,
)
from app.domain.instance.decide import is_due_for_creation
from app.domain.instance.events import CreateAttempted, Found
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.machine import Order, OsVolume
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.service import Installation
from app.errors import CloudError, NoCapacity, NotSent, OutcomeUnknown, Rejected, StoreError, Throttled
from app.log import INSTANCE, bound, get_logger
from app.reconcile.jobs.job import Bench
from app.reconcile.jobs.scripts import ScriptDesk
from app.reconcile.jobs.sweep import OS_VOLUME_SUFFIX

DEFAULT_OS_VOLUME_GB = 100
"""Always sent: a spot machine whose volume the API chose itself leaves it behind, billed, when it is evicted."""

_REFUSALS: dict[type[CloudError], Refusal] = {
    NotSent: Refusal.NOT_SENT,
    Rejected: Refusal.REJECTED,
    Throttled: Refusal.THROTTLED,
    NoCapacity: Refusal.NO_CAPACITY,
}

_log = get_logger(job="provision")


def order_for(
    attempt: CreateAttempted,
    spec: NodeGroupSpec,
    installation: Installation,
    request: str | None = None,
    script_id: str | None = None,
) -> Order:
    """What the create call sends for an attempt.

    `request` is the correlation id of the call that wants the machine, `script_id` the startup script made for it.
    """
    mark = Mark(cluster=installation.cluster_name, installation=installation.installation_id, group=attempt.node_group)
    return Order(
        hostname=attempt.instance,
        instance_type=attempt.instance_type,
        image=attempt.image,
        location=attempt.location,
        contract=attempt.contract,
        description=mark.text(request),
        tags=mark.tags(),
        ssh_key_ids=spec.ssh_key_ids,
        startup_script_id=script_id or spec.startup_script_id,
        os_volume=OsVolume(
            name=f"{attempt.instance}{OS_VOLUME_SUFFIX}",
            size_gb=spec.os_volume_size_gb or DEFAULT_OS_VOLUME_GB,
            permanent=spec.os_volume_permanent,
        ),
    )


@dataclass(slots=True, kw_only=True)
class Provision:
    """Starts the create calls that are due on a pool and returns at once; each call records its own outcome.

    `parallel` calls at most run at a time, no group may take all of them, and the group with the fewest goes next, so a
    group whose orders hang does not hold up the others. While the account is refused, one order at a time tries again.
    """

    name: ClassVar[str] = "provision"
    bench: Bench
    executor: Executor
    parallel: int
    desk: ScriptDesk | None = None
    wake: Callable[[], None] = lambda: None
    _in_flight: dict[str, str] = field(default_factory=dict)
    _guard: threading.Condition = field(default_factory=threading.Condition)

    def run(self) -> None:
        """Mark what a crash interrupted, then start what is due as far as the pool has room."""
        self._mark_interrupted()
        for instance in self._take_due():
            self.executor.submit(self._create, instance)

    @property
    def in_flight(self) -> int:
        """Create calls under way."""
        return len(self._in_flight)

    def wait_idle(self, timeout_s: float) -> bool:
        """Wait until no create call is under way; whether that came about in time."""
        with self._guard:
            return self._guard.wait_for(lambda: not self._in_flight, timeout_s)

    def _mark_interrupted(self) -> None:
        """An attempt without an outcome that nobody here works on: a crash came between, so its outcome is unknown."""
        with self._guard:
            working = set(self._in_flight)
        for instance in self.bench.books.listed_instances():
            if instance.create_is_open and instance.unknown_since is None and instance.name not in working:
                reason = "interrupted before the answer was recorded"
                command = RecordCreateUnknown(instance=instance.name, attempt=instance.attempt, reason=reason)
                self.bench.record(command, self.bench.cause(self.name))

    def _take_due(self) -> Sequence[Instance]:
        now = self.bench.clock.now()
        with self._guard:
            due = [
                instance
                for instance in self.bench.books.listed_instances()
                if is_due_for_creation(instance, now)
                and instance.name not in self._in_flight
                and self.bench.first_look.is_open_to(instance.ordinal)
            ]
            parallel = 1 if self.bench.books.cloud.account else self.parallel
            taken = fair_share(due, Counter(self._in_flight.values()), parallel)
            self._in_flight.update({instance.name: instance.node_group for instance in taken})
        return taken

    def _create(self, instance: Instance) -> None:
        # The request's own id, so that one id leads from the autoscaler's call to the machine.
        cause = Cause(actor=f"reconcile/{self.name}", correlation_id=instance.correlation_id)
        has_changed = False
        try:
            with bound(correlation_id=instance.correlation_id, instance=instance.name, node_group=instance.node_group):
                has_changed = self._attempt(instance, cause)
        except StoreError as error:
            _log.error("cannot write, the attempt is picked up later", **{INSTANCE: instance.name}, error=error.message)
        except Exception:  # noqa: BLE001 - the edge of a pool thread: it must be seen; looking resolves the attempt
            _log.exception("create attempt broke off", **{INSTANCE: instance.name})
        finally:
            with self._guard:
                self._in_flight.pop(instance.name, None)
                self._guard.notify_all()
            if has_changed:
                self.wake()  # else it would find the same again, at once and without end

    def _attempt(self, instance: Instance, cause: Cause) -> bool:
        """Whether anything was recorded."""
        recorded = self.bench.record(AttemptCreate(instance=instance.name), cause)
        attempts = [item.event for item in recorded if isinstance(item.event, CreateAttempted)]
        if not attempts:
            return bool(recorded)
        attempt = attempts[0]
        books = self.bench.books
        spec = books.groups[attempt.node_group].spec
        try:
            script_id = None if self.desk is None else self.desk.script_for(attempt, cause)
            self._insist(attempt)
            order = order_for(attempt, spec, books.installation, instance.correlation_id, script_id)
            instance_id = self.bench.cloud.create_instance(order)
        except CloudError as error:
            self.bench.record(outcome(attempt, error), cause)
            _log.warning("order failed", error=error.message)
        else:
            created = RecordCreated(instance=instance.name, instance_id=instance_id, found=Found.ANSWERED)
            self.bench.record(created, cause)
            _log.info(
                "instance ordered",
                instance_id=instance_id,
                instance_type=attempt.instance_type,
                location=attempt.location,
                contract=str(attempt.contract),
            )
        return True

    def _insist(self, attempt: CreateAttempted) -> None:
        """Storing a startup script takes its time, and whoever wanted the machine may have given it back meanwhile.

        Raises:
            NotSent: nobody wants it any more.
        """
        instance = self.bench.books.instances[attempt.instance]
        if instance.state is not InstanceState.SUBMITTING or instance.attempt != attempt.attempt:
            raise NotSent("the wish was given back before the order was sent", code="overtaken")


def outcome(attempt: CreateAttempted, error: CloudError) -> RecordCreateRefused | RecordCreateUnknown:
    """What to record for a create call that raised: only proven refusals are refusals."""
    refusal = _REFUSALS.get(type(error))
    if refusal is None:
        assert isinstance(error, OutcomeUnknown)  # noqa: S101 - the closed set of outcomes
        return RecordCreateUnknown(instance=attempt.instance, attempt=attempt.attempt, reason=error.message)
    return RecordCreateRefused(
        instance=attempt.instance,
        attempt=attempt.attempt,
        refusal=refusal,
        status=error.status,
        code=error.code,
        message=error.message,
        retry_after=error.retry_after,
    )


def fair_share(due: Sequence[Instance], working: Counter[str], parallel: int) -> Sequence[Instance]:
    """Which wishes go next: oldest first within a group, the group with the fewest calls under way first."""
    cap = max(parallel - 2, 1)
    waiting: dict[str, list[Instance]] = {}
    for instance in sorted(due, key=lambda wish: wish.ordinal, reverse=True):
        waiting.setdefault(instance.node_group, []).append(instance)
    busy = Counter(working)
    taken: list[Instance] = []
    while busy.total() < parallel:
        groups = [group for group, wishes in waiting.items() if wishes and busy[group] < cap]
        if not groups:
            break
        group = min(groups, key=lambda name: (busy[name], waiting[name][-1].ordinal))
        taken.append(waiting[group].pop())
        busy[group] += 1
    return taken
