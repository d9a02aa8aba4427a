from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.pricing import PricedNode, hourly_price_of, hours_between, node_price, pod_price

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
GIB = 2**30
ONE = Decimal(1)

EIGHT_H100 = InstanceType(
    name="8H100.80S.176V",
    cpus=176,
    memory_gb=Decimal(1480),
    gpus=8,
    gpu_memory_gb=Decimal(640),
    gpu_name="H100 SXM5 80GB",
    model="H100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("18.32"),
    spot_price=Decimal("6.412"),
    currency="usd",
)
SPEC = NodeGroupSpec(
    name="gpu", min_size=0, max_size=2, instance_type="8H100.80S.176V", image="ubuntu-24.04", locations=("FIN-01",)
)

GPU_NODE = PricedNode(
    allocatable={
        "cpu": Decimal(160),
        "memory": Decimal(1280 * GIB),
        "pods": Decimal(110),
        "nvidia.com/gpu": Decimal(8),
    },
    hourly=Decimal("18.32"),
)
CPU_NODE = PricedNode(
    allocatable={"cpu": Decimal(8), "memory": Decimal(32 * GIB), "pods": Decimal(110)}, hourly=Decimal("0.05580")
)


@pytest.mark.parametrize(
    ("contract", "override", "price"),
    [
        (Contract.ON_DEMAND, None, "18.32"),
        (Contract.SPOT, None, "6.412"),
        (Contract.SPOT, "5", "5"),
        (Contract.ON_DEMAND, "0", "18.32"),
    ],
)
def test_the_price_is_the_whole_machines_under_its_contract(
    contract: Contract, override: str | None, price: str
) -> None:
    """F30: not multiplied by eight GPUs; a group's own price wins, but zero is no price."""
    spec = SPEC.model_copy(update={"hourly_price": None if override is None else Decimal(override)})
    assert hourly_price_of(spec, EIGHT_H100, contract) == Decimal(price)


@pytest.mark.parametrize("price", [None, Decimal(0)])
def test_a_type_without_a_price_has_none(price: Decimal | None) -> None:
    """A zero would make the dearest machine the winner; the on-demand price is no substitute for the spot price."""
    kind = EIGHT_H100.model_copy(update={"spot_price": price})
    assert hourly_price_of(SPEC, kind, Contract.SPOT) is None


@pytest.mark.parametrize(
    ("length", "hours"),
    [
        (timedelta(hours=1), "1"),
        (timedelta(minutes=90), "1.5"),
        (timedelta(seconds=36), "0.01"),
        (timedelta(days=2), "48"),
    ],
)
def test_a_node_costs_in_proportion_to_time(length: timedelta, hours: str) -> None:
    """Twice as long costs twice as much."""
    assert hours_between(NOON, NOON + length) == Decimal(hours)
    assert node_price(Decimal("2.290"), NOON, NOON + length) == Decimal("2.290") * Decimal(hours)


@pytest.mark.parametrize(
    ("start", "end"), [(None, None), (NOON, None), (None, NOON), (NOON, NOON), (NOON, NOON - timedelta(hours=3))]
)
def test_a_period_that_makes_no_sense_is_one_hour(start: datetime | None, end: datetime | None) -> None:
    """F02: never a division by zero, never a price of zero."""
    assert node_price(Decimal("2.290"), start, end) == Decimal("2.290")


def test_a_gpu_pod_pays_for_its_share_of_the_gpus() -> None:
    """F30: one GPU of eight is 1/8 of the node, its 8 of 160 cores only 1/20: 18.32 / 8 = 2.29."""
    requests = {"nvidia.com/gpu": ONE, "cpu": Decimal(8)}
    assert pod_price(requests, [GPU_NODE, CPU_NODE], ONE) == Decimal("2.29")


def test_a_pod_pays_on_the_cheapest_node_it_fits_on() -> None:
    """Half of a CPU node's memory is 0.0279; the same 16 GiB of a GPU node would be 16/1280 of 18.32 = 0.229."""
    requests = {"memory": Decimal(16 * GIB), "cpu": ONE}
    assert pod_price(requests, [GPU_NODE, CPU_NODE], ONE) == Decimal("0.0279")
    assert pod_price(requests, [GPU_NODE], ONE) == Decimal("0.229")


def test_a_pod_too_large_for_the_cheap_node_pays_on_the_next() -> None:
    """64 GiB do not fit on a CPU node: 64/1280 of 18.32 = 0.916."""
    assert pod_price({"memory": Decimal(64 * GIB)}, [CPU_NODE, GPU_NODE], ONE) == Decimal("0.916")


def test_a_pod_that_requests_nothing_still_takes_a_place() -> None:
    """The expander divides by the sum of pod prices; 110 pods fit on a node, so one costs 1/110 of it."""
    node = PricedNode(allocatable={"pods": Decimal(110), "cpu": ONE}, hourly=Decimal(11))
    assert pod_price({}, [node], ONE) == Decimal("0.1")
    assert pod_price({"nvidia.com/gpu": Decimal(0)}, [node], ONE) == Decimal("0.1")


def test_a_pod_that_fits_nowhere_costs_more_than_the_largest_node() -> None:
    """Sixteen GPUs are two nodes' worth, not the price of its cores on a node without GPUs."""
    assert pod_price({"nvidia.com/gpu": Decimal(16), "cpu": ONE}, [CPU_NODE, GPU_NODE], ONE) == Decimal("36.64")


def test_a_resource_that_nobody_offers_does_not_hide_the_rest() -> None:
    """A pod for another provider's device is still priced by its cores: 4 of 8."""
    requests = {"example.com/fpga": ONE, "cpu": Decimal(4)}
    assert pod_price(requests, [CPU_NODE], ONE) == Decimal("0.0279")


def test_a_pod_that_wants_only_what_nobody_offers_costs_a_node() -> None:
    """Greater than zero, whatever it wants."""
    node = PricedNode(allocatable={}, hourly=Decimal(3))
    assert pod_price({"example.com/fpga": ONE}, [node], ONE) == 3


def test_without_prices_there_is_no_pod_price() -> None:
    """Better no answer than a zero."""
    assert pod_price({"cpu": ONE}, [], ONE) is None
    assert pod_price({"cpu": ONE}, [PricedNode(allocatable=CPU_NODE.allocatable, hourly=Decimal(0))], ONE) is None


def test_pods_cost_in_proportion_to_time() -> None:
    """Two hours of half a node."""
    assert pod_price({"cpu": Decimal(4)}, [CPU_NODE], Decimal(2)) == Decimal("0.0558")


@settings(max_examples=60)
@given(
    cpu=st.decimals(0, 200, places=3),
    memory=st.integers(0, 1500 * GIB),
    gpus=st.integers(0, 10),
    hours=st.decimals("0.001", 1000, places=3),
)
def test_a_price_is_positive_and_never_above_the_node_it_fits_on(
    cpu: Decimal, memory: int, gpus: int, hours: Decimal
) -> None:
    """Conformance: greater than zero for whatever is requested, at most the node's price when it fits."""
    requests = {"cpu": cpu, "memory": Decimal(memory), "nvidia.com/gpu": Decimal(gpus)}
    price = pod_price(requests, [CPU_NODE, GPU_NODE], hours)
    assert price is not None
    assert price > 0
    if cpu <= 160 and memory <= 1280 * GIB and gpus <= 8:
        assert price <= GPU_NODE.hourly * hours
