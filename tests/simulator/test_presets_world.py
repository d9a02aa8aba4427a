"""Presets and acts that change the world: fates, evictions, losses, people, money."""

import contextlib
import threading
from collections.abc import Callable

import pytest
import requests

from tests.simulator.harness import TYPE, APIException, Harness, order

Make = Callable[..., Harness]


@pytest.mark.parametrize(
    ("preset", "status"),
    [
        ("stuck_ordered", "ordered"),
        ("stuck_provisioning", "provisioning"),
        ("install_error", "error"),
        ("installation_failed", "installation_failed"),
    ],
)
def test_machines_that_never_run(sim: Harness, preset: str, status: str) -> None:
    """They stay where they are, and they cost money all the time."""
    sim.preset(preset)
    instance_id = sim.create()
    sim.advance(36_000)
    assert sim.status(instance_id) == status
    assert sim.one(instance_id)["billed_seconds"] == 36_000
    refused = sim.raw("PUT", "/instances", json={"id": instance_id, "action": "delete"}).status_code
    assert refused == (403 if status == "provisioning" else 202)


def test_failed_machines_may_be_free(make: Make) -> None:
    """With bill_failed off the meter stops at the failure, between 50 and 100 % of provisioning."""
    sim = make(billing={"bill_failed": False})
    sim.preset("install_error")
    instance_id = sim.create()
    sim.advance(1000)
    assert 5 + 50 <= sim.one(instance_id)["billed_seconds"] <= 5 + 100


def test_a_stuck_machine_can_be_freed(make: Make) -> None:
    """By `unstick`, or by delete_stuck where the platform offers that."""
    sim = make(behaviour={"stuck_rescue": True})
    sim.preset("stuck_provisioning", times=2)
    first, second = sim.create("one"), sim.create("two")
    sim.advance(1000)
    sim.control("POST", f"/instances/{first}/unstick")
    sim.advance(0)
    assert sim.status(first) == "running"
    assert sim.raw("PUT", "/instances", json={"id": second, "action": "delete_stuck"}).status_code == 202


def test_no_capacity_after_the_fact(sim: Harness) -> None:
    """202, `no_capacity` at 15 s, listed for 600 s more, never charged."""
    sim.preset("no_capacity_async")
    instance_id = sim.create()
    sim.advance(15)
    (seen,) = sim.client().instances.get()
    assert (seen.id, seen.status) == (instance_id, "no_capacity")
    assert (sim.one(instance_id)["billed_seconds"], sim.one(instance_id)["cost"]) == (0, 0)
    assert sim.truth()["alive"] == 0
    sim.advance(600)
    assert sim.client().instances.get() == []


def test_no_capacity_at_once(sim: Harness) -> None:
    """503 although there is stock."""
    sim.preset("no_capacity_503")
    assert sim.raw("POST", "/instances", json=order()).json()["code"] == "service_unavailable"
    assert sim.raw("POST", "/instances", json=order()).status_code == 202


def test_an_overbooked_pool_may_accept_and_fail_later(make: Make) -> None:
    """async_no_capacity 1: a full pool always answers 202."""
    pools = {"FIN-01": {"H100": 0}}
    sim = make(chances={"validating": 0, "async_no_capacity": 1}, capacity={"pools": pools})
    instance_id = sim.create()
    sim.advance(15)
    assert sim.status(instance_id) == "no_capacity"


def test_vanish_and_return(sim: Harness) -> None:
    """A lost record is off the list and 404 by id while it costs money; some come back."""
    lost, found = sim.running("one"), sim.running("two")
    sim.control("POST", f"/instances/{lost}/vanish")
    sim.preset("vanish_then_return", id=found, seconds=60)
    assert sim.client().instances.get() == []
    assert sim.raw("GET", f"/instances/{lost}").status_code == 404
    assert sim.truth()["alive"] == 2
    sim.advance(60)
    assert [item.id for item in sim.client().instances.get()] == [found]
    sim.control("POST", f"/instances/{lost}/unvanish")
    assert len(sim.client().instances.get()) == 2


def test_evictions_one_by_one_by_family_and_all(sim: Harness) -> None:
    """Only spot instances are ever evicted."""
    firm = sim.running("firm")
    for number in range(4):
        sim.create(f"spot-{number}", is_spot=True)
    sim.create("cpu", is_spot=True, instance_type="CPU.4V.16G", image="ubuntu-24.04")
    assert len(sim.preset("evict")["done"]) == 1
    assert len(sim.preset("evict", family="H100")["done"]) == 4
    sim.create("spot-9", is_spot=True)
    assert len(sim.preset("evict_wave")["done"]) == 1
    assert sim.truth()["evictions"] == 6
    assert [item.id for item in sim.client().instances.get()] == [firm]


