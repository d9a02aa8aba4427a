"""Two days of one installation, told by hand: what can go wrong with rented machines, once each.

Node group `gpu` takes spot before on-demand machines at two places, `batch` only on-demand ones and at most 5.00 an
hour. Spot costs 0.60 and from 12:00 on 0.90 an hour, on-demand 2.40. What it comes to:

| machine | from | to | hours | price | cost |
|---|---|---|---|---|---|
| A, spot, evicted | 08:00 | 10:00 | 2 | 0.60 | 1.20 |
| B, on demand after spot was out of stock at both places | 08:00 | 02:00 on the next day | 18 | 2.40 | 43.20 |
| C, spot, its order's answer lost, found by name | 10:01 | 12:00 | 1 59/60 | 0.60 | 1.19 |
| the same at the new price | 12:00 | 14:01 | 2 1/60 | 0.90 | 1.815 |
| C's double, nobody's | 10:03 | 10:13 | 1/6 | 0.60, its namesake's then | 0.10, on top |
| D, of `batch`, never booted | 11:05 | 11:15 | 1/6 | 2.40 | 0.40 |
| E, refused everywhere | | | | | nothing |
| F, wanted and released at once | | | | | nothing |

So `gpu` cost 47.405, of it 4.205 for spot machines, `batch` 0.40, all 47.805; the first day 43.005, the second 4.80.
"""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

from app.clock import FakeClock
from app.domain.cloud import (
    RecordCatalogue,
    RecordSurplus,
    RecordSurplusGone,
    RecordUnreachable,
    RecordVolumeDeleted,
)
from app.domain.decide import Command
from app.domain.envelope import Cause
from app.domain.ids import Mark
from app.domain.instance.commands import (
    AttemptCreate,
    AttemptDelete,
    ConfirmEnded,
    RecordCreated,
    RecordCreateRefused,
    RecordCreateUnknown,
    Refusal,
)
from app.domain.instance.events import Found
from app.domain.machine import Machine
from app.domain.nodegroup.commands import (
    DecreaseTargetSize,
    DeleteNodes,
    IncreaseSize,
    PauseNodeGroup,
    ResumeNodeGroup,
)
from app.domain.observation import ObserveMachines
from app.domain.offering import Contract
from app.errors import RuleViolation
from app.ledger.ledger import Ledger
from tests.store.harness import H100, group, opened, start

A, B, C = "gpu-aaaaaaaa", "gpu-bbbbbbbb", "gpu-cccccccc"
D, E, F = "batch-dddddddd", "gpu-eeeeeeee", "gpu-ffffffff"
DAY = datetime(2026, 1, 5, tzinfo=UTC)


def time(text: str) -> datetime:
    """`14:30` of 5 January 2026; `26:00` is two o'clock of the next day."""
    hours, minutes = text.split(":")
    return DAY + timedelta(hours=int(hours), minutes=int(minutes))


class Teller:
    """Has commands done at their times. What an actor does at one time has one correlation id."""

    def __init__(self, ledger: Ledger, clock: FakeClock) -> None:
        self._ledger = ledger
        self._clock = clock

    def at(self, when: str, actor: str, *commands: Command) -> None:
        """The actor's commands; a refusal is part of the story."""
        self._clock.advance(time(when) - self._clock.now())
        cause = Cause(actor=actor, correlation_id=f"{actor.partition('/')[2] or 'rpc'}-{when}")
        for command in commands:
            try:
                self._ledger.execute(command, cause)
            except RuleViolation:
                continue

    def autoscaler(self, when: str, *commands: Command) -> None:
        """What Cluster Autoscaler asks for."""
        self.at(when, "cluster-autoscaler", *commands)

    def job(self, when: str, name: str, *commands: Command) -> None:
        """What a job records."""
        self.at(when, f"reconcile/{name}", *commands)


def tell(path: Path) -> None:
    """Write the story into a new database, and leave it closed."""
    clock = FakeClock(DAY)
    groups = (
        group("gpu", max_size=4),
        group("batch", max_size=5, contracts=(Contract.ON_DEMAND,), max_hourly_cost=Decimal("5.00")),
    )
    with opened(path, clock) as ledger:
        start(ledger, *groups)
        teller = Teller(ledger, clock)
        _fallback_and_eviction(teller)
        _unknown_and_double(teller)
        _budget_and_failed_boot(teller)
        _new_price_and_end_of_c(teller)
        _stock_out_and_pause(teller)


def _fallback_and_eviction(teller: Teller) -> None:
    teller.autoscaler("08:00", IncreaseSize(node_group="gpu", delta=2, names=(A, B)))
    teller.job(
        "08:00",
        "provision",
        AttemptCreate(instance=A),
        RecordCreated(instance=A, instance_id="i-a", found=Found.ANSWERED),
        AttemptCreate(instance=B),
        _out_of_stock(B, 1),
        AttemptCreate(instance=B),
        _out_of_stock(B, 2),
        AttemptCreate(instance=B),
        RecordCreated(instance=B, instance_id="i-b", found=Found.ANSWERED),
    )
    teller.job("08:05", "observe", _seen(_machine(A, "i-a", "08:00"), _machine(B, "i-b", "08:00", price="2.40")))
    teller.job("10:00", "observe", ConfirmEnded(instance=A, instance_id="i-a", known_by_id=True))


