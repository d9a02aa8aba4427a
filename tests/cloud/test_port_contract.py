"""The `Cloud` port, one suite for both adapters: ordering, looking, the catalogue."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest
from pydantic import JsonValue

from app.clock import FakeClock
from app.domain.machine import Order
from app.domain.offering import Contract
from app.errors import CloudError, NoCapacity, NotSent, OutcomeUnknown, Rejected, Throttled
from app.simulator.fault_model import Fault, Match, Phase, Say

from .contract import NOWHERE, ORDER, SPOT, Side


def test_the_backend_is_named(side: Side) -> None:
    """Nobody should ever wonder which one is real."""
    assert side.cloud.backend == "simulator"


def test_an_empty_project_is_an_empty_list(side: Side) -> None:
    """Empty is an answer."""
    assert list(side.cloud.list_instances()) == []


def test_what_was_ordered_is_listed_at_once(side: Side) -> None:
    """Young as it is, it can be recognised by hostname and description."""
    machine = side.created()
    assert list(side.cloud.list_instances()) == [machine]
    assert (machine.hostname, machine.description) == (ORDER.hostname, ORDER.description)
    assert (machine.location, machine.contract, machine.status) == ("FIN-01", Contract.ON_DEMAND, "ordered")
    assert (machine.os_volume_id, machine.ip, machine.image) == (None, None, None)


@pytest.mark.parametrize("order", [ORDER, SPOT])
def test_a_running_machine_shows_everything(side: Side, order: Order) -> None:
    """Above all its price, which is the catalogue's for its contract."""
    machine = side.running(order)
    (offered,) = (each for each in side.cloud.instance_types() if each.name == ORDER.instance_type)
    assert machine.price_per_hour == offered.price(order.contract)
    assert machine.contract is order.contract
    assert machine.volume_ids == (machine.os_volume_id,)
    assert machine.image == order.image
    assert machine.ip
    assert machine.created_at == FakeClock().now()


@pytest.mark.parametrize(
    "changes",
    [
        {"instance_type": "9H100.80S.30V"},
        {"location": "MARS-01"},
        {"image": "windows-3.11"},
        {"hostname": "-no-"},
        {"hostname": ""},
        {"ssh_key_ids": (NOWHERE,)},
        {"startup_script_id": NOWHERE},
    ],
)
def test_a_wrong_order_is_refused_and_creates_nothing(side: Side, changes: dict[str, object]) -> None:
    """In the API's own words."""
    with pytest.raises(Rejected) as raised:
        side.cloud.create_instance(replace(ORDER, **changes))  # type: ignore[arg-type]  # one field each
    assert (raised.value.code, raised.value.status) == ("invalid_request", 400)
    assert raised.value.message
    assert list(side.cloud.list_instances()) == []


def test_no_stock_is_told_from_other_refusals(side: Side) -> None:
    """It passes, the others do not."""
    side.trouble("no_capacity_503")
    with pytest.raises(NoCapacity) as raised:
        side.cloud.create_instance(ORDER)
    assert (raised.value.code, raised.value.status) == ("service_unavailable", 503)
    assert list(side.cloud.list_instances()) == []


def test_an_empty_account_buys_nothing(side: Side) -> None:
    """402, and what ran is gone."""
    machine = side.running()
    side.trouble("balance_zero")
    with pytest.raises(Rejected) as raised:
        side.cloud.create_instance(ORDER)
    assert (raised.value.code, raised.value.status) == ("insufficient_funds", 402)
    side.clock.advance(60)
    assert list(side.cloud.list_instances()) == []
    ended = side.cloud.get_instance(machine.instance_id)
    assert ended is not None
    assert ended.status == "discontinued"


def test_a_quota_is_a_refusal(side: Side) -> None:
    """403 with words."""
    side.trouble("quota_gpu")
    with pytest.raises(Rejected) as raised:
        side.cloud.create_instance(ORDER)
    assert (raised.value.code, raised.value.status) == ("forbidden_action", 403)