def test_eviction_seconds_after_the_order(sim: Harness) -> None:
    """The preset sets the instant; an on-demand machine does not care."""
    sim.preset("evict_seconds_after_create", seconds=30, times=2)
    spot, firm = sim.create("spot", is_spot=True), sim.create("firm")
    sim.advance(29)
    assert sim.status(spot) == "provisioning"
    sim.advance(1)
    assert (sim.status(spot), sim.status(firm)) == ("discontinued", "provisioning")


def test_guests_that_misbehave(sim: Harness) -> None:
    """Never ready, ready late, ready under a wrong provider id."""
    for preset in ("guest_never_joins", "guest_joins_late", "guest_wrong_provider_id"):
        sim.preset(preset, **({"seconds": 1000} if preset.endswith("late") else {}))
        sim.create(preset.replace("_", "-"))
    sim.advance(105 + 60)
    guests = {guest["hostname"]: guest for guest in sim.control("GET", "/guests")}
    assert {name: guest["ready"] for name, guest in guests.items()} == {
        "guest-never-joins": False,
        "guest-joins-late": False,
        "guest-wrong-provider-id": True,
    }
    assert guests["guest-wrong-provider-id"]["provider_id"] == "verda://"
    sim.advance(1000)
    ready = {guest["hostname"] for guest in sim.control("GET", "/guests") if guest["ready"]}
    assert ready == {"guest-joins-late", "guest-wrong-provider-id"}


def test_a_machine_that_switches_itself_off(sim: Harness) -> None:
    """`offline`, no guest, billed on."""
    instance_id = sim.running()
    sim.preset("guest_poweroff")
    sim.advance(1000)
    assert sim.status(instance_id) == "offline"
    assert sim.control("GET", "/guests") == []
    assert sim.one(instance_id)["billed_seconds"] == 1105


def test_other_people(sim: Harness) -> None:
    """Bob deletes, shuts down, edits, deploys under the same name and under his own."""
    first = sim.running("one", description="ca:v1 group=a")
    second = sim.running("two")
    sim.preset("human_delete", id=first)
    sim.preset("human_shutdown", id=second)
    sim.preset("human_description_edit", id=second)
    sim.advance(20)
    assert sim.status(first) == "discontinued"
    seen = sim.client().instances.get_by_id(second)
    assert (seen.status, seen.description) == ("offline", "hands off, Bob")
    twin = sim.preset("human_same_hostname", id=second)["done"]
    assert sim.client().instances.get_by_id(twin).hostname == "two"
    foreign = sim.control("POST", "/instances", {"status": "running"})
    assert sim.status(foreign) == "running"
    assert sim.truth()["creates_committed"] == 2
    assert sim.truth()["foreign_deletes"] == 0
    sim.client().instances.action(foreign, "delete")
    assert sim.truth()["foreign_deletes"] == 1


def test_bobs_delete_is_in_the_journal(sim: Harness) -> None:
    """A person's delete has an actor, so the journal tells it from an eviction."""
    instance_id = sim.running()
    sim.preset("human_delete")
    sim.advance(10)
    journal = sim.raw("GET", f"/journal/compute/{instance_id}").json()
    last = next(row for row in journal if row["action_code"] == "delete:complete")
    assert last["actor_id"] is not None
    assert last["properties"] == {}


def test_quotas(sim: Harness) -> None:
    """403 at once, or `error` with GPU_QUOTA_EXCEEDED in the journal."""
    fault = sim.preset("quota_gpu")["faults"][0]
    assert sim.raw("POST", "/instances", json=order()).json()["code"] == "forbidden_action"
    sim.control("DELETE", f"/faults/{fault}")
    sim.preset("quota_gpu", mode="error")
    instance_id = sim.create()
    sim.advance(105)
    assert sim.status(instance_id) == "error"
    journal = sim.raw("GET", f"/journal/compute/{instance_id}", params={"action_code": "error"}).json()
    assert [row["error_message"] for row in journal] == ["GPU_QUOTA_EXCEEDED"]


