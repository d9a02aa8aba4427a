"""The audit views: one story, told by hand, and what each view must say of it."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.cloud import RecordSurplusGone, RecordUnreachable
from app.domain.decide import Command
from app.domain.envelope import Cause
from app.domain.ids import Mark
from app.domain.instance.commands import (
    AttemptCreate,
    AttemptDelete,
    ConfirmEnded,
    RecordCreated,
    RecordCreateRefused,
    Refusal,
)
from app.domain.instance.events import Found
from app.domain.machine import Machine
from app.domain.nodegroup.commands import DeleteNodes, IncreaseSize
from app.domain.observation import ObserveMachines, Readopt
from app.domain.offering import Contract
from app.ledger.ledger import Ledger
from app.store.views import VIEWS

from .harness import CA, group, opened, rows, start

JOB = Cause(actor="reconcile/provision", correlation_id="run-7")
NASTY = 'it\'s "full"; DROP TABLE events; --'
A, B = "gpu-aaaaaaaa", "gpu-bbbbbbbb"
NO_MONEY = "(insufficient-funds): no money; top up the Verda balance"
PAUSED = "2026-01-05T10:02:00Z"


def machine(status: str, instance_id: str = "i-1", created_at: datetime | None = None) -> Machine:
    """The machine of instance A as the cloud lists it."""
    return Machine(
        instance_id=instance_id,
        hostname=A,
        status=status,
        description=Mark(cluster="prod", installation="inst1", group="gpu").text(),
        instance_type="1H100.80S.30V",
        image="ubuntu-24.04",
        location="FIN-01",
        contract=Contract.SPOT,
        price_per_hour=Decimal("0.60"),
        created_at=created_at,
    )


class Teller:
    """Commands at times: hours and minutes of 5 January 2026 (and of the 6th, from 24:00 on)."""

    def __init__(self, ledger: Ledger, clock: FakeClock) -> None:
        self._ledger = ledger
        self._clock = clock

    def at(self, time: str, *commands: Command, cause: Cause = JOB) -> None:
        """Have these done at that time."""
        hours, minutes = time.split(":")
        then = datetime(2026, 1, 5, tzinfo=UTC) + timedelta(hours=int(hours), minutes=int(minutes))
        self._clock.advance(then - self._clock.now())
        for command in commands:
            self._ledger.execute(command, cause)


@pytest.fixture(scope="module")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two nodes asked for at ten; one runs, is evicted, comes back and is given back, the other is never in stock.

    Positions 1 to 6 are the start of the installation.
    """
    path, clock = tmp_path_factory.mktemp("views") / "provider.db", FakeClock()
    with opened(path, clock) as ledger:
        start(ledger)
        tell = Teller(ledger, clock)
        tell.at("10:00", IncreaseSize(node_group="gpu", delta=2, names=(A, B)), cause=CA)  # 7 8 9
        tell.at(
            "10:01",
            AttemptCreate(instance=A),  # 10
            RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED),  # 11
            AttemptCreate(instance=B),  # 12
            refused(B, 1, Refusal.NO_CAPACITY, 503, NASTY),  # 13 refused, 14 rested
            AttemptCreate(instance=B),  # 15
            refused(B, 2, Refusal.REJECTED, 402, "no money"),  # 16 refused, 17 account, 18 failed
        )
        born = datetime(2026, 1, 5, 10, 2, tzinfo=UTC)
        tell.at(
            "10:05", ObserveMachines(machines=(machine("running", created_at=born),), backend="x", claim=False)
        )  # 19
        tell.at("10:10", DeleteNodes(node_group="gpu", instances=(B,)), cause=CA)  # 20 scale-down, 21 cancelled
        tell.at("11:00", RecordUnreachable(code="timeout", message="no answer"))  # 22
        tell.at("11:30", ObserveMachines(machines=(machine("running"),), backend="simulator", claim=False))  # 23
        tell.at("12:02", ConfirmEnded(instance=A, instance_id="i-1", known_by_id=True))  # 24 lost
        tell.at("12:10", Readopt(instance=A, machine=machine("running")))  # 25 adopted, 26 observed
        tell.at("13:00", DeleteNodes(node_group="gpu", instances=(A,)), cause=CA)  # 27 scale-down, 28 delete-requested
        tell.at("13:01", AttemptDelete(instances=(A,)))  # 29
        tell.at("13:32", ConfirmEnded(instance=A, instance_id="i-1", known_by_id=True))  # 30 gone
        tell.at("14:00", RecordUnreachable(code="dns", message="no such host"))  # 31
    return path


