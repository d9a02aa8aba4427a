"""A long, seeded story: every command there is, in an order nobody would have thought of, on one ledger."""

import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

from app.clock import FakeClock, SeededIds
from app.domain.cloud import (
    RecordBalance,
    RecordCatalogue,
    RecordSurplus,
    RecordSurplusGone,
    RecordUnreachable,
    RecordVolumeDeleted,
    SettleOrphan,
)
from app.domain.cluster.commands import AbandonNodeRemoval, AttemptNodeRemoval, RecordNodeRemoved
from app.domain.cluster.events import TokenEnd
from app.domain.cluster.ghosts import Ghost
from app.domain.cluster.joins import AttemptProviderIdRepair, ObserveNodes, Repair
from app.domain.cluster.learning import DiscardTemplates, MeasureNodes
from app.domain.cluster.node import Node, NodeTaint
from app.domain.cluster.preparing import AttemptNodePreparation, Preparation, RecordNodePrepared
from app.domain.cluster.tokens import (
    AttemptJoinToken,
    ObserveJoinTokens,
    RecordJoinTokenMinted,
    RecordJoinTokenRevoked,
    StandingToken,
)
from app.domain.decide import Command
from app.domain.envelope import Cause, Event, Recorded
from app.domain.ids import Mark, instance_name
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
from app.domain.instance.events import Found
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.nodegroup.commands import (
    ApplyConfiguration,
    DecreaseTargetSize,
    DeleteNodes,
    DrainNodeGroup,
    IncreaseSize,
    PauseNodeGroup,
    RecordJoined,
    ResumeNodeGroup,
)
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.observation import ObserveMachines, Readopt
from app.domain.offering import Contract, InstanceType
from app.domain.script_decide import (
    AttemptScriptDelete,
    PrepareScript,
    RecordFetch,
    RecordScriptDeleted,
    RecordScriptUploaded,
)
from app.domain.scripts import ScriptEnd, ScriptUploadAttempted
from app.domain.service import RejectConfiguration, StartService
from app.domain.startup import RecordRestore
from app.errors import Conflict, InvalidRequest, NotFound, RuleViolation
from app.ledger.ledger import Ledger

from .harness import H100, group

_STATUSES = ("provisioning", "running", "running", "running", "offline", "error", "no_capacity", "weird")
_REFUSALS = (
    (Refusal.NO_CAPACITY, 503, "service_unavailable"),
    (Refusal.REJECTED, 402, "insufficient_funds"),
    (Refusal.REJECTED, 400, "invalid_request"),
    (Refusal.THROTTLED, 429, "too_many_requests"),
    (Refusal.NOT_SENT, None, "connection_refused"),
)
_LEAN = InstanceType.model_validate({**H100.model_dump(), "name": "CPU.4V.16G", "gpus": 0, "spot_price": None})