UNKNOWN = {
    "create_timeout_before_commit": 0,
    "create_timeout_after_commit": 1,
    "create_reset_after_commit": 1,
    "create_close_after_commit": 1,
    "create_truncated": 1,
    "create_cut_id": 1,
    "create_empty_body": 1,
    "create_5xx_before": 0,
    "create_5xx_after": 1,
}


@pytest.mark.parametrize(("name", "committed"), UNKNOWN.items())
def test_an_unclear_answer_leaves_the_outcome_unknown(side: Side, name: str, committed: int) -> None:
    """Only looking tells, and the hostname is what to look for."""
    side.trouble(name)
    with pytest.raises(OutcomeUnknown):
        side.cloud.create_instance(ORDER)
    assert [machine.hostname for machine in side.cloud.list_instances()] == [ORDER.hostname] * committed


@pytest.mark.parametrize("name", ["create_quoted_id", "create_object_id", "create_newline_id"])
def test_an_id_is_understood_in_every_form(side: Side, name: str) -> None:
    """All have been seen."""
    side.trouble(name)
    assert side.cloud.get_instance(side.cloud.create_instance(ORDER)) is not None


def test_two_orders_with_one_hostname_are_two_machines(side: Side) -> None:
    """The API does not keep hostnames unique; so never order twice without looking."""
    first, second = side.created(), side.created()
    assert first.instance_id != second.instance_id
    assert {each.instance_id for each in side.cloud.list_instances()} == {first.instance_id, second.instance_id}


def test_a_dead_token_is_nobodys_concern(side: Side) -> None:
    """One login more, and neither a read nor an order notices."""
    side.trouble("token_expired_midflight")
    assert list(side.cloud.list_instances()) == []
    side.trouble("token_expired_midflight")
    assert side.cloud.create_instance(ORDER)
    side.clock.advance(10_000)
    assert len(side.cloud.list_instances()) == 1


FAILED_READS: dict[str, tuple[type[CloudError], dict[str, JsonValue]]] = {
    "html_502": (OutcomeUnknown, {}),
    "empty_500": (OutcomeUnknown, {}),
    "json_null": (OutcomeUnknown, {}),
    "json_list_error": (OutcomeUnknown, {}),
    "ok_html": (OutcomeUnknown, {}),
    "list_truncated_json": (OutcomeUnknown, {}),
    "object_null_id": (OutcomeUnknown, {}),
    "object_partial": (OutcomeUnknown, {}),
    "token_scope_403": (Rejected, {}),
    "rate_limit": (Throttled, {"retry_after": 1}),
    "rate_limit_empty": (Throttled, {"retry_after": 1}),
}


@pytest.mark.parametrize("name", FAILED_READS)
def test_a_list_that_failed_is_not_an_empty_list(side: Side, name: str) -> None:
    """An empty one would mean that everything is gone."""
    side.created()
    outcome, args = FAILED_READS[name]
    side.trouble(name, **args)
    with pytest.raises(CloudError) as raised:
        side.cloud.list_instances()
    assert type(raised.value) is outcome


def test_a_429_says_how_long_to_stay_away(side: Side) -> None:
    """Its body is too short to be JSON, as documented."""
    side.trouble("rate_limit", retry_after=17)
    with pytest.raises(Throttled) as raised:
        side.cloud.list_instances()
    assert (raised.value.status, raised.value.retry_after) == (429, timedelta(seconds=17))


@pytest.mark.parametrize("name", ["object_unknown_status", "object_extra_fields", "location_missing"])
def test_what_we_do_not_know_does_not_spoil_the_list(side: Side, name: str) -> None:
    """The API promises to add fields and statuses."""
    machine = side.running()
    side.trouble(name)
    (listed,) = side.cloud.list_instances()
    assert listed.instance_id == machine.instance_id
    assert listed.status == ("migrating" if name == "object_unknown_status" else "running")
    assert listed.location == (None if name == "location_missing" else "FIN-01")


def test_a_machine_that_never_was_is_none(side: Side) -> None:
    """The API's own 404."""
    assert side.cloud.get_instance(NOWHERE) is None