def refused(instance: str, attempt: int, refusal: Refusal, status: int, message: str) -> RecordCreateRefused:
    """A create call that did nothing."""
    return RecordCreateRefused(
        instance=instance,
        attempt=attempt,
        refusal=refusal,
        status=status,
        code="x",
        message=message,
        retry_after=None,
    )


def test_v_events_tells_every_fact_in_a_sentence(story: Path) -> None:
    """With the fields of the payload in their places, whatever characters those have."""
    told = rows(story, "SELECT position, substr(recorded_at, 12, 5), what FROM v_events WHERE position > 6 ORDER BY 1")
    assert told == [
        (7, "10:00", "2 more wanted in gpu: target size 2"),
        (8, "10:00", "gpu-aaaaaaaa wanted"),
        (9, "10:00", "gpu-bbbbbbbb wanted"),
        (10, "10:01", "gpu-aaaaaaaa: ordering 1H100.80S.30V spot in FIN-01, attempt 1"),
        (11, "10:01", "gpu-aaaaaaaa exists as i-1 (answered)"),
        (12, "10:01", "gpu-bbbbbbbb: ordering 1H100.80S.30V spot in FIN-01, attempt 1"),
        (13, "10:01", f"gpu-bbbbbbbb: order refused, out-of-stock: {NASTY}; add locations or another group"),
        (14, "10:01", "gpu: 1H100.80S.30V spot in FIN-01 rests until 2026-01-05T10:11:00Z (out-of-stock)"),
        (15, "10:01", "gpu-bbbbbbbb: ordering 1H100.80S.30V spot in FIN-03, attempt 2"),
        (16, "10:01", "gpu-bbbbbbbb: order refused, insufficient-funds: no money; top up the Verda balance"),
        (
            17,
            "10:01",
            f"Verda takes no orders from this account, next try at {PAUSED} {NO_MONEY}",
        ),
        (18, "10:01", "gpu-bbbbbbbb failed, insufficient-funds: no money; top up the Verda balance"),
        (19, "10:05", "gpu-aaaaaaaa is running: the cloud says running"),
        (20, "10:10", "gpu gives back 1 instances: target size 1"),
        (21, "10:10", "gpu-bbbbbbbb no longer wanted, nothing was bought (deleted)"),
        (22, "11:00", "the cloud does not answer, timeout: no answer"),
        (23, "11:30", "the cloud answers (simulator)"),
        (24, "12:02", "gpu-aaaaaaaa was lost (evicted), cost 1.200000 usd"),
        (25, "12:10", "gpu-aaaaaaaa (i-1) found at the cloud and taken into gpu"),
        (26, "12:10", "gpu-aaaaaaaa is running: the cloud says running"),
        (27, "13:00", "gpu gives back 1 instances: target size 0"),
        (28, "13:00", "gpu-aaaaaaaa to be deleted (scale-down)"),
        (29, "13:01", "gpu-aaaaaaaa: deleting i-1 with its OS volume, attempt 1"),
        (30, "13:32", "gpu-aaaaaaaa is gone, cost 2.100000 usd"),
        (31, "14:00", "the cloud does not answer, dns: no such host"),
    ]


def test_v_events_says_who_asked_and_in_which_call(story: Path) -> None:
    """F77: one correlation id joins everything that one call or one job run did."""
    query = "SELECT actor, node_group, instance, type FROM v_events WHERE correlation_id = ? ORDER BY position"
    assert rows(story, query, CA.correlation_id) == [
        ("cluster-autoscaler", "gpu", None, "nodegroup.scale-up-requested"),
        ("cluster-autoscaler", "gpu", A, "instance.requested"),
        ("cluster-autoscaler", "gpu", B, "instance.requested"),
        ("cluster-autoscaler", "gpu", None, "nodegroup.scale-down-requested"),
        ("cluster-autoscaler", "gpu", B, "instance.cancelled"),
        ("cluster-autoscaler", "gpu", None, "nodegroup.scale-down-requested"),
        ("cluster-autoscaler", "gpu", A, "instance.delete-requested"),
    ]


def test_v_instance_history_is_one_row_an_instance(story: Path) -> None:
    """10:02 to 13:32 are 3.5 hours at 0.60, so 2.10; what was never created cost nothing."""
    columns = (
        "instance, state, contract, location, substr(requested_at, 12, 5), requested_by, substr(created_at, 12, 5), "
        "substr(running_at, 12, 5), substr(delete_requested_at, 12, 5), substr(ended_at, 12, 5), reason, "
        "price_per_hour, hours, cost, currency, error_code, create_attempts, delete_attempts"
    )
    who = "cluster-autoscaler"
    assert rows(story, f"SELECT {columns} FROM v_instance_history ORDER BY ordinal") == [  # noqa: S608 - constants
        (
            *(A, "gone", "spot", "FIN-01", "10:00", who, "10:02", "10:05", "13:00", "13:32", "scale-down"),
            *("0.60", 3.5, "2.100000", "usd", None, 1, 1),
        ),
        (
            *(B, "cancelled", "spot", "FIN-03", "10:00", who, None, None, None, "10:10", "deleted"),
            *("0.60", None, None, "usd", "insufficient-funds", 2, 0),
        ),
    ]


