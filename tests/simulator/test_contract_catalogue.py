"""Contract checks 23 to 28 and 30: what can be bought, scripts, keys, balance."""

import json
from collections.abc import Callable

import pytest
import requests

from tests.simulator.harness import IMAGE, TYPE, APIException, Harness, order

Make = Callable[..., Harness]


def test_23_all_types_decode(sim: Harness) -> None:
    """23. The SDK decodes all 55 types; on the wire prices are strings; no token is needed."""
    types = {item.instance_type: item for item in sim.client().instance_types.get()}
    assert len(types) == 55
    assert (types[TYPE].price_per_hour, types[TYPE].spot_price_per_hour) == (2.29, 0.8015)
    assert types["2B300.60V"].gpu_memory["size_in_gigabytes"] == 525
    assert types["8V100.48V"].storage["size_in_gigabytes"] == 1800
    assert types["CPU.4V.16G"].gpu == {"description": "", "number_of_gpus": 0}
    assert types["1GB300.32V"].supported_os == []
    raw = {item["instance_type"]: item for item in requests.get(f"{sim.url}/instance-types", timeout=5).json()}
    assert raw["CPU.4V.16G"]["price_per_hour"] == "0.02790"
    assert raw["CPU.4V.16G"]["spot_price"] == "0.009800"
    assert raw["2GB300.64V"]["price_per_hour"] == "10.90"
    assert raw["2GB300.64V"]["max_dynamic_price"] == "16.35"
    assert raw["2GB300.64V"]["serverless_price"] == "11.99"


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("1GB300.32V", 0), ("1B200.30V", 13), ("1H200.141S.44V", 23), (TYPE, 21), ("1A100.22V", 32), ("1V100.6V", 14),
        ("1RTXPRO6000.30V", 12), ("1L40S.20V", 20), ("CPU.4V.16G", 20), ("1A6000.10V", 17),
    ],
)  # fmt: skip
def test_23b_supported_images_per_family(sim: Harness, name: str, count: int) -> None:
    """The number of images per hardware family is that of the API's dump of February 2026."""
    types = {item.instance_type: item for item in sim.client().instance_types.get()}
    assert len(types[name].supported_os) == count


def test_24_availability(sim: Harness) -> None:
    """24. is_available is a Python bool and honours spot and location; get_availabilities has both keys."""
    client = sim.client()
    assert client.instances.is_available(TYPE) is True
    assert client.instances.is_available("1GB300.32V") is False
    assert client.instances.is_available(TYPE, location_code="FIN-03") is False
    sim.control("PUT", "/capacity", {"family": "H100", "location": "FIN-01", "closed": ["spot"]})
    assert client.instances.is_available(TYPE, is_spot=True, location_code="FIN-01") is False
    assert client.instances.is_available(TYPE, is_spot=False, location_code="FIN-01") is True
    rows = client.instances.get_availabilities(is_spot=True)
    assert [set(row) for row in rows] == [{"location_code", "availabilities"}] * 4
    assert TYPE not in rows[0]["availabilities"]
    (only,) = client.instances.get_availabilities(location_code="FIN-02")
    assert (only["location_code"], TYPE in only["availabilities"]) == ("FIN-02", True)
    camel = sim.raw("GET", f"/instance-availability/{TYPE}", params={"is_spot": "true", "locationCode": "FIN-01"})
    assert camel.json() is False


def test_25_no_capacity_is_503(sim: Harness) -> None:
    """25. A pool without room: availability false, create 503 with the documented words; room again: it works."""
    client = sim.client()
    sim.control("PUT", "/capacity", {"family": "H100", "location": "FIN-01", "free": 0})
    assert client.instances.is_available(TYPE, location_code="FIN-01") is False
    with pytest.raises(APIException) as caught:
        client.instances.create(TYPE, IMAGE, "gpu-1", "", location="FIN-01", wait_for_status=None)
    assert (caught.value.code, caught.value.message) == ("service_unavailable", "No capacity available")
    assert sim.raw("POST", "/instances", json=order()).status_code == 503
    assert client.instances.get() == []
    sim.control("PUT", "/capacity", {"family": "H100", "location": "FIN-01", "free": 1})
    client.instances.create(TYPE, IMAGE, "gpu-1", "", location="FIN-01", wait_for_status=None)
    assert sim.raw("POST", "/instances", json=order("gpu-2")).status_code == 503


