import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from app.cloud.port import Balance
from app.cloud.verda import VerdaCloud
from app.domain.machine import Machine, Volume
from app.domain.offering import Contract, InstanceType, Offering
from app.errors import OutcomeUnknown, Rejected

from .toy import INSTANCE, OTHER, VOLUME, Reply, Toy, error, html, instance, ok, raw

H100: dict[str, Any] = {
    "id": "0d1c…",
    "instance_type": "1H100.80S.30V",
    "name": "H100 SXM5 80GB",
    "model": "H100",
    "manufacturer": "NVIDIA",
    "cpu": {"description": "30 CPU", "number_of_cores": 30},
    "gpu": {"description": "1x H100", "number_of_gpus": 1},
    "memory": {"description": "120GB", "size_in_gigabytes": 120},
    "gpu_memory": {"description": "80GB", "size_in_gigabytes": 80},
    "storage": {"description": "dynamic"},
    "price_per_hour": "2.290",
    "spot_price": "0.8015",
    "currency": "usd",
    "supported_os": ["ubuntu-24.04", "ubuntu-22.04"],
}
CPU: dict[str, Any] = {
    **H100,
    "instance_type": "CPU.4V.16G",
    "name": "AMD EPYC",
    "model": "CPU Node",
    "manufacturer": "AMD",
    "cpu": {"number_of_cores": 4},
    "gpu": {"description": "", "number_of_gpus": 0},
    "memory": {"size_in_gigabytes": 16},
    "gpu_memory": {"description": "", "size_in_gigabytes": 0},
    "storage": {"size_in_gigabytes": 225},
    "price_per_hour": "0.02790",
    "spot_price": None,
    "supported_os": [],
}


def listed(toy: Toy, cloud: VerdaCloud, **changes: object) -> Machine:
    """One machine as the list shows it."""
    toy.on("GET", "/instances", ok([instance(**changes)]))
    return cloud.list_instances()[0]


def test_a_machine_is_read_with_everything_it_has(toy: Toy, cloud: VerdaCloud) -> None:
    """The SDK would drop `volume_ids`."""
    assert listed(toy, cloud) == Machine(
        instance_id=INSTANCE,
        hostname="h100-k7p2q9x4",
        status="running",
        description="ca:v1 cluster=test installation=i group=h100",
        instance_type="1H100.80S.30V",
        image="ubuntu-24.04",
        location="FIN-01",
        contract=Contract.SPOT,
        price_per_hour=Decimal("0.8015"),
        created_at=datetime(2026, 10, 4, 7, 12, 31, 482000, tzinfo=UTC),
        ip="203.0.113.57",
        os_volume_id=VOLUME,
        volume_ids=(VOLUME,),
    )
    assert toy.seen("GET", "/instances")[0].query == {}


def test_a_young_machine_is_read_with_what_it_has(toy: Toy, cloud: VerdaCloud) -> None:
    """A missing location stays missing: the SDK would say FIN-03."""
    toy.on("GET", "/instances", ok([{"id": INSTANCE, "hostname": "new", "status": "ordered", "ip": None}]))
    assert cloud.list_instances() == [Machine(instance_id=INSTANCE, hostname="new", status="ordered")]


def test_unknown_fields_and_statuses_are_no_mistake(toy: Toy, cloud: VerdaCloud) -> None:
    """The API promises to add both."""
    assert listed(toy, cloud, status="levitating", subnet_id={"odd": [1]}).status == "levitating"