def test_configured_quotas(make: Make) -> None:
    """Two GPUs and three instances."""
    sim = make(quotas={"gpus": 2, "instances": 3})
    sim.create("one", instance_type="2H100.80S.80V")
    assert sim.raw("POST", "/instances", json=order("two")).status_code == 403
    for number in range(2):
        sim.create(f"cpu-{number}", instance_type="CPU.4V.16G", image="ubuntu-24.04")
    cpu = order("cpu-3", instance_type="CPU.4V.16G", image="ubuntu-24.04")
    assert sim.raw("POST", "/instances", json=cpu).status_code == 403


def test_the_catalogue_changes(sim: Harness) -> None:
    """Types go, get new names and new prices; machines keep what they had."""
    instance_id = sim.running()
    sim.preset("price_jump", type=TYPE, factor=2)
    types = {item.instance_type: item for item in sim.client().instance_types.get()}
    assert types[TYPE].price_per_hour == 4.58
    assert sim.client().instances.get_by_id(instance_id).price_per_hour == 2.29
    sim.control("DELETE", f"/types/{TYPE}")
    sim.preset("type_renamed", type="1GB300.32V", to="1GB300.36V")
    names = {item.instance_type for item in sim.client().instance_types.get()}
    assert len(names) == 54
    assert not {TYPE, "1GB300.32V"} & names
    assert "1GB300.36V" in names
    assert sim.raw("POST", "/instances", json=order("gpu-2")).status_code == 400
    sim.client().instances.action(instance_id, "delete")
    sim.advance(10)
    pools = sim.control("GET", "/capacity")
    assert next(p for p in pools if (p["family"], p["location"]) == ("H100", "FIN-01"))["free"] == 16


def test_scripts_trouble(sim: Harness) -> None:
    """More than a page of strangers' scripts, a deleted one, and a used-up quota."""
    client = sim.client()
    ours = client.startup_scripts.create("ours", "#!/bin/sh\n")
    sim.preset("scripts_over_page", n=12)
    assert ours.id not in {script.id for script in client.startup_scripts.get()}
    sim.preset("script_deleted", id=ours.id)
    with pytest.raises(APIException):
        client.startup_scripts.get_by_id(ours.id)
    sim.preset("script_quota")
    with pytest.raises(APIException) as caught:
        client.startup_scripts.create("more", "#!/bin/sh\n")
    assert caught.value.code == "forbidden_action"


def test_a_full_trash(sim: Harness) -> None:
    """`trash_full_quota`: no storage may be added, so no machine either."""
    sim.running()
    sim.preset("trash_full_quota")
    answer = sim.raw("POST", "/instances", json=order("gpu-2", os_volume={"name": "os", "size": 50}))
    assert (answer.status_code, answer.json()["message"]) == (403, "Storage quota exceeded")


def test_little_money(sim: Harness) -> None:
    """`balance_low`: what runs goes on for now, what is new is 402."""
    instance_id = sim.running()
    sim.preset("balance_low", amount=0.01)
    assert sim.client().balance.get().amount == pytest.approx(0.01)
    assert sim.raw("POST", "/instances", json=order("gpu-2")).status_code == 402
    assert sim.status(instance_id) == "running"
    sim.advance(600)
    assert sim.status(instance_id) == "discontinued"


def test_skewed_clock(sim: Harness) -> None:
    """Times and the Date header are shown five minutes early."""
    instance_id = sim.create()
    sim.preset("clock_skew", seconds=-300)
    answer = sim.raw("GET", f"/instances/{instance_id}")
    assert answer.json()["created_at"] == "2026-01-04T23:55:00.000Z"
    assert answer.headers["Date"] == "Sun, 04 Jan 2026 23:55:00 GMT"


def test_a_listener_that_is_down(sim: Harness) -> None:
    """Connections are refused, the kept one is broken, and after a while all is well."""
    sim.login()
    sim.preset("listener_down", down_for=0.3)
    with pytest.raises(requests.ConnectionError):
        sim.raw("GET", "/balance")
    with pytest.raises(requests.ConnectionError):
        requests.get(f"{sim.url}/instance-types", timeout=5)
    for _ in range(200):
        with contextlib.suppress(requests.ConnectionError):
            if sim.raw("GET", "/balance").status_code == 200:
                return
        threading.Event().wait(0.02)
    pytest.fail("the listener did not come back")


def test_any_status_can_be_shown(sim: Harness) -> None:
    """The set of statuses is open."""
    instance_id = sim.running()
    sim.control("POST", f"/instances/{instance_id}/status", {"value": "hibernating"})
    assert sim.status(instance_id) == "hibernating"
    sim.control("POST", f"/instances/{instance_id}/fail", {"status": "no_capacity"})
    assert sim.status(instance_id) == "no_capacity"