def test_25b_eight_gpus_need_one_host(sim: Harness) -> None:
    """FIN-01 has two hosts of eight H100s: nine singles leave no room for an eight-GPU machine."""
    for number in range(9):
        sim.create(f"gpu-{number}")
    assert sim.raw("POST", "/instances", json=order("big", instance_type="8H100.80S.176V")).status_code == 503
    assert sim.raw("POST", "/instances", json=order("mid", instance_type="4H100.80S.176V")).status_code == 202


def test_25c_on_demand_pushes_spot_out(sim: Harness) -> None:
    """When only spot stands in the way, an on-demand order evicts it, the youngest first."""
    sim.control("PUT", "/capacity", {"family": "H100", "location": "FIN-01", "free": 2})
    older, younger = sim.running("spot-1", is_spot=True), sim.running("spot-2", is_spot=True)
    assert sim.raw("POST", "/instances", json=order("spot-3", is_spot=True)).status_code == 503
    sim.create("firm-1")
    assert (sim.status(older), sim.status(younger)) == ("running", "discontinued")
    assert sim.one(younger)["end_reason"] == "evicted_by_on_demand"


def test_26_images_of_a_type(sim: Harness) -> None:
    """26. images.get(type) is that type's list; a foreign image is 400 with the API's own words."""
    client = sim.client()
    names = {image.image_type for image in client.images.get("1V100.6V")}
    assert len(names) == 14
    assert IMAGE not in names
    assert IMAGE in {image.image_type for image in client.images.get()}
    with pytest.raises(APIException) as caught:
        client.instances.create("1V100.6V", IMAGE, "gpu-1", "", location="FIN-01", wait_for_status=None)
    assert caught.value.message == "Operating system is not valid for this instance type"
    default = next(item for item in sim.raw("GET", "/images").json() if item["is_default"])
    assert (default["image_type"], default["name"]) == (IMAGE, "Ubuntu 24.04 + CUDA 12.8 Open + Docker")


def test_27_startup_scripts(sim: Harness) -> None:
    """27. Ids at once, arrays of one, ten per page, headers, and both ways to delete."""
    client = sim.client()
    scripts = [client.startup_scripts.create(f"script-{number}", "#!/bin/sh\n") for number in range(12)]
    assert client.startup_scripts.get_by_id(scripts[0].id).script == "#!/bin/sh\n"
    assert [script.id for script in client.startup_scripts.get()] == [script.id for script in scripts[:1:-1]]
    everything = sim.raw("GET", "/scripts", params={"pageSize": 100})
    assert (len(everything.json()), everything.headers["X-Total-Count"]) == (12, "12")
    second = sim.raw("GET", "/scripts", params={"page": 2})
    assert [item["id"] for item in second.json()] == [scripts[1].id, scripts[0].id]
    assert (second.headers["X-Page"], second.headers["X-Page-Size"]) == ("2", "10")
    assert sim.raw("GET", "/scripts", params={"pageSize": 101}).status_code == 400
    client.startup_scripts.delete([scripts[0].id, scripts[1].id])
    client.startup_scripts.delete_by_id(scripts[2].id)
    assert sim.truth()["scripts_count"] == 9


def test_27b_the_script_text_is_copied_at_the_order(sim: Harness) -> None:
    """A script deleted right after the order still runs: its text was taken at POST time."""
    script = sim.client().startup_scripts.create("join", "#!/bin/sh\necho join\n")
    sim.create("gpu-1", startup_script_id=script.id)
    sim.client().startup_scripts.delete_by_id(script.id)
    sim.advance(105)
    (guest,) = sim.control("GET", "/guests")
    assert guest["script"] == "#!/bin/sh\necho join\n"


def test_27c_the_script_quota(make: Make) -> None:
    """The quota of scripts answers 403."""
    sim = make(quotas={"scripts": 1})
    client = sim.client()
    client.startup_scripts.create("one", "#!/bin/sh\n")
    with pytest.raises(APIException) as caught:
        client.startup_scripts.create("two", "#!/bin/sh\n")
    assert caught.value.code == "forbidden_action"


def test_28_ssh_keys_under_both_names(sim: Harness) -> None:
    """28. Create, get, get_by_id and delete through /sshkeys; the same data under /ssh-keys."""
    client = sim.client()
    key = client.ssh_keys.create("me", "ssh-ed25519 AAAA me")
    assert client.ssh_keys.get_by_id(key.id).public_key == "ssh-ed25519 AAAA me"
    assert sim.raw("GET", "/ssh-keys").json() == sim.raw("GET", "/sshkeys").json()
    (document,) = sim.raw("GET", f"/ssh-keys/{key.id}").json()
    assert set(document) == {"id", "name", "key", "fingerprint", "created_by_user_id"}
    assert sim.raw("POST", "/instances", json=order(ssh_key_ids=key.id)).status_code == 202
    client.ssh_keys.delete([key.id])
    assert client.ssh_keys.get() == []
    with pytest.raises(APIException) as caught:
        client.instances.create(TYPE, IMAGE, "gpu-2", "", ssh_key_ids=[key.id], location="FIN-01")
    assert caught.value.message == "Invalid ssh-key ID"