@pytest.mark.parametrize(
    ("field", "value", "attribute", "expected"),
    [
        ("status", None, "status", "unknown"),
        ("status", 3, "status", "unknown"),
        ("description", None, "description", ""),
        ("price_per_hour", "0.8015", "price_per_hour", Decimal("0.8015")),
        ("price_per_hour", 2, "price_per_hour", Decimal(2)),
        ("price_per_hour", -1, "price_per_hour", None),
        ("price_per_hour", "free", "price_per_hour", None),
        ("price_per_hour", True, "price_per_hour", None),
        ("price_per_hour", "1e999999999", "price_per_hour", None),
        ("created_at", "2026-10-04T07:12:31", "created_at", datetime(2026, 10, 4, 7, 12, 31, tzinfo=UTC)),
        ("created_at", "2026-10-04T09:12:31+02:00", "created_at", datetime(2026, 10, 4, 7, 12, 31, tzinfo=UTC)),
        ("created_at", "yesterday", "created_at", None),
        ("created_at", 1_790_000_000, "created_at", None),
        ("created_at", "0001-01-01T00:00:00+23:00", "created_at", None),
        ("volume_ids", None, "volume_ids", ()),
        ("volume_ids", "one", "volume_ids", ()),
        ("volume_ids", [VOLUME, None, "", 3], "volume_ids", (VOLUME,)),
        ("hostname", "h\ud800", "hostname", "h?"),
    ],
)
def test_an_odd_value_costs_no_more_than_itself(
    toy: Toy, cloud: VerdaCloud, field: str, value: object, attribute: str, expected: object
) -> None:
    """The rest of the machine is as real as before."""
    assert getattr(listed(toy, cloud, **{field: value}), attribute) == expected


def test_a_price_keeps_every_digit(toy: Toy, cloud: VerdaCloud) -> None:
    """As a binary fraction 0.1 + 0.2 is not 0.3."""
    toy.on("GET", "/instances", raw(json.dumps([instance(price_per_hour=0)]).replace(": 0,", ": 0.10,").encode()))
    assert str(cloud.list_instances()[0].price_per_hour) == "0.10"


@pytest.mark.parametrize(
    ("is_spot", "contract", "expected"),
    [
        (True, "SPOT", Contract.SPOT),
        (True, None, Contract.SPOT),
        ("true", None, Contract.SPOT),
        (False, "SPOT", Contract.SPOT),
        (False, "PAY_AS_YOU_GO", Contract.ON_DEMAND),
        (None, "PAY_AS_YOU_GO", Contract.ON_DEMAND),
        (False, None, Contract.ON_DEMAND),
        (False, "LONG_TERM", None),
        (None, ["SPOT"], None),
        (None, None, None),
    ],
)
def test_the_contract_of_a_machine(
    toy: Toy, cloud: VerdaCloud, is_spot: object, contract: object, expected: Contract | None
) -> None:
    """Two fields say it, and either may be missing; long-term machines are not ours to handle."""
    assert listed(toy, cloud, is_spot=is_spot, contract=contract).contract is expected


@pytest.mark.parametrize(
    "flawed",
    [
        {"id": None},
        {"id": ""},
        {"id": 7},
        {"hostname": None},
        {"hostname": ""},
    ],
)
def test_an_entry_that_cannot_be_identified_spoils_the_whole_list(
    toy: Toy, cloud: VerdaCloud, flawed: dict[str, object]
) -> None:
    """A part of the list must never pass for all of it: what is missing there is taken for lost."""
    toy.on("GET", "/instances", ok([instance(), instance(**flawed)]))
    with pytest.raises(OutcomeUnknown) as raised:
        cloud.list_instances()
    assert raised.value.code == "unreadable_answer"


def test_an_empty_project_is_an_empty_list(toy: Toy, cloud: VerdaCloud) -> None:
    """Empty is an answer."""
    toy.on("GET", "/instances", ok([]))
    assert cloud.list_instances() == []


def test_five_hundred_machines_are_read(toy: Toy, cloud: VerdaCloud) -> None:
    """There are no pages: the whole project comes in one array."""
    toy.on("GET", "/instances", ok([instance(id=f"{number:08x}{INSTANCE[8:]}") for number in range(500)]))
    assert len({machine.instance_id for machine in cloud.list_instances()}) == 500


def test_one_machine_is_looked_up(toy: Toy, cloud: VerdaCloud) -> None:
    """The only place where discontinued ones can be seen."""
    toy.on("GET", f"/instances/{INSTANCE}", ok(instance(status="discontinued")))
    found = cloud.get_instance(INSTANCE)
    assert found is not None
    assert found.status == "discontinued"


def test_only_the_api_itself_can_say_that_there_is_no_such_machine(toy: Toy, cloud: VerdaCloud) -> None:
    """In its own words, with its own code."""
    toy.on("GET", f"/instances/{INSTANCE}", error(404, "not_found", "Instance not found"))
    assert cloud.get_instance(INSTANCE) is None