def test_v_target_size_history_counts_what_the_autoscaler_was_told(story: Path) -> None:
    """Also the instance that was lost and adopted again; its observation and its end change nothing."""
    query = (
        "SELECT position, node_group, change, target_size, actor, instance FROM v_target_size_history ORDER BY position"
    )
    assert rows(story, query) == [
        (8, "gpu", 1, 1, "cluster-autoscaler", A),
        (9, "gpu", 1, 2, "cluster-autoscaler", B),
        (21, "gpu", -1, 1, "cluster-autoscaler", B),
        (24, "gpu", -1, 0, "reconcile/provision", A),
        (25, "gpu", 1, 1, "reconcile/provision", A),
        (28, "gpu", -1, 0, "cluster-autoscaler", A),
    ]


def test_v_failures_has_what_went_wrong_in_whose_words(story: Path) -> None:
    """Refusals, failures for good, and machines that were taken from us."""
    query = "SELECT position, node_group, instance, error_class, code, message FROM v_failures ORDER BY position"
    assert rows(story, query) == [
        (13, "gpu", B, 1, "out-of-stock", f"{NASTY}; add locations or another group"),
        (16, "gpu", B, 1, "insufficient-funds", "no money; top up the Verda balance"),
        (18, "gpu", B, 1, "insufficient-funds", "no money; top up the Verda balance"),
        (24, "gpu", A, None, "evicted", None),
    ]


def test_v_api_outages_is_one_row_an_outage(story: Path) -> None:
    """From 11:00 to 11:30, and one that is not over; the time between outages is none."""
    query = (
        "SELECT substr(began_at, 12, 5), substr(ended_at, 12, 5), seconds, code, message FROM v_api_outages ORDER BY 1"
    )
    assert rows(story, query) == [
        ("11:00", "11:30", 1800.0, "timeout", "no answer"),
        ("14:00", None, None, "dns", "no such host"),
    ]


def test_v_costs_daily_adds_up_to_the_cost_of_the_instance(story: Path) -> None:
    """One day here."""
    assert rows(story, "SELECT * FROM v_costs_daily") == [("2026-01-05", "gpu", "spot", 1, 3.5, "2.100000", "usd")]


def test_v_costs_daily_splits_a_machine_at_midnight(started: Path) -> None:
    """22:30 to 01:30 two nights later: 1.5, 24 and 1.5 hours at 0.60."""
    clock = FakeClock()
    with opened(started, clock) as ledger:
        tell = Teller(ledger, clock)
        tell.at("22:30", IncreaseSize(node_group="gpu", delta=1, names=(A,)), AttemptCreate(instance=A))
        tell.at("22:30", RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED))
        tell.at("49:30", ConfirmEnded(instance=A, instance_id="i-1", known_by_id=True))
    assert rows(started, "SELECT day, instances, hours, cost FROM v_costs_daily ORDER BY day") == [
        ("2026-01-05", 1, 1.5, "0.900000"),
        ("2026-01-06", 1, 24.0, "14.400000"),
        ("2026-01-07", 1, 1.5, "0.900000"),
    ]
    assert rows(started, "SELECT hours, cost FROM v_instance_history") == [(27.0, "16.200000")]


def test_v_open_instances_has_what_is_not_over(started: Path) -> None:
    """What there is now, what it costs an hour, and why it may not be well."""
    with opened(started) as ledger:
        ledger.execute(IncreaseSize(node_group="gpu", delta=3, names=(A, B, "gpu-cccccccc")), CA)
        for name in (A, B):
            ledger.execute(AttemptCreate(instance=name), JOB)
        ledger.execute(RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED), JOB)
        ledger.execute(refused(B, 1, Refusal.REJECTED, 402, "no money"), JOB)
        ledger.execute(DeleteNodes(node_group="gpu", instances=("gpu-cccccccc",)), CA)
    query = "SELECT instance, state, instance_id, price_per_hour, error_code FROM v_open_instances ORDER BY instance"
    assert rows(started, query) == [
        (A, "provisioning", "i-1", "0.60", None),
        (B, "failed", None, "0.60", "insufficient-funds"),
    ]