def test_30_the_balance_falls_by_slices(make: Make) -> None:
    """30. One slice is a sixth of 2.29 dollars; an empty account ends everything and answers 402."""
    sim = make(billing={"balance": 100.0})
    client = sim.client()
    instance_id = sim.create()
    assert client.balance.get().amount == pytest.approx(100 - 2.29 / 6, abs=2e-6)
    sim.advance(599)
    # 50 GB since provisioning began at 5 s, at 0.20 dollars per GB and 730 hours
    storage = 50 * 0.20 / 730 / 3600
    assert client.balance.get().amount == pytest.approx(100 - 2.29 / 6 - storage * 594, abs=2e-6)
    sim.advance(1)
    assert client.balance.get().amount == pytest.approx(100 - 2 * 2.29 / 6 - storage * 595, abs=3e-6)
    sim.preset("balance_zero")
    assert sim.status(instance_id) == "discontinued"
    assert sim.one(instance_id)["end_reason"] == "insufficient_funds"
    assert len(client.volumes.get_in_trash()) == 1
    with pytest.raises(APIException) as caught:
        client.instances.create(TYPE, IMAGE, "gpu-2", "", location="FIN-01", wait_for_status=None)
    assert caught.value.code == "insufficient_funds"
    sim.control("POST", "/balance", {"add": 10})
    assert sim.raw("POST", "/instances", json=order("gpu-3")).status_code == 202


def test_30b_the_account_runs_dry_by_itself(make: Make) -> None:
    """One dollar pays for 2.29 dollars an hour until the slice at 20 minutes takes the balance below zero."""
    sim = make(billing={"balance": 1.0})
    instance_id = sim.create()
    sim.advance(1199)
    assert sim.status(instance_id) == "running"
    sim.advance(1)
    assert sim.status(instance_id) == "discontinued"
    assert sim.one(instance_id)["billed_seconds"] == 1200


def test_locations_and_volume_types(sim: Harness) -> None:
    """The two short lists, decoded by the SDK."""
    client = sim.client()
    assert [(row["code"], row["country_code"]) for row in client.locations.get()] == [
        ("FIN-01", "FI"), ("FIN-02", "FI"), ("FIN-03", "FI"), ("ICE-01", "IS"),
    ]  # fmt: skip
    assert client.volume_types.get()[0].price_per_month_per_gb == 0.2


def test_prices_in_euro_and_price_history(sim: Harness) -> None:
    """The currency parameter is honoured, an unknown one refused; the price history is empty."""
    euro = requests.get(f"{sim.url}/instance-types", params={"currency": "eur"}, timeout=5).json()
    assert {item["currency"] for item in euro} == {"eur"}
    assert requests.get(f"{sim.url}/instance-types", params={"currency": "jpy"}, timeout=5).status_code == 400
    assert requests.get(f"{sim.url}/instance-types/price-history", timeout=5).json() == {}


def test_availability_may_lag(make: Make) -> None:
    """With a lag of 60 s the endpoint still says true after the last machine went; the order then gets its 503."""
    sim = make(capacity={"availability_lag_s": 60, "pools": {"FIN-01": {"H100": 1}}})
    client = sim.client()
    assert client.instances.is_available(TYPE) is True
    sim.create()
    assert client.instances.is_available(TYPE) is True
    assert sim.raw("POST", "/instances", json=order("gpu-2")).status_code == 503
    sim.advance(60)
    assert client.instances.is_available(TYPE) is False


def test_the_catalogue_on_the_wire_is_what_the_sdk_needs(sim: Harness) -> None:
    """Every key the SDK reads by subscript is present in every type."""
    keys = {
        "id", "instance_type", "price_per_hour", "spot_price", "description", "cpu", "gpu", "memory", "gpu_memory",
        "storage", "best_for", "model", "name", "p2p", "currency", "manufacturer", "display_name", "supported_os",
    }  # fmt: skip
    body = requests.get(f"{sim.url}/instance-types", timeout=5).text
    assert all(keys <= set(item) for item in json.loads(body))
