"""Look at the cloud and write down what changed; look twice before believing that anything is gone."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import ClassVar

from app.domain import observation, strangers
from app.domain.cloud import RecordSurplus, RecordUnreachable, SettleOrphan
from app.domain.envelope import Cause, Event, Recorded
from app.domain.instance.commands import ConfirmEnded, RuleOutCreate
from app.domain.instance.events import InstanceStateObserved
from app.domain.instance.lifecycle import InstanceState, Phase, is_unheard_of, phase_of
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.ownership import OrphanPolicy
from app.errors import CloudError, OutcomeUnknown, Throttled
from app.log import INSTANCE, get_logger
from app.reconcile.jobs.job import Bench

LIST_LAG = timedelta(seconds=90)
"""How long a machine may be missing from lists after its creation before its absence means anything.

Nothing public says how far Verda's list lags; 60 s is what others design for, and half of that on top is ours.
"""

_SIGHTINGS_TO_RULE_OUT = 3
_MISSES_TO_DOUBT = 2
_MISSES_UNDER_BRAKE = 5
_SMALLEST_MASS = 3
_LOOKUPS_PER_RUN = 20

_log = get_logger(job="observe")


class Suspicion(StrEnum):
    """What can be odd about a listing. Each is counted; none of them changes the books."""

    EMPTY = "empty"
    REPEATED = "repeated"
    UNREADABLE = "unreadable"
    INCOMPLETE = "incomplete"
    """A machine that it lacked, twice, answers to its id."""
    MASS_LOSS = "mass-loss"
    """It lacks more machines than may be believed lost at once."""


@dataclass(slots=True, kw_only=True)
class Observe:
    """Listing → events. Everything it remembers between runs only delays verdicts when a restart loses it."""

    name: ClassVar[str] = "observe"
    bench: Bench
    loss_brake: float
    claim: bool = False
    list_lag: timedelta = LIST_LAG
    orphans: OrphanPolicy = OrphanPolicy.ADOPT
    orphan_grace: timedelta = timedelta(minutes=10)
    suspicious: Callable[[Suspicion], None] = lambda _: None
    wake: Callable[[], None] = lambda: None
    _misses: Counter[str] = field(default_factory=Counter)
    _unseen: Counter[tuple[str, int]] = field(default_factory=Counter)
    _orphan_misses: Counter[str] = field(default_factory=Counter)
    _braking: bool = False

    def run(self) -> None:
        """One listing and what follows from it. A listing that failed changes nothing but the cloud's reachability."""
        cause = self.bench.cause(self.name)
        taken_at = self.bench.clock.now()
        try:
            machines = tuple(self.bench.cloud.list_instances())
        except Throttled as error:
            _log.warning("listing throttled", retry_after=str(error.retry_after))
            return
        except CloudError as error:
            if isinstance(error, OutcomeUnknown) and error.status is not None:
                self.suspicious(Suspicion.UNREADABLE)
            self.bench.record(RecordUnreachable(code=error.code, message=error.message), cause)
            return
        self._judge(machines)
        self._count(machines, taken_at)  # load-bearing: before anything is written, which a full disk may refuse
        listing = observation.ObserveMachines(
            machines=self._with_newcomers_looked_up(machines),
            backend=self.bench.cloud.backend,
            claim=self.claim,
            orphans=self.orphans,
            began_at=None if self.bench.first_look.is_done else self.bench.first_look.began_at,
        )
        self._alarm(self.bench.record(listing, cause))
        if not self.bench.first_look.is_done:
            self.bench.first_look.done()
            self.wake()
        if self._is_whole(machines, taken_at):
            self._rule_out_unknown(machines, taken_at, cause)
        self._look_for_absent(machines, taken_at, cause)
        self._look_for_surplus(machines, cause)
        self._look_for_orphans(machines, taken_at, cause)

    def _alarm(self, recorded: Sequence[Recorded[Event]]) -> None:
        """Say once what a person should look at; remarks and their metric say it for as long as it is so."""
        for event in (item.event for item in recorded if isinstance(item.event, InstanceStateObserved)):
            words = {INSTANCE: event.instance, "status": event.status}
            if is_unheard_of(event.status):
                _log.error("machine with a status that nobody has told us about", **words)
            elif event.state is InstanceState.STOPPED:
                _log.warning("machine was switched off and may cost money all the same", **words)

    def _with_newcomers_looked_up(self, machines: Sequence[Machine]) -> tuple[Machine, ...]:
        """The listing, with what each newcomer is when asked for by its id.

        A stale listing shows as new what an earlier order of the same name made, and what has ended since. Newcomers
        that cannot be asked for now are left out, and keep their orders in doubt until they can.
        """
        fresh: dict[str, Machine | None] = {}
        for count, (_, newcomer) in enumerate(observation.newcomers(self.bench.books, machines)):
            fresh[newcomer.instance_id] = self._looked_up(newcomer) if count < _LOOKUPS_PER_RUN else None
        known = (fresh.get(machine.instance_id, machine) for machine in machines)
        return tuple(machine for machine in known if machine is not None)

    def _looked_up(self, machine: Machine) -> Machine | None:
        try:
            return self.bench.cloud.get_instance(machine.instance_id)
        except CloudError as error:
            _log.warning("cannot look up listed machine", **{INSTANCE: machine.hostname}, error=error.message)
            return None

    def _judge(self, machines: Collection[Machine]) -> None:
        """Say what is odd about a listing. Nothing depends on it: no listing is believed without a second witness."""
        ours = [instance for instance in self.bench.books.listed_instances() if instance.machine_status is not None]
        if ours and not machines:
            self.suspicious(Suspicion.EMPTY)
        if len({machine.instance_id for machine in machines}) < len(machines):
            self.suspicious(Suspicion.REPEATED)

    def _count(self, machines: Collection[Machine], taken_at: datetime) -> None:
        """In how many listings in a row who or what was missing: seen once, it begins anew."""
        books = self.bench.books
        unseen = [(instance.name, instance.attempt) for instance in observation.unseen(books, machines, taken_at)]
        counts = 1 if self._is_whole(machines, taken_at) else 0
        self._unseen = Counter({key: self._unseen[key] + counts for key in unseen})
        absent = [instance.name for instance in observation.absent(books, machines, taken_at, self.list_lag)]
        self._misses = Counter({name: self._misses[name] + 1 for name in absent})
        left = set(books.cloud.orphans) - {machine.instance_id for machine in machines}
        self._orphan_misses = Counter({name: self._orphan_misses[name] + 1 for name in left})

    def _is_whole(self, machines: Collection[Machine], taken_at: datetime) -> bool:
        """No machine that is believed to live is missing: a listing that lacks one may lack an order's machine too."""
        absent = observation.absent(self.bench.books, machines, taken_at, self.list_lag)
        return all(instance.state is InstanceState.DELETING for instance in absent)

    def _rule_out_unknown(self, machines: Collection[Machine], taken_at: datetime, cause: Cause) -> None:
        """An attempt whose outcome nobody knows created nothing if nobody sees its machine, long and often enough."""
        for instance in observation.unseen(self.bench.books, machines, taken_at):
            settled = instance.unknown_since is not None and taken_at - instance.unknown_since >= self.list_lag
            if settled and self._unseen[instance.name, instance.attempt] >= _SIGHTINGS_TO_RULE_OUT:
                self.bench.record(RuleOutCreate(instance=instance.name, attempt=instance.attempt), cause)

    def _look_for_absent(self, machines: Collection[Machine], taken_at: datetime, cause: Cause) -> None:
        absent = observation.absent(self.bench.books, machines, taken_at, self.list_lag)
        for instance in self._doubtful(absent)[:_LOOKUPS_PER_RUN]:
            self._confirm_ended(instance, cause)

    def _doubtful(self, absent: Sequence[Instance]) -> Sequence[Instance]:
        """Those worth a look-up: deletions at once, others after a second miss, a mass of them after several more."""
        deleting = [instance for instance in absent if instance.state is InstanceState.DELETING]
        missed = [
            instance
            for instance in absent
            if instance.state is not InstanceState.DELETING and self._misses[instance.name] >= _MISSES_TO_DOUBT
        ]
        live = sum(members.target_size for members in self.bench.books.members_by_group.values())
        braking = len(missed) >= _SMALLEST_MASS and len(missed) > self.loss_brake * live
        if braking:
            self.suspicious(Suspicion.MASS_LOSS)
        if braking and not self._braking:
            _log.error("many machines missing at once, not believed yet", missing=len(missed), live=live)
        self._braking = braking
        if braking:
            missed = [instance for instance in missed if self._misses[instance.name] >= _MISSES_UNDER_BRAKE]
        return [*deleting, *missed]

    def _confirm_ended(self, instance: Instance, cause: Cause) -> None:
        """Ask for the machine by its id: only the API's own word that it is no more ends an instance."""
        if instance.instance_id is None:
            return
        try:
            machine = self.bench.cloud.get_instance(instance.instance_id)
        except CloudError as error:
            _log.warning("cannot look up missing machine", **{INSTANCE: instance.name}, error=error.message)
            return
        if machine is None or phase_of(machine.status) is Phase.ENDED:
            self.bench.record(
                ConfirmEnded(instance=instance.name, instance_id=instance.instance_id, known_by_id=machine is not None),
                cause,
            )
            del self._misses[instance.name]
        else:
            self.suspicious(Suspicion.INCOMPLETE)

    def _look_for_surplus(self, machines: Collection[Machine], cause: Cause) -> None:
        """Machines of ours that no instance stands for, confirmed one by one because lists can be stale."""
        books = self.bench.books
        for instance, machine in observation.surplus(books, machines)[:_LOOKUPS_PER_RUN]:
            if self._is_alive(machine):
                reason = "released" if instance.state.is_ended else "duplicate"
                self.bench.record(
                    RecordSurplus(instance=instance.name, instance_id=machine.instance_id, reason=reason), cause
                )
        for instance, machine in observation.returned(books, machines)[:_LOOKUPS_PER_RUN]:
            if self._is_alive(machine):
                self.bench.record(observation.Readopt(instance=instance.name, machine=machine), cause)

    def _look_for_orphans(self, machines: Collection[Machine], taken_at: datetime, cause: Cause) -> None:
        """Those that are ours and unwanted by policy go after the grace; those that left are no longer looked for."""
        if self.orphans is OrphanPolicy.DELETE:
            unwanted = strangers.unwanted(self.bench.books, machines, taken_at - self.orphan_grace)
            for orphan, machine in unwanted[:_LOOKUPS_PER_RUN]:
                if self._is_alive(machine):
                    surplus = RecordSurplus(instance=orphan.hostname, instance_id=orphan.instance_id, reason="orphan")
                    self.bench.record(surplus, cause)
        orphans = self.bench.books.cloud.orphans
        left = [name for name in orphans if self._orphan_misses[name] >= _MISSES_TO_DOUBT]
        for instance_id in left[:_LOOKUPS_PER_RUN]:
            if self._is_gone(instance_id):
                self.bench.record(SettleOrphan(instance_id=instance_id), cause)

    def _is_gone(self, instance_id: str) -> bool:
        try:
            machine = self.bench.cloud.get_instance(instance_id)
        except CloudError:
            return False
        return machine is None or phase_of(machine.status) is Phase.ENDED

    def _is_alive(self, machine: Machine) -> bool:
        seen = self._looked_up(machine)
        return seen is not None and phase_of(seen.status) is not Phase.ENDED
