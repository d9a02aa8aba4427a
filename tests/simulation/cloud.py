"""The simulated cloud as the provider meets it: calls take their time, and everything it says is remembered."""

import contextlib
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from app.cloud.port import Deletion, DeletionAnswer
from app.domain.ids import Mark
from app.domain.instance.lifecycle import Phase, phase_of
from app.domain.machine import Machine, Order
from app.errors import CloudError, OutcomeUnknown
from app.simulator.inprocess import Call, InProcessCloud, Moment
from app.simulator.world import World
from tests.simulation.agenda import Agenda
from tests.simulation.chance import Chance
from tests.simulation.effects import Effects


@dataclass(slots=True, kw_only=True)
class OrderStory:
    """What became of the create calls for one host name."""

    under_way: int = 0
    doubtful_since_ms: int | None = None
    lists_without_it: int = 0
    lists_without_ours: int = 0
    was_found: bool = False
    ordered: tuple[str | None, ...] = ()
    earlier: frozenset[str] = frozenset()

    def begin(self, order: Order, earlier: Iterable[str]) -> None:
        """A call leaves; `earlier` are the machines of that name that are known already."""
        self.under_way += 1
        self.ordered = (order.instance_type, order.location, order.contract)
        self.earlier = frozenset(earlier)
        self.doubtful_since_ms, self.was_found = None, False

    def find(self) -> None:
        """A machine of this name is listed for the first time: that is what became of the order."""
        self.doubtful_since_ms, self.was_found = None, True

    def is_among(self, hostname: str, machines: Iterable[Machine]) -> bool:
        """One of these may be what became of the call."""
        return any(one.hostname == hostname and self.may_be(one) for one in machines)

    def may_be(self, machine: Machine) -> bool:
        """It may be what became of the call: not known before, and, if it was never placed, what was ordered."""
        shown = (machine.instance_type, machine.location, machine.contract)
        is_of_another_call = machine.status == "no_capacity" and shown != self.ordered
        return machine.instance_id not in self.earlier and not is_of_another_call

    def doubt(self, now_ms: int) -> None:
        """The call ended, and its outcome is unknown if no listing has shown it meanwhile."""
        self.doubtful_since_ms = None if self.was_found else now_ms
        self.lists_without_it = self.lists_without_ours = 0


@dataclass(slots=True, kw_only=True)
class Known:
    """What the cloud has told the provider so far."""

    orders: dict[str, OrderStory] = field(default_factory=dict)
    absences: dict[str, int] = field(default_factory=dict)
    last_word: dict[str, str | None] = field(default_factory=dict)
    looked: dict[str, str | None] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    failed_looks: set[str] = field(default_factory=set)
    setbacks: Counter[str] = field(default_factory=Counter)

    def order(self, hostname: str) -> OrderStory:
        """The story of a host name, an empty one if it was never ordered."""
        return self.orders.get(hostname) or OrderStory()

    def saw_list(self, machines: Sequence[Machine], *, is_whole: bool) -> None:
        """A listing was answered. One that lacks what is known to live is no sign that an order created nothing."""
        alive = {machine.instance_id for machine in machines if phase_of(machine.status) is not Phase.ENDED}
        marked = [machine for machine in machines if Mark.parse(machine.description)]
        for instance_id in self.absences:
            self.absences[instance_id] = 0 if instance_id in alive else self.absences[instance_id] + 1
        for machine in machines:
            order = self.orders.get(machine.hostname)
            if machine.instance_id not in self.absences and order is not None and order.may_be(machine):
                order.find()
            self.absences.setdefault(machine.instance_id, 0)
            self._saw(machine)
        for hostname, story in self.orders.items() if is_whole else ():
            story.lists_without_it = 0 if story.is_among(hostname, machines) else story.lists_without_it + 1
            story.lists_without_ours = 0 if story.is_among(hostname, marked) else story.lists_without_ours + 1

    def saw_one(self, instance_id: str, machine: Machine | None) -> None:
        """A look-up was answered."""
        self.absences.setdefault(instance_id, 0)
        self.last_word[instance_id] = None if machine is None else machine.status
        self.looked[instance_id] = None if machine is None else machine.os_volume_id
        if machine is None:
            self.failed_looks.add(instance_id)
        else:
            self._saw(machine)

    def _saw(self, machine: Machine) -> None:
        self.names[machine.instance_id] = machine.hostname
        self.last_word[machine.instance_id] = machine.status


@dataclass(frozen=True, slots=True)
class Blindness:
    """Until then listings lack a share of the machines, always the same ones, which all answer to their ids."""

    share: float
    until_ms: int

    def hides(self, machine: Machine) -> bool:
        """It is one of them."""
        return zlib.crc32(machine.instance_id.encode()) % 100 < self.share * 100


class Watch:
    """What is told of calls before they are made; the stage puts its invariants here."""

    def living(self) -> AbstractSet[str]:
        """Ids of the machines that the books know to live."""
        return frozenset()

    def ordering(self, order: Order) -> None:
        """A create call is about to be made."""

    def deleting(self, deletions: Sequence[Deletion]) -> None:
        """Delete calls are about to be made."""

    def sweeping(self, volume_id: str) -> None:
        """A volume is about to be deleted."""


