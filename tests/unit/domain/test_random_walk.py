"""Thousands of commands in an order that nobody would think of; what must hold, holds after each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.books import Books
from app.domain.cloud import RecordCatalogue, RecordSurplus, RecordSurplusGone, RecordUnreachable
from app.domain.decide import Command
from app.domain.envelope import Event, InstanceEvent
from app.domain.instance.commands import (
    AttemptCreate,
    AttemptDelete,
    CheckDeadlines,
    ConfirmEnded,
    LearnProviderId,
    RecordCreated,
    RecordCreateRefused,
    RecordCreateUnknown,
    RecordDeleteRefused,
    Refusal,
    RuleOutCreate,
)
from app.domain.instance.events import Found, InstanceAdopted, InstanceRequested, InstanceStateObserved
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.nodegroup.commands import ApplyConfiguration, DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.domain.observation import ObserveMachines, Readopt

from .facts import CPU, CPU_TYPE, H100, H100_TYPE, catalogue, configured, h100, machine
from .scenario import Outcome, Scenario
from .transitions import TRANSITIONS

GROUPS = ("h100", "cpu", "gpu")
CONFIGURATIONS = (
    (H100, CPU),
    (H100, CPU),
    (H100.model_copy(update={"max_size": 2}), CPU),
    (CPU,),
    (H100.model_copy(update={"provider_id_template": "verda://{instance_id}"}), CPU),
)
STATUSES = ("running", "running", "offline", "provisioning", "error", "no_capacity", "discontinued", "migrating")
REFUSALS = (
    (Refusal.NO_CAPACITY, 503, "service_unavailable"),
    (Refusal.NO_CAPACITY, 503, "service_unavailable"),
    (Refusal.REJECTED, 402, "insufficient_funds"),
    (Refusal.REJECTED, 400, "invalid_request"),
    (Refusal.THROTTLED, 429, "rate_limit_exceeded"),
    (Refusal.NOT_SENT, None, "connection_refused"),
)
STEPS = (0, 1, 30, 100, 700, 1900)
NOT_REPEATABLE = (IncreaseSize, DecreaseTargetSize, RecordDeleteRefused, ObserveMachines, RecordUnreachable)


@dataclass(kw_only=True)
class Walk:
    """A story told by bytes: one says what happens, two more to whom and how."""

    story: Scenario
    minted: int = 0
    told: list[Event] = field(default_factory=list)
    bytes_: Iterator[int] = field(default_factory=lambda: iter(b""))

    def mint(self) -> int:
        """A number never used before."""
        self.minted += 1
        return self.minted

    def pick(self, number: int) -> str:
        """Some instance, mostly a listed one, at times an ended one or one that never was."""
        listed = sorted(instance.name for instance in self.story.books.listed_instances())
        names = listed if listed and number % 8 else sorted(self.story.books.instances)
        return names[number % len(names)] if names and number % 50 else "h100-nobody00"

    def take(self, what: int, a: int, b: int) -> None:
        """One step."""
        makers: tuple[Callable[[int, int], Command], ...] = (
            self._increase,
            self._increase,
            self._decrease,
            self._delete,
            *(self._attempt,) * 4,
            self._created,
            *(self._refused,) * 2,
            *(self._unknown,) * 3,
            *(self._rule_out,) * 2,
            self._attempt_delete,
            self._delete_refused,
            *(self._ended,) * 2,
            *(self._observe,) * 3,
            self._deadlines,
            self._configure,
            self._learn,
            self._readopt,
            self._surplus,
            self._cloud,
        )
        if what % 4 == 0:
            self.story = self.story.given(timedelta(seconds=STEPS[a % len(STEPS)]))
        self.execute(makers[what % len(makers)](a, b))

    def execute(self, command: Command) -> None:
        """Decide, fold fact by fact, check."""
        outcome = self.story.when(command)
        _check_sizes(command, outcome)
        for event in outcome.events:
            before = self.story.books
            self.story = self.story.recorded(event)
            self.told.append(event)
            if isinstance(event, InstanceEvent):
                _check_transition(event, before, self.story.books)
        _check_books(self.story)
        if not isinstance(command, NOT_REPEATABLE):
            assert self.story.when(command).events == (), "running it again right after does nothing"

    def _increase(self, a: int, b: int) -> Command:
        group = GROUPS[a % 3]
        delta = b % 5 - 1
        names = tuple(f"{group}-{self.mint():08}" for _ in range(delta))
        return IncreaseSize(node_group=group, delta=delta, names=names)

    def _decrease(self, a: int, b: int) -> Command:
        return DecreaseTargetSize(node_group=GROUPS[a % 3], delta=-(b % 4))

    def _delete(self, a: int, b: int) -> Command:
        names = (self.pick(a), self.pick(b), self.pick(a))
        known = self.story.books.instances.get(names[0])
        return DeleteNodes(node_group=known.node_group if known else "h100", instances=names[: 1 + b % 3])

    def _attempt(self, a: int, _: int) -> Command:
        return AttemptCreate(instance=self.pick(a))

    def _created(self, a: int, b: int) -> Command:
        name = self.pick(a)
        known = self.story.books.instances.get(name)
        same = known.instance_id if known and b % 5 == 0 else None
        return RecordCreated(instance=name, instance_id=same or f"id{self.mint():08}", found=Found.ANSWERED)

    def _attempt_number(self, name: str, b: int) -> int:
        known = self.story.books.instances.get(name)
        return (known.attempt if known else 1) + (b % 7 == 0)

    def _refused(self, a: int, b: int) -> Command:
        name = self.pick(a)
        refusal, status, code = REFUSALS[b % len(REFUSALS)]
        return RecordCreateRefused(
            instance=name,
            attempt=self._attempt_number(name, b),
            refusal=refusal,
            status=status,
            code=code,
            message=code,
            retry_after=timedelta(seconds=b),
        )

    def _unknown(self, a: int, b: int) -> Command:
        name = self.pick(a)
        return RecordCreateUnknown(instance=name, attempt=self._attempt_number(name, b), reason="timeout")

    def _rule_out(self, a: int, b: int) -> Command:
        name = self.pick(a)
        return RuleOutCreate(instance=name, attempt=self._attempt_number(name, b))

    def _attempt_delete(self, _a: int, _b: int) -> Command:
        return AttemptDelete(instances=tuple(self.story.books.instances))

    def _delete_refused(self, a: int, _: int) -> Command:
        return RecordDeleteRefused(instance=self.pick(a), code="forbidden_action", message="provisioning")

    def _ended(self, a: int, b: int) -> Command:
        name = self.pick(a)
        known = self.story.books.instances.get(name)
        return ConfirmEnded(
            instance=name, instance_id=(known and known.instance_id) or "id-unknown", known_by_id=b % 2 == 0
        )

    def _listed(self, instance: Instance, a: int, b: int) -> Machine | None:
        chance = (instance.ordinal * 7 + a * 13 + b) % 16
        instance_id = instance.instance_id
        if instance_id is None and instance.attempt and chance < 4:
            instance_id = f"id{self.mint():08}"
        if instance_id is None or chance == 15:
            return None
        return machine(instance_id, instance.name, STATUSES[chance % 8], self._mark(instance.node_group))

    def _mark(self, group: str) -> str:
        return f"ca:v1 cluster=c1 installation=inst1 group={group}"

    def _observe(self, a: int, b: int) -> Command:
        machines = [self._listed(instance, a, b) for instance in self.story.books.instances.values()]
        if a % 8 == 0:
            group = ("h100", "old")[b % 2]
            name = f"{group}-{self.mint():08}"
            machines.extend(
                machine(f"id{self.mint():08}", name, "running", self._mark(group)) for _ in range(1 + b % 2)
            )
        shown = tuple(item for item in machines if item is not None)
        return ObserveMachines(machines=shown, backend="simulator", claim=False)

    def _deadlines(self, _a: int, _b: int) -> Command:
        return CheckDeadlines(failed_expiry=timedelta(minutes=30))

    def _configure(self, a: int, _: int) -> Command:
        specs = CONFIGURATIONS[a % len(CONFIGURATIONS)]
        return ApplyConfiguration(specs=specs, sha256=str(a % len(CONFIGURATIONS)), cluster_name="c1")

    def _learn(self, a: int, _: int) -> Command:
        name = self.pick(a)
        return LearnProviderId(instance=name, provider_id=f"verda:///{name}")

    def _readopt(self, a: int, b: int) -> Command:
        name = self.pick(a)
        known = self.story.books.instances.get(name)
        instance_id = (known and known.instance_id) or "id-unknown"
        return Readopt(instance=name, machine=machine(instance_id, name, STATUSES[b % 8]))

    def _surplus(self, a: int, b: int) -> Command:
        known = sorted(self.story.books.cloud.surplus)
        if known and b % 2:
            return RecordSurplusGone(instance_id=known[a % len(known)])
        return RecordSurplus(instance=self.pick(a), instance_id=f"id{self.mint():08}", reason="duplicate")

    def _cloud(self, a: int, _: int) -> Command:
        if a % 3:
            return RecordCatalogue(types=(H100_TYPE, CPU_TYPE)[: a % 3])
        return RecordUnreachable(code="timeout", message="no answer")


def _check_sizes(command: Command, outcome: Outcome) -> None:
    """Accepted as a whole or refused as a whole; the very next target size shows it."""
    before, after = outcome.before.books, outcome.after.books
    if outcome.refusal is not None:
        assert after.instances == before.instances
        assert after.members_by_group == before.members_by_group
        return
    if isinstance(command, IncreaseSize):
        assert after.target_size(command.node_group) == before.target_size(command.node_group) + command.delta
    elif isinstance(command, DecreaseTargetSize):
        released = before.target_size(command.node_group) - after.target_size(command.node_group)
        assert 1 <= released <= -command.delta
    elif isinstance(command, DeleteNodes):
        live = {name for name in command.instances if before.instances[name].state.is_live}
        assert before.target_size(command.node_group) - after.target_size(command.node_group) == len(live)
        assert not any(after.instances[name].state.is_live for name in command.instances)


def _check_transition(event: InstanceEvent, before: Books, after: Books) -> None:
    """Only what the table knows ever happens, and it leads where the table says."""
    known = before.instances.get(event.instance)
    now = after.instances[event.instance].state
    if known is None:
        assert isinstance(event, InstanceRequested | InstanceAdopted)
        return
    expected = TRANSITIONS[known.state, event.type]
    if expected == "*":
        assert isinstance(event, InstanceStateObserved)
        expected = event.state
    assert now == expected, f"{known.state} + {event.type}"


def _check_books(story: Scenario) -> None:
    """Sizes, lists and indexes agree with the instances; ids are unique; only failures carry the last error."""
    books = story.books
    listed: list[Instance] = []
    for group in {*GROUPS, "old"}:
        members = [instance for instance in books.instances.values() if instance.node_group == group]
        live = {instance.name for instance in members if instance.state.is_live}
        deleting = {instance.name for instance in members if instance.state is InstanceState.DELETING}
        assert set(books.members(group).live) == live
        assert set(books.members(group).deleting) == deleting
        assert books.target_size(group) == len(live)
        shown = books.members(group).listed
        assert [instance.ordinal for instance in shown] == sorted(instance.ordinal for instance in shown)
        assert len(shown) == len(live) + len(deleting)
        listed.extend(shown)
    assert len({instance.provider_id for instance in listed}) == len(listed)
    owners = [instance for instance in books.instances.values() if instance.instance_id is not None]
    assert len({instance.instance_id for instance in owners}) == len(owners)
    assert all(books.names_by_id[str(instance.instance_id)] == instance.name for instance in owners)
    for instance in books.instances.values():
        assert instance.state.is_ended == (instance.ended_at is not None)
        assert instance.version == story.versions[f"instance-{instance.name}"]
        if instance.state is InstanceState.FAILED:
            assert instance.error_class is not None
            assert instance.error_code
            assert instance.failed_at is not None


@settings(max_examples=12, deadline=None)
@given(st.binary(min_size=300, max_size=900))
def test_the_books_stay_right_through_any_story(script: bytes) -> None:
    """F09, and all that the autoscaler relies on: each slot listed once, counted once, failed only when told."""
    walk = Walk(story=h100.given(catalogue(CPU_TYPE), configured(CPU)))
    start = walk.story
    early, then = start.books, _states(start.books)
    for number, (what, a, b) in enumerate(zip(script[::3], script[1::3], script[2::3], strict=False)):
        walk.take(what, a, b)
        if number == 50:
            early, then = walk.story.books, _states(walk.story.books)
    assert _states(early) == then, "old books never change"
    assert walk.story.books.position == start.books.position + len(walk.told)
    again = replace(start, now=walk.story.now).recorded(*walk.told).books
    assert _states(again) == _states(walk.story.books)


def _states(books: Books) -> dict[str, tuple[InstanceState, int]]:
    return {name: (instance.state, instance.version) for name, instance in books.instances.items()}