def test_a_machine_that_the_clock_says_is_not_born_yet_costs_nothing(started: Path) -> None:
    """The cloud's clock may be ahead of ours; a negative cost would pay for somebody else's."""
    with opened(started) as ledger:
        ledger.execute(IncreaseSize(node_group="gpu", delta=1, names=(A,)), CA)
        ledger.execute(AttemptCreate(instance=A), JOB)
        ledger.execute(RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED), JOB)
        unborn = machine("running", created_at=datetime(2999, 1, 1, tzinfo=UTC))
        ledger.execute(ObserveMachines(machines=(unborn,), backend="x", claim=False), JOB)
    assert rows(started, "SELECT hours, cost FROM v_instance_history") == [(0.0, "0.000000")]
    assert rows(started, "SELECT hours, cost FROM v_costs_daily") == [(0.0, "0.000000")]


def test_v_waste_has_what_never_became_a_node_and_what_was_switched_off(started: Path) -> None:
    """Half an hour of A at 0.60 for nothing; B was off from 11:00 to 12:00 and from 12:30 to its deletion at 13:00."""
    clock = FakeClock()
    with opened(started, clock) as ledger:
        tell = Teller(ledger, clock)
        tell.at("10:00", IncreaseSize(node_group="gpu", delta=2, names=(A, B)), cause=CA)
        for name, instance_id in ((A, "i-1"), (B, "i-2")):
            tell.at("10:00", AttemptCreate(instance=name))
            tell.at("10:00", RecordCreated(instance=name, instance_id=instance_id, found=Found.ANSWERED))
        born = datetime(2026, 1, 5, 10, tzinfo=UTC)
        first, second = machine("running", created_at=born), replace(machine("running", "i-2", born), hostname=B)
        tell.at("10:05", observed(first, second))
        tell.at("10:20", DeleteNodes(node_group="gpu", instances=(A,), unregistered=frozenset({A})), cause=CA)
        tell.at("10:30", ConfirmEnded(instance=A, instance_id="i-1", known_by_id=True))
        tell.at("11:00", observed(replace(second, status="offline")))
        tell.at("12:00", observed(second))
        tell.at("12:30", observed(replace(second, status="offline")))
        tell.at("13:00", DeleteNodes(node_group="gpu", instances=(B,)), cause=CA)
        tell.at("13:10", ConfirmEnded(instance=B, instance_id="i-2", known_by_id=True))
    query = "SELECT kind, instance, substr(since, 12, 5), substr(until, 12, 5), hours, cost FROM v_waste ORDER BY since"
    assert rows(started, query) == [
        ("never-joined", A, "10:00", "10:30", 0.5, "0.300000"),
        ("switched-off", B, "11:00", "12:00", 1.0, "0.600000"),
        ("switched-off", B, "12:30", "13:00", 0.5, "0.300000"),
    ]


def test_orders_that_were_never_placed_cost_nothing_in_any_view(fresh: Path) -> None:
    """Neither the record that the first left at the first place, nor the failure at the last one; both show a price."""
    clock = FakeClock()
    born = datetime(2026, 1, 5, 10, tzinfo=UTC)
    first = machine("no_capacity", "i-1", born)
    last = replace(machine("no_capacity", "i-2", born), location="FIN-03")
    with opened(fresh, clock) as ledger:
        start(ledger, group(contracts=(Contract.SPOT,)))
        tell = Teller(ledger, clock)
        tell.at("10:00", IncreaseSize(node_group="gpu", delta=1, names=(A,)), AttemptCreate(instance=A))
        tell.at("10:00", RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED))
        tell.at("10:01", observed(first), AttemptCreate(instance=A))
        tell.at("10:01", RecordCreated(instance=A, instance_id="i-2", found=Found.ANSWERED))
        tell.at("10:02", observed(first, last))
        tell.at("11:00", DeleteNodes(node_group="gpu", instances=(A,)), RecordSurplusGone(instance_id="i-1"), cause=CA)
        tell.at("11:30", observed(replace(last, status="deleting")))
        tell.at("12:00", ConfirmEnded(instance=A, instance_id="i-2", known_by_id=True))
    history = "SELECT state, instance_id, created_at, price_per_hour, hours, cost FROM v_instance_history"
    assert rows(fresh, history) == [("gone", "i-2", None, None, None, None)]
    assert [rows(fresh, f"SELECT * FROM {view}") for view in ("v_billing", "v_costs_daily", "v_waste")] == [[], [], []]  # noqa: S608 - ours


def observed(*machines: Machine) -> ObserveMachines:
    """A listing."""
    return ObserveMachines(machines=machines, backend="simulator", claim=False)


def test_views_say_nothing_of_an_empty_log(fresh: Path) -> None:
    """And none of them fails on it."""
    assert [row for name in VIEWS for row in rows(fresh, f"SELECT * FROM {name}")] == []  # noqa: S608 - ours
