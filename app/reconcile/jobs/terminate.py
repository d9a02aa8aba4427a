"""Give machines back: delete with their OS volumes, again and again, until the cloud no longer has them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, takewhile
from typing import ClassVar, TypeVar

from app.cloud.port import Deletion, DeletionAnswer, DeletionResult
from app.domain.cloud import RecordSurplusGone, Surplus
from app.domain.envelope import Cause
from app.domain.ids import is_own
from app.domain.instance.commands import AttemptDelete, ConfirmEnded, RecordDeleteRefused
from app.domain.instance.decide import is_due_for_deletion
from app.domain.instance.events import DeleteAttempted
from app.domain.instance.lifecycle import Phase, phase_of
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.observation import ObserveMachines
from app.errors import CloudError
from app.log import INSTANCE, INSTANCE_ID, get_logger
from app.reconcile.jobs.job import Bench

_PER_RUN = 50
_SURPLUS_PAUSE_S = 15.0
_LOOKS_S = 60.0
"""Time for look-ups of one kind in one run. When each is slow, deletions must not wait for all of them, nor the run
take so long that the process is taken for stuck."""

_T = TypeVar("_T")

_log = get_logger(job="terminate")


@dataclass(slots=True, kw_only=True)
class Terminate:
    """Deletions that were requested, and machines too many."""

    name: ClassVar[str] = "terminate"
    bench: Bench
    _surplus_not_before: dict[str, float] = field(default_factory=dict)
    _interrupted: set[str] | None = None

    def run(self) -> None:
        """Ask for every deletion that is due; what the cloud did with it shows in the next listings."""
        cause = self.bench.cause(self.name)
        now = self.bench.clock.now()
        interrupted = self._left_by_an_earlier_process()
        listed = self.bench.books.listed_instances()
        due = [instance for instance in listed if is_due_for_deletion(instance, now, interrupted)][:_PER_RUN]
        self._learn_volumes(due, cause)
        names = tuple(instance.name for instance in due)
        command = AttemptDelete(instances=names, interrupted=frozenset(interrupted))
        attempts = [item.event for item in self.bench.record(command, cause) if isinstance(item.event, DeleteAttempted)]
        interrupted.difference_update(names)
        if attempts:
            self._delete(attempts, cause)
        for surplus in self._in_time(sorted(self.bench.books.cloud.surplus.values(), key=self._may_be_asked)):
            self._delete_surplus(surplus, cause)

    def _in_time(self, items: Iterable[_T]) -> Iterator[_T]:
        """As many of them as there is time for; what is left is for a later run."""
        until = self.bench.clock.monotonic() + _LOOKS_S
        return takewhile(lambda _: self.bench.clock.monotonic() < until, items)

    def _may_be_asked(self, surplus: Surplus) -> float:
        return self._surplus_not_before.get(surplus.instance_id, 0.0)

    def _left_by_an_earlier_process(self) -> set[str]:
        """Instances whose deletion was asked for before this process began and not by it yet."""
        if self._interrupted is None:
            self._interrupted = {
                instance.name for instance in self.bench.books.listed_instances() if instance.delete_attempt > 0
            }
        return self._interrupted

    def _learn_volumes(self, due: Sequence[Instance], cause: Cause) -> None:
        """A machine deleted early may have got its volume since the last listing; unnamed it would stay behind.

        Our own have none to leave behind, but like all others they need to have been seen before they can be missed.
        One whose look-up fails, or for which there is no time, is deleted all the same: it costs more than its disk.
        """
        for instance in self._in_time(one for one in due if one.os_volume_id is None):
            if instance.instance_id is None:
                continue
            if is_own(instance.instance_id) and instance.machine_status is not None:
                continue
            try:
                machine = self.bench.cloud.get_instance(instance.instance_id)
            except CloudError:
                continue
            if machine is not None:
                backend = self.bench.cloud.backend
                seen = ObserveMachines(machines=(machine,), backend=backend, claim=False, complete=False)
                self.bench.record(seen, cause)

    def _delete(self, attempts: Sequence[DeleteAttempted], cause: Cause) -> None:
        names = {attempt.instance_id: attempt.instance for attempt in attempts}
        deletions = [self._deletion(attempt) for attempt in attempts]
        try:
            answers = self.bench.cloud.delete_instances(deletions)
        except CloudError as error:
            for name in names.values():
                self.bench.record(RecordDeleteRefused(instance=name, code=error.code, message=error.message), cause)
            return
        gone = [answer for answer in answers if answer.result is DeletionResult.ALREADY_GONE]
        others = [answer for answer in answers if answer.result is not DeletionResult.ALREADY_GONE]
        for answer in chain(others, self._in_time(gone)):
            self._take_answer(names[answer.instance_id], answer, cause)

    def _deletion(self, attempt: DeleteAttempted) -> Deletion:
        spec = self.bench.books.groups[attempt.node_group].spec
        return Deletion(
            instance_id=attempt.instance_id,
            volume_ids=attempt.volume_ids or None,
            permanent=spec.os_volume_permanent,
        )

    def _take_answer(self, name: str, answer: DeletionAnswer, cause: Cause) -> None:
        match answer.result:
            case DeletionResult.ACCEPTED:
                _log.info("deletion taken", **{INSTANCE: name, INSTANCE_ID: answer.instance_id})
            case DeletionResult.REFUSED:
                refused = RecordDeleteRefused(instance=name, code=answer.code, message=answer.message)
                self.bench.record(refused, cause)
            case DeletionResult.ALREADY_GONE:
                self._confirm(name, answer.instance_id, cause)

    def _confirm(self, name: str, instance_id: str, cause: Cause) -> None:
        """The cloud says it is already gone: believed once a look-up says the same."""
        try:
            machine = self.bench.cloud.get_instance(instance_id)
        except CloudError:
            return
        if _is_ended(machine):
            ended = ConfirmEnded(instance=name, instance_id=instance_id, known_by_id=machine is not None)
            self.bench.record(ended, cause)

    def _delete_surplus(self, surplus: Surplus, cause: Cause) -> None:
        now = self.bench.clock.monotonic()
        if self._surplus_not_before.get(surplus.instance_id, now) > now:
            return
        self._surplus_not_before[surplus.instance_id] = now + _SURPLUS_PAUSE_S
        try:
            machine = self.bench.cloud.get_instance(surplus.instance_id)
            if machine is None or _is_ended(machine):
                self.bench.record(RecordSurplusGone(instance_id=surplus.instance_id), cause)
                del self._surplus_not_before[surplus.instance_id]
                return
            volumes = (machine.os_volume_id,) if machine.os_volume_id else None
            permanent = self._is_permanent(surplus.instance)
            deletion = Deletion(instance_id=surplus.instance_id, volume_ids=volumes, permanent=permanent)
            answers = self.bench.cloud.delete_instances([deletion])
            for refused in (answer for answer in answers if answer.result is DeletionResult.REFUSED):
                _log.warning("machine too many not deleted yet", instance_id=surplus.instance_id, error=refused.message)
        except CloudError as error:
            _log.warning("machine too many not deleted yet", instance_id=surplus.instance_id, error=error.message)

    def _is_permanent(self, name: str) -> bool:
        instance = self.bench.books.instances.get(name)
        return instance is None or self.bench.books.groups[instance.node_group].spec.os_volume_permanent


def _is_ended(machine: Machine | None) -> bool:
    return machine is None or phase_of(machine.status) is Phase.ENDED