@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (html(404), OutcomeUnknown),
        (raw(b"", 404), OutcomeUnknown),
        (ok({"message": "no Route matched with those values"}, 404), Rejected),
        (error(403, "forbidden_action", "Insufficient scope"), Rejected),
        (ok({}), OutcomeUnknown),
        (ok(None), OutcomeUnknown),
        (ok([instance()]), OutcomeUnknown),
        (ok(instance(id=OTHER)), OutcomeUnknown),
        (ok(instance(hostname=None)), OutcomeUnknown),
    ],
)
def test_nothing_else_says_so(toy: Toy, cloud: VerdaCloud, reply: Reply, outcome: type[Exception]) -> None:
    """A machine that is taken for gone is paid for until somebody looks at the bill."""
    toy.on("GET", f"/instances/{INSTANCE}", reply)
    with pytest.raises(outcome):
        cloud.get_instance(INSTANCE)


def test_the_catalogue_is_read_exactly(toy: Toy, cloud: VerdaCloud) -> None:
    """Prices are strings on the wire and keep their digits."""
    toy.on("GET", "/instance-types", ok([H100, CPU]))
    h100, cpu = cloud.instance_types()
    assert h100 == InstanceType(
        name="1H100.80S.30V",
        cpus=30,
        memory_gb=Decimal(120),
        gpus=1,
        gpu_memory_gb=Decimal(80),
        gpu_name="H100 SXM5 80GB",
        model="H100",
        manufacturer="NVIDIA",
        storage_gb=None,
        on_demand_price=Decimal("2.290"),
        spot_price=Decimal("0.8015"),
        currency="usd",
        supported_images=("ubuntu-24.04", "ubuntu-22.04"),
    )
    assert (cpu.gpus, cpu.gpu_memory_gb) == (0, Decimal(0))
    assert (cpu.storage_gb, cpu.spot_price) == (Decimal(225), None)
    assert str(cpu.on_demand_price) == "0.02790"
    assert toy.seen("GET", "/instance-types")[0].query == {"currency": "usd"}


@pytest.mark.parametrize(
    "flawed",
    [
        {"instance_type": None},
        {"cpu": None},
        {"cpu": {"number_of_cores": "many"}},
        {"memory": {}},
        {"gpu": {}},
        {"gpu": {"number_of_gpus": 0.5}},
        {"gpu_memory": None},
    ],
)
def test_one_odd_type_does_not_hide_the_others(toy: Toy, cloud: VerdaCloud, flawed: dict[str, object]) -> None:
    """With the SDK one missing field costs the whole catalogue."""
    toy.on("GET", "/instance-types", ok([{**H100, **flawed}, CPU]))
    assert [each.name for each in cloud.instance_types()] == ["CPU.4V.16G"]


def test_numbers_as_strings_and_strings_as_numbers_are_read(toy: Toy, cloud: VerdaCloud) -> None:
    """The API has changed such things before."""
    odd = {**H100, "price_per_hour": 2.29, "cpu": {"number_of_cores": "30"}, "supported_os": None}
    toy.on("GET", "/instance-types", ok([odd]))
    (found,) = cloud.instance_types()
    assert (found.on_demand_price, found.cpus, found.supported_images) == (Decimal("2.29"), 30, ())


@pytest.mark.parametrize(("contract", "spot"), [(Contract.SPOT, "true"), (Contract.ON_DEMAND, "false")])
def test_availability_asks_for_the_right_market(toy: Toy, cloud: VerdaCloud, contract: Contract, spot: str) -> None:
    """The stocks are separate, and a spot group that looks at the other one orders in vain."""
    stock = [
        {"location_code": "FIN-01", "availabilities": ["1H100.80S.30V", "CPU.4V.16G"]},
        {"location_code": "ICE-01", "availabilities": []},
        {"location_code": "FIN-02"},
    ]
    toy.on("GET", "/instance-availability", ok(stock))
    assert cloud.availability(contract) == {
        "FIN-01": frozenset({"1H100.80S.30V", "CPU.4V.16G"}),
        "ICE-01": frozenset(),
    }
    assert toy.seen("GET", "/instance-availability")[0].query == {"isSpot": spot}