class Story:
    """Steps of a random walk. `machines` is the cloud: what its list shows, by instance id.

    `seen` has the types of all events so far, `acknowledged` the position of the last one.
    """

    def __init__(self, ledger: Ledger, clock: FakeClock, seed: int) -> None:
        self.ledger = ledger
        self.clock = clock
        self.machines: dict[str, Machine] = {}
        self.seen: set[str] = set()
        self.acknowledged = 0
        ledger.subscribe(self._note)
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._ids = SeededIds(seed)
        self._price = Decimal("2.40")
        self._steps: Sequence[Callable[[], None]] = (
            *(self._increase,) * 4,
            *(self._create,) * 8,
            *(self._observe,) * 6,
            *(self._delete,) * 2,
            *(self._terminate,) * 4,
            *(self._settle_unknown,) * 2,
            self._decrease,
            self._lose,
            self._readopt,
            self._learn,
            self._surplus,
            self._sweep,
            self._balance,
            self._scripts,
            self._ghosts,
            *(self._nodes,) * 2,
            self._tokens,
            *(self._never_join,) * 3,
            self._strangers,
            self._settle_orphan,
            self._revert,
            self._catalogue,
            self._outage,
            self._deadlines,
            self._configure,
            self._operate,
            self._start,
        )

    def begin(self) -> None:
        """A new installation that takes over the machine of a lost predecessor."""
        self._start()
        self._tell(self._configuration(group("gpu", max_size=8, never_joined_breaker=1), group("spare", max_size=4)))
        self._tell(RecordCatalogue(types=(H100, _LEAN)))
        self._tell(RecordUnreachable(code="timeout", message="the API's \"gateway\" doesn't answer"))
        self._appear("old-00000000", Mark(cluster="prod", installation="before", group="old"))
        self._tell(ObserveMachines(machines=self._listing(), backend="simulator", claim=True))

    def forget(self) -> None:
        """Let days pass, so that what has ended falls out of memory; then some of those machines are seen again."""
        self.clock.advance(timedelta(days=3))
        for instance in self._some(InstanceState.GONE, InstanceState.LOST, InstanceState.CANCELLED):
            self._appear(instance.name, self._ours(instance.node_group), instance.instance_id)
        self.ledger.forget_ended()
        self._observe()

    def walk(self, steps: int) -> None:
        """Take some steps."""
        for _ in range(steps):
            self.clock.advance(self._random.choice((0.000001, 0.5, 3.25, 60)))
            self._random.choice(self._steps)()

    def _tell(self, command: Command) -> Sequence[Recorded[Event]]:
        cause = Cause(actor=self._random.choice(("cluster-autoscaler", "operator")), correlation_id=self._ids.token())
        try:
            return self.ledger.execute(command, cause)
        except (RuleViolation, InvalidRequest, Conflict, NotFound):
            return ()

    def _note(self, recorded: Sequence[Recorded[Event]]) -> None:
        self.seen.update(item.event.type for item in recorded)
        self.acknowledged = recorded[-1].position

    def _some(self, *states: InstanceState) -> list[Instance]:
        found = [instance for instance in self.ledger.books.instances.values() if instance.state in states]
        found.sort(key=lambda instance: instance.name)
        return self._random.sample(found, min(len(found), 2))

    def _listing(self) -> tuple[Machine, ...]:
        return tuple(self.machines.values())

    def _appear(self, hostname: str, mark: Mark, instance_id: str | None = None) -> str:
        instance_id = instance_id or self._ids.token()
        self.machines[instance_id] = Machine(
            instance_id=instance_id,
            hostname=hostname,
            status="provisioning",
            description=mark.text(),
            instance_type=H100.name,
            image="ubuntu-24.04",
            location="FIN-01",
            contract=Contract.SPOT,
            price_per_hour=Decimal("0.60"),
            created_at=self.clock.now(),
        )
        return instance_id

    def _ours(self, node_group: str) -> Mark:
        return Mark(cluster="prod", installation=self.ledger.books.installation.installation_id, group=node_group)

    def _start(self) -> None:
        self._tell(
            StartService(
                installation_id="inst1",
                version="0.1.0",
                host="pod-0",
                pid=7,
                sqlite_version="3.53.4",
                backend="simulator",
            )
        )

    def _configuration(self, *specs: NodeGroupSpec) -> ApplyConfiguration:
        return ApplyConfiguration(specs=specs, sha256=self._ids.token(), cluster_name="prod")

    def _configure(self) -> None:
        specs = [
            group(
                "gpu",
                max_size=self._random.randint(2, 9),
                labels={"tier": self._random.choice("ab")},
                never_joined_breaker=self._random.choice((0, 1)),
            )
        ]
        if self._random.random() < 0.5:
            specs.append(group("spare", max_size=4))
        self._tell(self._configuration(*specs))
        if self._random.random() < 0.3:
            self._tell(RejectConfiguration(sha256=self._ids.token(), problems=2, first='config.yaml:3: it\'s "wrong"'))

    def _operate(self) -> None:
        if self._random.random() < 0.2:
            self._tell(DrainNodeGroup(node_group="spare", operator="anna", reason="new driver"))
        self._tell(PauseNodeGroup(node_group="gpu", operator="anna", reason="it's her's"))
        self._increase()
        self._tell(ResumeNodeGroup(node_group="gpu", operator="anna", reason="done"))
        self._tell(ResumeNodeGroup(node_group="spare", operator="anna", reason="done"))

    def _increase(self) -> None:
        node_group = self._random.choice(("gpu", "gpu", "spare", "nowhere"))
        delta = self._random.randint(0, 3)
        names = tuple(instance_name(node_group, self._ids.suffix()) for _ in range(delta))
        self._tell(IncreaseSize(node_group=node_group, delta=delta, names=names))

    def _decrease(self) -> None:
        self._tell(DecreaseTargetSize(node_group="gpu", delta=-self._random.randint(1, 2)))

    def _delete(self) -> None:
        live = self._some(InstanceState.RUNNING, InstanceState.FAILED, InstanceState.SUBMITTING, InstanceState.STOPPED)
        for instance in live:
            self._tell(DeleteNodes(node_group=instance.node_group, instances=(instance.name,)))

    def _create(self) -> None:
        for instance in self._some(InstanceState.REQUESTED):
            if not self._tell(AttemptCreate(instance=instance.name)):
                continue
            attempt = self.ledger.books.instances[instance.name].attempt
            if self._random.random() < 0.3:
                self._prepare_script(instance, attempt)
            match self._random.randint(0, 9):
                case 0 | 1:
                    self._refuse(instance, attempt)
                case 2:
                    self._appear(instance.name, self._ours(instance.node_group))
                    self._tell(RecordCreateUnknown(instance=instance.name, attempt=attempt, reason="reset"))
                case 3:
                    self._tell(RecordCreateUnknown(instance=instance.name, attempt=attempt, reason="timeout"))
                case _:
                    found = self._appear(instance.name, self._ours(instance.node_group))
                    self._tell(RecordCreated(instance=instance.name, instance_id=found, found=Found.ANSWERED))

    def _refuse(self, instance: Instance, attempt: int) -> None:
        refusal, status, code = self._random.choice(_REFUSALS)
        self._tell(
            RecordCreateRefused(
                instance=instance.name,
                attempt=attempt,
                refusal=refusal,
                status=status,
                code=code,
                message=self._random.choice(("no 'luck'; -- today", "no such image")),
                retry_after=None,
            )
        )

    def _settle_unknown(self) -> None:
        for instance in self.ledger.books.instances.values():
            if instance.unknown_since is not None:
                found = [machine for machine in self._listing() if machine.hostname == instance.name]
                if found:
                    self._tell(
                        RecordCreated(instance=instance.name, instance_id=found[0].instance_id, found=Found.LOOKED_UP)
                    )
                else:
                    self._tell(RuleOutCreate(instance=instance.name, attempt=instance.attempt))

    def _observe(self) -> None:
        for instance_id, machine in self.machines.items():
            if self._random.random() < 0.4:
                self.machines[instance_id] = _with_status(machine, self._random.choice(_STATUSES))
        self._tell(ObserveMachines(machines=self._listing(), backend="simulator", claim=False))

    def _terminate(self) -> None:
        for instance in self._some(InstanceState.DELETING):
            self._tell(AttemptDelete(instances=(instance.name,)))
            if instance.instance_id is None:
                continue
            if self._random.random() < 0.3:
                self._tell(RecordDeleteRefused(instance=instance.name, code="busy", message="it's provisioning"))
            else:
                self._end(instance, instance.instance_id)

    def _lose(self) -> None:
        for instance in self._some(InstanceState.RUNNING, InstanceState.PROVISIONING)[:1]:
            if instance.instance_id is not None:
                self._end(instance, instance.instance_id)

    def _end(self, instance: Instance, instance_id: str) -> None:
        self.machines.pop(instance_id, None)
        known = self._random.random() < 0.5
        self._tell(ConfirmEnded(instance=instance.name, instance_id=instance_id, known_by_id=known))

    def _readopt(self) -> None:
        for instance in self._some(InstanceState.LOST)[:1]:
            back = self._appear(instance.name, self._ours(instance.node_group), instance.instance_id)
            self.machines[back] = replace(self.machines[back], status="running", price_per_hour=None)
            self._tell(Readopt(instance=instance.name, machine=self.machines[back]))

    def _learn(self) -> None:
        for instance in self._some(InstanceState.RUNNING)[:1]:
            self._tell(LearnProviderId(instance=instance.name, provider_id=f"verda:///{instance.name}"))

    def _surplus(self) -> None:
        for known in list(self.ledger.books.cloud.surplus):
            self._tell(RecordSurplusGone(instance_id=known))
        for instance in self._some(InstanceState.RUNNING, InstanceState.GONE)[:1]:
            self._tell(RecordSurplus(instance=instance.name, instance_id=self._ids.token(), reason="duplicate"))

    def _balance(self) -> None:
        self._tell(RecordBalance(amount=Decimal(self._random.randint(-1, 500)), currency="usd"))

    def _prepare_script(self, instance: Instance, attempt: int) -> None:
        digest, token = self._random.choice("ab"), self._ids.token()
        prepare = PrepareScript(instance=instance.name, attempt=attempt, digest=digest, token_digest=token)
        for item in self._tell(prepare):
            if isinstance(item.event, ScriptUploadAttempted) and self._random.random() < 0.8:
                name, script_id = item.event.script, self._ids.token()
                self._tell(
                    RecordScriptUploaded(instance=instance.name, script=name, script_id=script_id, token_digest=token)
                )

    def _scripts(self) -> None:
        for instance in self._some(InstanceState.RUNNING, InstanceState.FAILED):
            self._tell(RecordFetch(instance=instance.name, source="10.0.0.7"))
        self._tell(AttemptScriptDelete())
        for script in list(self.ledger.books.cloud.scripts.values()):
            if script.deleting or self._random.random() < 0.1:
                reason = ScriptEnd.NO_LONGER_NEEDED if script.deleting else ScriptEnd.LEFT_BEHIND
                self._tell(RecordScriptDeleted(script=script.name, script_id=script.script_id, reason=reason))

    def _sweep(self) -> None:
        for instance in self._some(InstanceState.GONE)[:1]:
            self._tell(RecordVolumeDeleted(volume_id=self._ids.token(), instance=instance.name, size_gb=50))

    def _ghosts(self) -> None:
        for removal in list(self.ledger.books.cluster.removals.values()):
            done = RecordNodeRemoved(uid=removal.uid)
            left = AbandonNodeRemoval(uid=removal.uid, reason="it's back")
            self._tell(self._random.choice((done, left)))
        for instance in self._some(InstanceState.GONE, InstanceState.LOST)[:1]:
            now, end = self.clock.now(), instance.end_reason
            assert end is not None
            node = Node(name=instance.name, uid=self._ids.token(), resource_version="1", created_at=now)
            self._tell(AttemptNodeRemoval(ghost=Ghost(node=node, instance=instance, end=end, silent_since=now)))

    def _nodes(self) -> None:
        """Some machines are nodes, ready or not, one under a name of its own and one without a provider id."""
        nodes: list[Node] = []
        for instance in self._some(InstanceState.RUNNING, InstanceState.PROVISIONING):
            ready = self._random.random() < 0.5
            spelled = self._random.choice((instance.provider_id, "", "aws:///i-0"))
            node = Node(
                name=instance.name,
                uid=self._ids.token(),
                resource_version="1",
                created_at=self.clock.now(),
                provider_id=spelled,
                ready=ready,
                allocatable={"cpu": str(self._random.randint(1, 30)), "nvidia.com/gpu": "1"},
            )
            nodes.append(node)
            repair = Repair(node=node, instance=instance.name, provider_id=instance.provider_id, evidence="it's ours")
            self._tell(AttemptProviderIdRepair(repair=repair))
        self._tell(ObserveNodes(nodes=tuple(nodes), repairs=False))
        self._prepare(nodes)
        self.clock.advance(timedelta(minutes=21))
        self._tell(MeasureNodes(nodes=tuple(nodes)))
        if self._random.random() < 0.1:
            self._tell(DiscardTemplates())

    def _prepare(self, nodes: Sequence[Node]) -> None:
        """Nodes are given a label, or lose a start-up taint; sometimes the outcome is never heard of."""
        taint = NodeTaint(key="example.com/booting", effect="NoSchedule")
        for node in nodes:
            labels = {"node-role.kubernetes.io/gpu": ""} if self._random.random() < 0.5 else {}
            lifted = () if labels else (taint,)
            due = Preparation(node=node, instance=node.name, labels=labels, lifted=lifted)
            self._tell(AttemptNodePreparation(preparation=due))
            if self._random.random() < 0.8:
                self._tell(RecordNodePrepared(instance=node.name, node=node.name))

    def _tokens(self) -> None:
        """Machines get join tokens of their own, which end in every way; the operator's own is renewed at last."""
        for instance in self._some(InstanceState.SUBMITTING, InstanceState.PROVISIONING):
            token_id = self._ids.token()[:6]
            self._tell(AttemptJoinToken(token_id=token_id, instance=instance.name, ttl=timedelta(hours=1)))
            if self._random.random() < 0.8:
                self._tell(RecordJoinTokenMinted(token_id=token_id))
        for token_id in list(self.ledger.books.cluster.tokens):
            if self._random.random() < 0.5:
                reason = self._random.choice(list(TokenEnd))
                self._tell(RecordJoinTokenRevoked(token_id=token_id, reason=reason))
        ends_at = self.clock.now() + timedelta(hours=self._random.choice((1, 24)))
        standing = StandingToken(token_id="abcdef", node_groups=("gpu",), exists=True, expires_at=ends_at)
        self._tell(ObserveJoinTokens(tokens=(standing,)))

    def _never_join(self) -> None:
        """A machine is given back as never registered; an open breaker is closed, or a machine is tried."""
        self.clock.advance(timedelta(minutes=3))
        for instance in self._some(InstanceState.RUNNING):
            names = (instance.name,)
            self._tell(DeleteNodes(node_group=instance.node_group, instances=names, unregistered=frozenset(names)))
        if self.ledger.books.groups["gpu"].joining.is_open and self._random.random() < 0.5:
            self._tell(ResumeNodeGroup(node_group="gpu", operator="anna", reason="the token is new"))
        elif self.ledger.books.groups["gpu"].joining.is_open:
            self.clock.advance(timedelta(hours=7))
            self._increase()
            self._create()
        for instance in self._some(InstanceState.RUNNING, InstanceState.PROVISIONING):
            self._tell(RecordJoined(instance=instance.name))

    def _strangers(self) -> None:
        self._appear(instance_name("gpu", self._ids.suffix()), self._ours("gpu"))
        foreign = Mark(cluster="prod", installation="elsewhere", group="gpu")
        stranger = self._appear(instance_name("gpu", self._ids.suffix()), foreign)
        self._observe()
        del self.machines[stranger]

    def _settle_orphan(self) -> None:
        for known in sorted(self.ledger.books.cloud.orphans)[1:2]:
            self._tell(SettleOrphan(instance_id=known))

    def _revert(self) -> None:
        if self._random.random() < 0.2:
            self._tell(RecordRestore(once_reached=self.ledger.books.position + 3))

    def _catalogue(self) -> None:
        self._price += Decimal("0.01")
        dearer = InstanceType.model_validate({**H100.model_dump(), "on_demand_price": self._price})
        self._tell(RecordCatalogue(types=(dearer, _LEAN) if self._random.random() < 0.6 else (dearer,)))

    def _outage(self) -> None:
        self._tell(RecordUnreachable(code="timeout", message="read timed out"))

    def _deadlines(self) -> None:
        self.clock.advance(timedelta(minutes=self._random.choice((1, 11, 45))))
        self._tell(CheckDeadlines(failed_expiry=timedelta(minutes=30)))


def _with_status(machine: Machine, status: str) -> Machine:
    volume = f"vol-{machine.instance_id}"
    return replace(machine, status=status, ip="10.0.0.7", os_volume_id=volume, volume_ids=(volume, "vol-shared"))
