"""The `Cloud` port on a world: outcomes, faults, hooks."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from app.clock import FakeClock
from app.cloud.port import Cloud, Deletion, DeletionResult
from app.domain.machine import Order, OsVolume
from app.domain.offering import Contract
from app.errors import CloudError, NoCapacity, NotSent, OutcomeUnknown, Rejected, Throttled
from app.simulator.config import parse_config
from app.simulator.fault_model import Fault, Match, Phase, Say
from app.simulator.inprocess import Call, InProcessCloud, Moment
from app.simulator.world import World
from tests.simulator.harness import IMAGE, TIMED, TYPE


def _order(hostname: str = "gpu-1", contract: Contract = Contract.ON_DEMAND, **changes: Any) -> Order:
    fields: dict[str, Any] = {
        "hostname": hostname,
        "instance_type": TYPE,
        "image": IMAGE,
        "location": "FIN-01",
        "contract": contract,
        "description": "ca:v1 cluster=c installation=i group=g",
        "tags": (("ca-group", "g"),),
        "os_volume": OsVolume(name=hostname, size_gb=80),
    }
    return Order(**{**fields, **changes})


class Bench:
    """A cloud whose time is the test's."""

    def __init__(self) -> None:
        self.clock = FakeClock()
        self.world = World(parse_config({**TIMED, "clock": {"mode": "real"}}), self.clock)
        self.cloud = InProcessCloud(self.world)

    def wait(self, seconds: float) -> None:
        """Let time pass."""
        self.clock.advance(seconds)

    def committed(self) -> int:
        """Machines that were really created."""
        return self.world.state.counters.creates_committed


@pytest.fixture
def bench() -> Bench:
    """A fresh cloud and clock."""
    return Bench()


def test_it_is_a_cloud(bench: Bench) -> None:
    """It satisfies the port, and says what it is."""
    cloud: Cloud = bench.cloud
    assert cloud.backend == "simulator"


def test_a_machine_from_order_to_end(bench: Bench) -> None:
    """The test's clock drives the cloud: running after 105 s, gone 10 s after the delete."""
    instance_id = bench.cloud.create_instance(_order(contract=Contract.SPOT))
    (early,) = bench.cloud.list_instances()
    assert (early.instance_id, early.status, early.ip, early.image) == (instance_id, "ordered", None, None)
    bench.wait(105)
    machine = bench.cloud.get_instance(instance_id)
    assert machine is not None
    assert (machine.status, machine.contract, machine.price_per_hour) == ("running", Contract.SPOT, Decimal("0.8015"))
    assert machine.created_at == FakeClock().now()
    assert machine.volume_ids == (machine.os_volume_id,)
    (volume,) = bench.cloud.volumes()
    assert (volume.name, volume.size_gb, volume.is_os_volume, volume.instance_id) == ("gpu-1", 80, True, instance_id)
    deletion = Deletion(instance_id=instance_id, volume_ids=machine.volume_ids)
    (answer,) = bench.cloud.delete_instances([deletion])
    assert answer.result is DeletionResult.ACCEPTED
    bench.wait(10)
    assert bench.cloud.list_instances() == []
    gone = bench.cloud.get_instance(instance_id)
    assert gone is not None
    assert gone.status == "discontinued"
    assert bench.cloud.volumes() == []
    (again,) = bench.cloud.delete_instances([deletion])
    assert again.result is DeletionResult.ALREADY_GONE


def test_what_deletions_answer(bench: Bench) -> None:
    """Refused in provisioning, already gone when unknown, one answer each, in order."""
    instance_id = bench.cloud.create_instance(_order())
    bench.wait(5)
    unknown = "00000000-0000-4000-8000-000000000000"
    answers = bench.cloud.delete_instances(
        [Deletion(instance_id=one, volume_ids=None) for one in (unknown, instance_id)]
    )
    assert [answer.result for answer in answers] == [DeletionResult.ALREADY_GONE, DeletionResult.REFUSED]
    assert answers[1].message == "Can't discontinue a provisioning instance"


def test_reading_the_rest(bench: Bench) -> None:
    """Catalogue, availability, locations, images, balance, unknown ids, loose volumes."""
    types = {item.name: item for item in bench.cloud.instance_types()}
    assert len(types) == 55
    assert (types[TYPE].on_demand_price, types[TYPE].memory_gb) == (Decimal("2.290"), Decimal(120))
    assert types["8V100.48V"].storage_gb == Decimal(1800)
    assert TYPE in bench.cloud.availability(Contract.SPOT)["FIN-02"]
    assert list(bench.cloud.locations()) == ["FIN-01", "FIN-02", "FIN-03", "ICE-01"]
    assert IMAGE in bench.cloud.images()
    assert bench.cloud.balance().amount == Decimal("100000.0")
    assert bench.cloud.get_instance("00000000-0000-4000-8000-000000000000") is None
    bench.cloud.delete_volume("00000000-0000-4000-8000-000000000000", permanent=True)