@pytest.mark.parametrize(("answer", "expected"), [(True, True), (False, False), ("true", True), ("false", False)])
def test_availability_of_one_type_may_be_a_word(toy: Toy, cloud: VerdaCloud, answer: object, *, expected: bool) -> None:
    """Older servers answer a string, and "false" is a truthy one."""
    toy.on("GET", "/instance-availability/1H100.80S.30V", ok(answer))
    offering = Offering(instance_type="1H100.80S.30V", location="FIN-01", contract=Contract.SPOT)
    assert cloud.is_available(offering) is expected
    query = toy.seen("GET", "/instance-availability/1H100.80S.30V")[0].query
    assert query == {"isSpot": "true", "location_code": "FIN-01"}


@pytest.mark.parametrize("answer", [None, "maybe", 1, [True]])
def test_availability_that_is_neither_yes_nor_no(toy: Toy, cloud: VerdaCloud, answer: object) -> None:
    """A guess either way would be wrong half of the time."""
    toy.on("GET", "/instance-availability/1H100.80S.30V", ok(answer))
    offering = Offering(instance_type="1H100.80S.30V", location="FIN-01", contract=Contract.ON_DEMAND)
    with pytest.raises(OutcomeUnknown):
        cloud.is_available(offering)


def test_locations_and_images_are_named(toy: Toy, cloud: VerdaCloud) -> None:
    """Those without a name cannot be ordered."""
    toy.on("GET", "/locations", ok([{"code": "FIN-01", "country_code": "FI"}, {"name": "nowhere"}, 7]))
    toy.on("GET", "/images", ok([{"id": "…", "image_type": "ubuntu-24.04", "details": []}, {"id": "…"}]))
    assert cloud.locations() == ["FIN-01"]
    assert cloud.images() == ["ubuntu-24.04"]


VOLUME_JSON: dict[str, object] = {
    "id": VOLUME,
    "name": "h100-k7p2q9x4",
    "status": "attached",
    "size": 100,
    "type": "NVMe",
    "is_os_volume": True,
    "instance_id": INSTANCE,
    "location": "FIN-01",
    "created_at": "2026-10-04T07:12:31.482Z",
}


@pytest.mark.parametrize(
    ("changes", "user"),
    [
        ({}, INSTANCE),
        ({"instance_id": None}, None),
        ({"instance_id": None, "instances": []}, None),
        ({"instance_id": None, "instances": [OTHER]}, OTHER),
        ({"instance_id": None, "instances": [{"id": OTHER}]}, OTHER),
        ({"instance_id": None, "instances": [{"instance_id": OTHER}]}, OTHER),
    ],
)
def test_a_volume_is_read_with_whoever_uses_it(
    toy: Toy, cloud: VerdaCloud, changes: dict[str, object], user: str | None
) -> None:
    """Shared volumes name their users elsewhere."""
    toy.on("GET", "/volumes", ok([{**VOLUME_JSON, **changes}]))
    assert cloud.volumes() == [
        Volume(
            volume_id=VOLUME,
            name="h100-k7p2q9x4",
            status="attached",
            size_gb=100,
            is_os_volume=True,
            instance_id=user,
            location="FIN-01",
            created_at=datetime(2026, 10, 4, 7, 12, 31, 482000, tzinfo=UTC),
        )
    ]


def test_a_volume_whose_user_cannot_be_named_does_not_pass_for_free(toy: Toy, cloud: VerdaCloud) -> None:
    """Free ones may be deleted."""
    shared = {**VOLUME_JSON, "id": OTHER, "instance_id": None, "instances": [{"machine": 1}]}
    toy.on("GET", "/volumes", ok([VOLUME_JSON, shared]))
    assert [volume.volume_id for volume in cloud.volumes()] == [VOLUME]


@pytest.mark.parametrize(("amount", "expected"), [("12.50", "12.50"), (12, "12"), (-0.75, "-0.75")])
def test_the_balance_is_exact(toy: Toy, cloud: VerdaCloud, amount: object, expected: str) -> None:
    """It may be below zero."""
    toy.on("GET", "/balance", ok({"amount": amount, "currency": "usd"}))
    assert cloud.balance() == Balance(amount=Decimal(expected), currency="usd")


def test_a_balance_that_cannot_be_read_is_not_zero(toy: Toy, cloud: VerdaCloud) -> None:
    """Zero would mean that all machines are about to be taken away."""
    toy.on("GET", "/balance", ok({"currency": "usd"}))
    with pytest.raises(OutcomeUnknown):
        cloud.balance()