def _unknown_and_double(teller: Teller) -> None:
    teller.autoscaler("10:00", IncreaseSize(node_group="gpu", delta=1, names=(C,)))
    teller.job(
        "10:01",
        "provision",
        AttemptCreate(instance=C),
        RecordCreateUnknown(instance=C, attempt=1, reason="read timed out"),
    )
    teller.job("10:02", "provision", RecordCreated(instance=C, instance_id="i-c", found=Found.LOOKED_UP))
    teller.job("10:03", "observe", RecordSurplus(instance=C, instance_id="i-x", reason="duplicate"))
    teller.job("10:05", "observe", _seen(_machine(C, "i-c", "10:01"), _machine(B, "i-b", "08:00", price="2.40")))
    teller.job("10:13", "terminate", RecordSurplusGone(instance_id="i-x"))
    teller.job("10:30", "sweep", RecordVolumeDeleted(volume_id="v-a", instance=A, size_gb=100))


def _budget_and_failed_boot(teller: Teller) -> None:
    names = ("batch-11111111", "batch-22222222", "batch-33333333")
    teller.autoscaler("11:00", IncreaseSize(node_group="batch", delta=3, names=names))  # 3 x 2.40 is more than 5.00
    teller.autoscaler("11:05", IncreaseSize(node_group="batch", delta=1, names=(D,)))
    teller.job(
        "11:05",
        "provision",
        AttemptCreate(instance=D),
        RecordCreated(instance=D, instance_id="i-d", found=Found.ANSWERED),
    )
    broken = _machine(D, "i-d", "11:05", price="2.40", status="error")
    teller.job(
        "11:10", "observe", _seen(broken, _machine(B, "i-b", "08:00", price="2.40"), _machine(C, "i-c", "10:01"))
    )
    teller.autoscaler("11:12", DeleteNodes(node_group="batch", instances=(D,)))
    teller.job("11:13", "terminate", AttemptDelete(instances=(D,)))
    teller.job("11:15", "observe", ConfirmEnded(instance=D, instance_id="i-d", known_by_id=True))


def _new_price_and_end_of_c(teller: Teller) -> None:
    dearer = H100.model_copy(update={"spot_price": Decimal("0.90")})
    teller.job("12:00", "catalog", RecordCatalogue(types=(dearer,)))
    machines = (_machine(C, "i-c", "10:01", price="0.90"), _machine(B, "i-b", "08:00", price="2.40"))
    teller.job("12:00", "observe", _seen(*machines))
    teller.job("13:00", "observe", RecordUnreachable(code="timeout", message="no answer"))
    teller.job("13:20", "observe", _seen(*machines))
    teller.autoscaler("14:00", DeleteNodes(node_group="gpu", instances=(C,)))
    teller.job("14:00", "terminate", AttemptDelete(instances=(C,)))
    teller.job("14:01", "observe", ConfirmEnded(instance=C, instance_id="i-c", known_by_id=True))


def _stock_out_and_pause(teller: Teller) -> None:
    teller.autoscaler("15:00", IncreaseSize(node_group="gpu", delta=1, names=(E,)))
    for attempt in (1, 2, 3, 4):
        teller.job("15:00", "provision", AttemptCreate(instance=E), _out_of_stock(E, attempt))
    teller.autoscaler("15:01", DeleteNodes(node_group="gpu", instances=(E,)))
    teller.at("16:00", "operator", PauseNodeGroup(node_group="gpu", operator="anna", reason="new GPU driver"))
    teller.autoscaler("16:10", IncreaseSize(node_group="gpu", delta=1, names=("gpu-44444444",)))
    teller.at("17:00", "operator", ResumeNodeGroup(node_group="gpu", operator="anna", reason="the driver is out"))
    teller.autoscaler("18:00", IncreaseSize(node_group="gpu", delta=1, names=(F,)))
    teller.autoscaler("18:00", DecreaseTargetSize(node_group="gpu", delta=-1))
    teller.autoscaler("25:59", DeleteNodes(node_group="gpu", instances=(B,)))
    teller.job("25:59", "terminate", AttemptDelete(instances=(B,)))
    teller.job("26:00", "observe", ConfirmEnded(instance=B, instance_id="i-b", known_by_id=True))


def _out_of_stock(instance: str, attempt: int) -> RecordCreateRefused:
    return RecordCreateRefused(
        instance=instance,
        attempt=attempt,
        refusal=Refusal.NO_CAPACITY,
        status=503,
        code="service_unavailable",
        message="No capacity available",
        retry_after=None,
    )


def _seen(*machines: Machine) -> ObserveMachines:
    return ObserveMachines(machines=machines, backend="simulator", claim=False)


def _machine(hostname: str, instance_id: str, created: str, *, price: str = "0.60", status: str = "running") -> Machine:
    """Spot machines are those below 2.40 an hour."""
    node_group = hostname.rpartition("-")[0]
    return Machine(
        instance_id=instance_id,
        hostname=hostname,
        status=status,
        description=Mark(cluster="prod", installation="inst1", group=node_group).text(),
        instance_type=H100.name,
        image="ubuntu-24.04",
        location="FIN-01",
        contract=Contract.ON_DEMAND if price == "2.40" else Contract.SPOT,
        price_per_hour=Decimal(price),
        created_at=time(created),
    )