@pytest.mark.parametrize(
    ("preset", "error", "committed"),
    [
        ("create_timeout_before_commit", OutcomeUnknown, 0),
        ("create_timeout_after_commit", OutcomeUnknown, 1),
        ("create_reset_after_commit", OutcomeUnknown, 1),
        ("create_truncated", OutcomeUnknown, 1),
        ("create_cut_id", OutcomeUnknown, 1),
        ("create_empty_body", OutcomeUnknown, 1),
        ("create_5xx_before", OutcomeUnknown, 0),
        ("create_5xx_after", OutcomeUnknown, 1),
        ("html_502", OutcomeUnknown, 0),
        ("slow", OutcomeUnknown, 1),
        ("no_capacity_503", NoCapacity, 0),
        ("rate_limit", Throttled, 0),
        ("token_scope_403", Rejected, 0),
        ("quota_gpu", Rejected, 0),
    ],
)
def test_outcomes_of_a_create(bench: Bench, preset: str, error: type[CloudError], committed: int) -> None:
    """The closed set of outcomes, and what really happened behind each."""
    bench.cloud.trouble(preset, **({"seconds": 60} if preset == "slow" else {}))
    with pytest.raises(error):
        bench.cloud.create_instance(_order())
    assert bench.committed() == committed


@pytest.mark.parametrize(
    "preset", ["create_quoted_id", "create_object_id", "create_newline_id", "token_expired_midflight"]
)
def test_what_a_careful_client_survives(bench: Bench, preset: str) -> None:
    """Odd forms of the id are read, and a 401 is answered by sending again."""
    bench.cloud.trouble(preset)
    instance_id = bench.cloud.create_instance(_order())
    assert bench.world.state.instances[instance_id].hostname == "gpu-1"


def test_an_unreadable_list_is_no_list(bench: Bench) -> None:
    """An entry without an id makes the whole list unreadable; the next one is fine."""
    bench.cloud.create_instance(_order())
    for preset in ("object_null_id", "ok_html", "list_truncated_json"):
        bench.cloud.trouble(preset)
        with pytest.raises(OutcomeUnknown):
            bench.cloud.list_instances()
    assert len(bench.cloud.list_instances()) == 1


def test_odd_types_do_not_hide_the_others(bench: Bench) -> None:
    """An entry that makes no sense is left out."""
    bench.cloud.trouble("type_missing_field", type=TYPE, field="cpu")
    assert len(bench.cloud.instance_types()) == 54


def test_a_batch_in_which_one_answer_is_lost(bench: Bench) -> None:
    """Once something was answered, the lost one is answered as refused; when all are lost it raises."""
    ids = [bench.cloud.create_instance(_order(f"gpu-{number}")) for number in range(2)]
    bench.wait(105)
    deletions = [Deletion(instance_id=one, volume_ids=None) for one in ids]
    bench.cloud.trouble("delete_timeout_after_commit", body={"id": ids[1]})
    answers = bench.cloud.delete_instances(deletions)
    assert [answer.result for answer in answers] == [DeletionResult.ACCEPTED, DeletionResult.REFUSED]
    assert answers[1].code == "timeout"
    bench.cloud.trouble("delete_timeout_before_commit", times=-1)
    with pytest.raises(OutcomeUnknown):
        bench.cloud.delete_instances(deletions)


def test_a_hook_decides_per_call(bench: Bench) -> None:
    """Raising before means nothing was done, raising at the answer that it was done and got lost."""
    seen: list[tuple[str, str, Moment]] = []

    def hook(call: Call, moment: Moment) -> None:
        seen.append((call.operation, call.subject, moment))
        if call.subject == "lost-before" and moment is Moment.BEFORE:
            raise NotSent("no network", code="network")
        if call.subject == "lost-after" and moment is Moment.ANSWERED:
            raise OutcomeUnknown("cut", code="connection_lost")

    bench.cloud.hook = hook
    with pytest.raises(NotSent):
        bench.cloud.create_instance(_order("lost-before"))
    assert bench.committed() == 0
    with pytest.raises(OutcomeUnknown):
        bench.cloud.create_instance(_order("lost-after"))
    assert bench.committed() == 1
    assert seen == [
        ("create_instance", "lost-before", Moment.BEFORE),
        ("create_instance", "lost-after", Moment.BEFORE),
        ("create_instance", "lost-after", Moment.ANSWERED),
    ]


def test_down_means_not_sent(bench: Bench) -> None:
    """While `down` nothing reaches the cloud."""
    bench.cloud.down = True
    with pytest.raises(NotSent):
        bench.cloud.list_instances()
    assert bench.cloud.exchange.requests == 0


def test_a_hand_made_fault(bench: Bench) -> None:
    """Anything can be injected."""
    fault = Fault(match=Match(path="/v1/balance"), phase=Phase.BEFORE_COMMIT, action=Say(status=503, text="busy"))
    bench.cloud.inject(fault)
    with pytest.raises(OutcomeUnknown) as caught:
        bench.cloud.balance()
    assert caught.value.status == 503


def test_the_cloud_does_not_follow_a_wrong_wall_clock(bench: Bench) -> None:
    """Our wall clock stepping back does not turn the cloud's time back."""
    instance_id = bench.cloud.create_instance(_order())
    bench.wait(105)
    bench.clock.step_wall(timedelta(hours=-1))
    machine = bench.cloud.get_instance(instance_id)
    assert machine is not None
    assert machine.status == "running"