class MoodyCloud(InProcessCloud):
    """The cloud port on the world, with latency by chance, a place to die around every call, and a memory."""

    def __init__(self, world: World, agenda: Agenda, chance: Chance, effects: Effects) -> None:
        super().__init__(world, hook=self._around)
        self._world = world
        self.known = Known()
        self.watch = Watch()
        self.late_s: list[float] = []
        self.blindness = Blindness(0.0, 0)
        self._arrivals: list[tuple[int, Order]] = []
        self._agenda = agenda
        self._chance = chance
        self._effects = effects

    def _around(self, call: Call, moment: Moment) -> None:
        self._let_arrive()
        self._effects.at(f"{'before' if moment is Moment.BEFORE else 'after'} the call {call.operation}")
        latency = self._latency()
        if latency:
            self._agenda.hold(latency)

    def _let_arrive(self) -> None:
        """Orders that took their time beyond the caller's patience are executed."""
        now, hook = self._agenda.now_ms, self.hook
        due = [order for at_ms, order in self._arrivals if at_ms <= now]
        self._arrivals = [item for item in self._arrivals if item[0] > now]
        for order in due:
            self.hook = None
            with contextlib.suppress(CloudError):
                super().create_instance(order)
            self.hook = hook

    def _latency(self) -> float:
        """Mostly none, now and then so long that much else happens meanwhile; never longer than the deadline."""
        drawn = self._chance.random.random()
        if drawn < 0.7:
            return 0.0
        return self._chance.random.uniform(0.1, 3.0) if drawn < 0.88 else self._chance.random.uniform(3.0, 14.0)

    def go_blind(self, share: float, seconds: float) -> None:
        """Let listings lack a share of the machines for so long."""
        self.blindness = Blindness(share, self._agenda.now_ms + round(seconds * 1000))

    def see(self) -> None:
        """Let listings be whole."""
        self.blindness = Blindness(0.0, 0)

    @property
    def is_blind(self) -> bool:
        """Listings lack machines, and go on doing so."""
        return self._agenda.now_ms < self.blindness.until_ms

    def list_instances(self) -> Sequence[Machine]:
        """The listing, remembered."""
        machines = super().list_instances()
        hidden = [machine.instance_id for machine in machines if self.is_blind and self.blindness.hides(machine)]
        shown = [machine for machine in machines if machine.instance_id not in hidden]
        self.known.saw_list(shown, is_whole=self.watch.living().isdisjoint(hidden))
        return shown

    def get_instance(self, instance_id: str) -> Machine | None:
        """The look-up, remembered."""
        try:
            machine = super().get_instance(instance_id)
        except CloudError:
            self.known.failed_looks.add(instance_id)
            raise
        self.known.saw_one(instance_id, machine)
        return machine

    def create_instance(self, order: Order) -> str:
        """The order, watched from before it leaves until its answer is there."""
        self.watch.ordering(order)
        story = self.known.orders.setdefault(order.hostname, OrderStory())
        story.begin(order, (known for known, name in self.known.names.items() if name == order.hostname))
        try:
            instance_id = self._order_late(order) if self.late_s else super().create_instance(order)
        except OutcomeUnknown:
            story.doubt(self._agenda.now_ms)
            raise
        except CloudError:
            raise
        except BaseException:
            story.doubt(self._agenda.now_ms)  # the process dies with the call under way
            raise
        else:
            self.known.absences.setdefault(instance_id, 0)
            return instance_id
        finally:
            story.under_way -= 1

    def _order_late(self, order: Order) -> str:
        """Time out, and have the order executed later."""
        self._effects.at("before the call create_instance")
        self._arrivals.append((self._agenda.now_ms + round(self.late_s.pop(0) * 1000), order))
        self._agenda.hold(30.0)
        raise OutcomeUnknown("no answer within the deadline", code="timeout")

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """The deletions, watched. A disk that the look before them did not show cannot be named in them."""
        self.watch.deleting(deletions)
        bare = {deletion.instance_id for deletion in deletions if not deletion.volume_ids}
        self.known.failed_looks |= {one for one in bare if self.known.looked.get(one, "not looked at") is None}
        could = self._deletable(deletions)
        try:
            answers = super().delete_instances(deletions)
        except CloudError:
            self.known.setbacks.update(could & self._deletable(deletions))
            raise
        self.known.setbacks.update(could & self._deletable(deletions))
        return answers

    def _deletable(self, deletions: Iterable[Deletion]) -> AbstractSet[str]:
        """Those of the machines that the cloud shows and would delete."""
        named = (self._world.state.instances.get(deletion.instance_id) for deletion in deletions)
        allowed = self._world.config.behaviour.allow_delete_in
        return {item.id for item in named if item is not None and not item.hidden and item.status in allowed}

    def delete_volume(self, volume_id: str, *, permanent: bool) -> None:
        """The deletion of a volume, watched."""
        self.watch.sweeping(volume_id)
        super().delete_volume(volume_id, permanent=permanent)
