"""The inspector holds every invariant against the stage, whenever it is its turn, and stops the story at the first."""

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet

from app.cloud.port import Deletion
from app.domain.books import Books
from app.domain.envelope import InstanceEvent
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Order
from app.errors import StoreUnavailable
from tests.simulation.accounts import Accounts
from tests.simulation.cloud import Watch
from tests.simulation.invariants.always import ALWAYS
from tests.simulation.invariants.bounded import Bounds
from tests.simulation.invariants.calls import DELETIONS, ORDERS, SWEEPS
from tests.simulation.invariants.facts import FACTS
from tests.simulation.invariants.sampled import SAMPLED
from tests.simulation.invariants.settled import SETTLED
from tests.simulation.stage import Facts, Stage
from tests.simulation.strands import Strand
from tests.simulation.violation import Always, Violated

_BOUNDS_EVERY_S = 10.0
"""Bounds are minutes; looking at them this often is enough."""


class Inspector(Watch):
    """Sees every fact, every costly call, every pause of the work, and every step."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.accounts = Accounts(stage)
        self.bounds = Bounds(stage, self.accounts)
        self._found: Violated | None = None
        self._checked: Books | None = None
        self._strikes = 0
        self._bounds_at = 0.0
        stage.listener = self._take
        stage.cloud.watch = self
        stage.agenda.on_pause = self._pause
        # In long waits the jobs come round less often; time counts for as much as they could do in it.
        stage.agenda.on_advance = lambda seconds: self.accounts.advance(seconds / stage.agenda.pace)

    def _take(self, facts: Facts) -> None:
        stage = self._stage
        for item in facts:
            name = item.event.instance if isinstance(item.event, InstanceEvent) else ""
            story = stage.witness.stories.get(name)
            for check in FACTS:
                self._note(check.__name__, check(stage, item, story))
            stage.witness.take(item)

    def living(self) -> AbstractSet[str]:
        """Ids of the machines that the books have seen and count. What becomes of failed ones, nobody follows."""
        listed = (one for one in self._stage.books.listed_instances() if one.state.is_live)
        seen = (one for one in listed if one.machine_status is not None and one.state is not InstanceState.FAILED)
        return {one.instance_id for one in seen if one.instance_id is not None}

    def ordering(self, order: Order) -> None:
        """A create call is about to be made."""
        for check in ORDERS:
            self._note(check.__name__, check(self._stage, order))
        self._stage.witness.call(order.hostname)

    def deleting(self, deletions: Sequence[Deletion]) -> None:
        """Delete calls are about to be made."""
        for check in DELETIONS:
            self._note(check.__name__, check(self._stage, deletions))

    def sweeping(self, volume_id: str) -> None:
        """A volume is about to be deleted."""
        for check in SWEEPS:
            self._note(check.__name__, check(self._stage, volume_id))

    def overheard(self, words: str) -> None:
        """Something was logged that must never happen."""
        self._note("nothing_breaks_off", [words])

    def _note(self, invariant: str, sentences: Iterable[str]) -> None:
        """Keep the first; raised when the main thread is back, because code under test may swallow what we raise."""
        for words in sentences:
            self._found = self._found or Violated(invariant, words)

    def _pause(self, strand: Strand) -> None:
        failure = strand.failure
        strikes, self._strikes = self._strikes, self._stage.disk.strikes
        is_excused = isinstance(failure, StoreUnavailable) and strikes != self._strikes
        if isinstance(failure, Exception) and not is_excused:
            raise Violated("nothing_breaks_off", f"{strand.name}: {type(failure).__name__}: {failure}") from failure
        if failure is None:
            self.check()

    def check(self) -> None:
        """Everything that holds at any time. Raises: Violated."""
        if self._found is not None:
            raise self._found
        if self._stage.books is not self._checked:
            self._hold(ALWAYS)
            self._checked = self._stage.books
        if self.accounts.alive_s >= self._bounds_at:
            self.bounds.check()
            self._bounds_at = self.accounts.alive_s + _BOUNDS_EVERY_S
        if self._found is not None:
            raise self._found

    def sample(self) -> None:
        """The costly ones. Raises: Violated."""
        self._hold(SAMPLED)

    def settled(self) -> None:
        """Those that hold once nothing moves. Raises: Violated."""
        self.check()
        self._hold(SETTLED)
        self.bounds.check_waste()

    def _hold(self, checks: Sequence[Always]) -> None:
        for check in checks:
            for words in check(self._stage):
                raise Violated(check.__name__, words)

    def is_settled(self) -> bool:
        """Nothing is left to happen by itself."""
        return not any(words for check in SETTLED for words in check(self._stage))