def test_a_gateways_404_is_not_the_apis(side: Side) -> None:
    """Who believed it would forget a machine that is being paid for."""
    machine = side.created()
    page = Say(status=404, text="<html>no such page</html>")
    side.inject(Fault(match=Match(method="GET"), phase=Phase.BEFORE_COMMIT, action=page))
    with pytest.raises(OutcomeUnknown):
        side.cloud.get_instance(machine.instance_id)


def test_the_catalogue_has_every_type_with_exact_prices(side: Side) -> None:
    """Sizes are the machine's totals."""
    types = {each.name: each for each in side.cloud.instance_types()}
    h100 = types["1H100.80S.30V"]
    assert (h100.cpus, h100.gpus) == (30, 1)
    assert (h100.memory_gb, h100.gpu_memory_gb) == (Decimal(120), Decimal(80))
    assert (h100.price(Contract.ON_DEMAND), h100.price(Contract.SPOT)) == (Decimal("2.290"), Decimal("0.8015"))
    assert types["8B300.240V"].gpu_memory_gb == 2100
    assert types["CPU.4V.16G"].gpus == 0
    assert len(types) == 55


def test_an_odd_type_does_not_hide_the_others(side: Side) -> None:
    """The catalogue changes without notice."""
    side.trouble("type_missing_field", type="8B300.240V", field="cpu")
    types = {each.name for each in side.cloud.instance_types()}
    assert "8B300.240V" not in types
    assert len(types) == 54


def test_a_price_that_is_not_told_is_not_zero(side: Side) -> None:
    """The SDK would give up the whole catalogue."""
    side.trouble("spot_price_null")
    types = {each.name: each for each in side.cloud.instance_types()}
    assert types["1H100.80S.30V"].spot_price is None
    assert types["1H100.80S.30V"].on_demand_price == Decimal("2.290")


@pytest.mark.parametrize("contract", list(Contract))
def test_stock_is_told_by_location(side: Side, contract: Contract) -> None:
    """Every location is one that exists, every type one of the catalogue."""
    stock = side.cloud.availability(contract)
    assert stock.keys() <= set(side.cloud.locations())
    assert "1H100.80S.30V" in stock["FIN-01"]
    assert {name for types in stock.values() for name in types} <= {each.name for each in side.cloud.instance_types()}


def test_the_account_images_and_locations_are_read(side: Side) -> None:
    """Once each."""
    assert side.cloud.balance().amount == 100_000
    assert side.cloud.balance().currency == "usd"
    assert ORDER.image in side.cloud.images()
    assert {"FIN-01", "FIN-02", "FIN-03", "ICE-01"} == set(side.cloud.locations())


def test_without_a_network_nothing_was_sent(side: Side) -> None:
    """Proven, so it may be tried again at once."""
    side.created()
    side.break_network()
    for call in (side.cloud.list_instances, lambda: side.cloud.create_instance(ORDER)):
        with pytest.raises(NotSent):
            call()


def test_startup_scripts_are_stored_listed_and_deleted(side: Side) -> None:
    """More than a page of ten, which is what the API shows without being asked; deleting twice is fine."""
    made = [side.cloud.create_script(f"ca:v1:i:{number}", "#!/bin/sh\n") for number in range(12)]
    listed = side.cloud.scripts()
    assert {item.script_id for item in listed} >= set(made)
    assert {item.name for item in listed if item.script_id in made} == {f"ca:v1:i:{number}" for number in range(12)}
    order = replace(ORDER, startup_script_id=made[0])
    machine_id = side.cloud.create_instance(order)
    with side.world.lock:
        (record,) = [one for one in side.world.state.instances.values() if one.id == machine_id]
    assert record.script == "#!/bin/sh\n"
    for script_id in (*made, made[0]):
        side.cloud.delete_script(script_id)
    assert not {item.script_id for item in side.cloud.scripts()} & set(made)


def test_no_more_startup_scripts_than_the_quota(side: Side) -> None:
    """Refused in the API's own words, and nothing is stored."""
    side.trouble("script_quota")
    before = len(side.cloud.scripts())
    with pytest.raises(Rejected) as refusal:
        side.cloud.create_script("ca:v1:i:x", "#!/bin/sh\n")
    assert (refusal.value.status, refusal.value.code) == (403, "forbidden_action")
    assert len(side.cloud.scripts()) == before
