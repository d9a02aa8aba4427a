"""Presets that spoil requests and answers, as the stock SDK 1.25 meets them."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import requests

from app.simulator.presets import PRESETS, build
from tests.simulator.harness import IMAGE, TYPE, APIException, Harness, order

Make = Callable[..., Harness]


def test_every_preset_builds_with_its_defaults() -> None:
    """No preset needs an argument, and all take the common ones."""
    for name in PRESETS:
        for fault in build(name, {"times": 3, "skip": 1, "probability": 0.5, "body": {"hostname": "^a-"}}):
            assert (fault.name, fault.times, fault.skip, fault.probability) == (name, 3, 1, 0.5)
            assert fault.match.body["hostname"] == "^a-"


@pytest.mark.parametrize(
    ("preset", "error"),
    [
        ("html_502", json.JSONDecodeError),
        ("empty_500", json.JSONDecodeError),
        ("rate_limit_empty", json.JSONDecodeError),
        ("json_null", TypeError),
        ("ok_html", requests.JSONDecodeError),
        ("list_truncated_json", requests.JSONDecodeError),
    ],
)
def test_odd_bodies_raise_odd_things(sim: Harness, preset: str, error: type[Exception]) -> None:
    """The SDK decodes every error as JSON, so each odd body has its own wrong exception, once."""
    sim.create()
    client = sim.client()
    sim.preset(preset)
    with pytest.raises(error):
        client.instances.get()
    assert len(client.instances.get()) == 1


@pytest.mark.parametrize(
    ("preset", "code", "message"),
    [
        ("json_list_error", None, None),
        ("token_expired_midflight", "unauthorized_request", "Access token is missing or invalid"),
        ("token_scope_403", "forbidden_action", "Insufficient scope"),
    ],
)
def test_odd_refusals(sim: Harness, preset: str, code: str | None, message: str | None) -> None:
    """Errors the SDK can read, with what it makes of them."""
    client = sim.client()
    sim.preset(preset)
    with pytest.raises(APIException) as caught:
        client.instances.get()
    assert (caught.value.code, caught.value.message) == (code, message)


@pytest.mark.parametrize(
    ("preset", "error"),
    [
        ("auth_html", json.JSONDecodeError),
        ("auth_missing_key", KeyError),
        ("expires_in_string", TypeError),
        ("auth_down", requests.ConnectionError),
    ],
)
def test_trouble_with_the_token_endpoint(sim: Harness, preset: str, error: type[Exception]) -> None:
    """The client cannot even be constructed, and works the next time."""
    sim.preset(preset)
    with pytest.raises(error):
        sim.client()
    assert sim.client().instances.get() == []


def test_expires_in_zero_costs_a_token_call_each_time(sim: Harness) -> None:
    """A lifetime of nothing makes every API call two."""
    sim.preset("expires_in_zero", times=-1)
    client = sim.client()
    client.instances.get()
    client.instances.get()
    assert sim.truth()["token_calls"] == 3


@pytest.mark.parametrize(
    ("preset", "pattern"),
    [
        ("create_quoted_id", '"{}"'),
        ("create_object_id", '{{"id": "{}"}}'),
        ("create_newline_id", "{}\n"),
    ],
)
def test_odd_forms_of_a_new_id(sim: Harness, preset: str, pattern: str) -> None:
    """202 with the id in another form: the SDK raises ValueError, and the machine exists."""
    sim.preset(preset, times=2)
    answer = sim.raw("POST", "/instances", json=order())
    (known,) = sim.truth()["instances"]
    assert answer.text == pattern.format(known["id"])
    with pytest.raises(ValueError, match="path segment"):
        sim.client().instances.create(TYPE, IMAGE, "gpu-2", "", location="FIN-01", wait_for_status=None)
    assert sim.truth()["creates_committed"] == 2


def test_an_empty_answer_to_a_create(sim: Harness) -> None:
    """202 and nothing else."""
    sim.preset("create_empty_body")
    assert sim.raw("POST", "/instances", json=order()).text == ""
    assert sim.truth()["alive"] == 1


@pytest.mark.parametrize(
    ("preset", "error"),
    [
        ("create_reset_after_commit", requests.ConnectionError),
        ("create_close_after_commit", requests.ConnectionError),
        ("create_truncated", requests.exceptions.ChunkedEncodingError),
    ],
)
def test_connections_that_die_after_the_commit(sim: Harness, preset: str, error: type[Exception]) -> None:
    """The machine exists, the client has an exception and no id."""
    sim.login()
    sim.preset(preset)
    with pytest.raises(error):
        sim.raw("POST", "/instances", json=order())
    truth = sim.truth()
    assert (truth["creates_committed"], truth["creates_response_lost"]) == (1, 1)


def test_a_cut_id_looks_like_an_id(sim: Harness) -> None:
    """Without a length nine characters pass for the whole answer."""
    sim.preset("create_cut_id")
    text = sim.raw("POST", "/instances", json=order()).text
    (known,) = sim.truth()["instances"]
    assert text == known["id"][:9]


@pytest.mark.parametrize(("status", "kind"), [(500, "application/json"), (502, "text/html"), (504, "text/html")])
def test_5xx_in_json_or_from_a_gateway(sim: Harness, status: int, kind: str) -> None:
    """500 speaks JSON, gateways speak HTML."""
    sim.preset("create_5xx_before", status=status)
    answer = sim.raw("POST", "/instances", json=order())
    assert answer.status_code == status
    assert answer.headers["Content-Type"].startswith(kind)


def test_replica_lag_loses_the_id(sim: Harness) -> None:
    """The SDK's own GET after the POST meets 404: it raises, the id is gone, the machine is not."""
    sim.preset("create_get_404", n=2)
    client = sim.client()
    with pytest.raises(APIException) as caught:
        client.instances.create(TYPE, IMAGE, "gpu-1", "", location="FIN-01", wait_for_status=None)
    assert caught.value.code == "not_found"
    (machine,) = client.instances.get()
    statuses = [sim.raw("GET", f"/instances/{machine.id}").status_code for _ in range(3)]
    assert statuses == [404, 200, 200]
    second = sim.create("gpu-2")
    assert [sim.raw("GET", f"/instances/{second}").status_code for _ in range(3)] == [404, 404, 200]


def test_lists_that_lie(sim: Harness) -> None:
    """A hole, a duplicate, a reversed and a huge list, each once."""
    ids = [sim.create(f"gpu-{number}") for number in range(3)]

    def listed() -> list[str]:
        return [item["id"] for item in sim.raw("GET", "/instances").json()]

    sim.preset("list_hole", id=ids[1])
    assert listed() == [ids[0], ids[2]]
    sim.preset("list_hole")
    assert len(listed()) == 2
    sim.preset("list_duplicate")
    assert listed() == [*ids, ids[0]]
    sim.preset("list_reordered")
    assert listed() == ids[::-1]
    sim.preset("list_huge", count=500)
    answer = sim.raw("GET", "/instances")
    assert len(answer.json()) == 503
    assert len(answer.content) > 1_000_000
    assert listed() == ids


def test_objects_that_lack_something(sim: Harness) -> None:
    """A null id, a missing location that the SDK turns into FIN-03, missing fields that become None."""
    instance_id = sim.running()
    client = sim.client()
    sim.preset("object_null_id")
    with pytest.warns(RuntimeWarning, match="Missing value of non-optional type id"):
        assert client.instances.get()[0].id is None
    sim.preset("location_missing")
    assert client.instances.get_by_id(instance_id).location == "FIN-03"
    sim.preset("object_partial")
    with pytest.warns(RuntimeWarning, match="Missing"):
        assert client.instances.get_by_id(instance_id).hostname is None


def test_answers_that_take_their_time(sim: Harness) -> None:
    """`slow` delays, `drip` sends byte by byte, and both arrive whole."""
    sim.login()
    for preset in ({"seconds": 0.1}, {"bytes": 10, "interval": 0.02}):
        sim.preset("slow" if "seconds" in preset else "drip", path="/v1/balance", **preset)
        answer = sim.raw("GET", "/balance")
        assert answer.json()["currency"] == "usd"
        assert answer.elapsed.total_seconds() >= (0.1 if "seconds" in preset else 0.0)
    sim.preset("auth_slow", seconds=0.1)
    assert sim.token()["token_type"] == "Bearer"


def _delete(sim: Harness, *ids: str) -> requests.Response:
    return sim.raw("PUT", "/instances", json={"id": list(ids), "action": "delete"})


def test_deletes_that_do_nothing(sim: Harness) -> None:
    """`delete_lost` says 202 and leaves the machine, `delete_refused_provisioning` says why not."""
    instance_id = sim.running()
    sim.preset("delete_lost")
    assert _delete(sim, instance_id).status_code == 202
    sim.advance(100)
    assert sim.status(instance_id) == "running"
    sim.preset("delete_refused_provisioning")
    refused = _delete(sim, instance_id)
    assert (refused.status_code, refused.json()["message"]) == (403, "Can't discontinue a provisioning instance")
    assert sim.truth()["deletes_committed"] == 0


def test_deletes_that_do_more_than_they_say(sim: Harness) -> None:
    """`delete_403_already` and `delete_timeout_after_commit` delete, whatever the client hears."""
    first, second = sim.running("one"), sim.running("two")
    sim.preset("delete_403_already")
    answer = _delete(sim, first)
    assert (answer.status_code, answer.json()["message"]) == (403, "Can't discontinue a discontinued instance")
    sim.preset("delete_timeout_after_commit", seconds=0.05)
    with pytest.raises(requests.ConnectionError):
        _delete(sim, second)
    assert (sim.status(first), sim.status(second)) == ("deleting", "deleting")


def test_a_delete_that_fails_for_one_of_three(sim: Harness) -> None:
    """`delete_partial`: 207, two deleted, the last one not."""
    ids = [sim.running(f"gpu-{number}") for number in range(3)]
    sim.preset("delete_partial")
    answer = _delete(sim, *ids)
    assert answer.status_code == 207
    assert [item["status"] for item in answer.json()] == ["success", "success", "error"]
    assert [sim.status(instance_id) for instance_id in ids] == ["deleting", "deleting", "running"]


def test_an_os_volume_that_is_left_although_it_was_listed(sim: Harness) -> None:
    """`os_volume_left`: deleted permanently, says the caller, and there it is, detached and billed."""
    instance_id = sim.running()
    volume_id = sim.client().instances.get_by_id(instance_id).os_volume_id
    sim.preset("os_volume_left")
    sim.client().instances.action(instance_id, "delete", volume_ids=[volume_id], delete_permanently=True)
    sim.advance(12)
    assert sim.truth()["orphan_volumes"] == [volume_id]


def test_types_that_break_the_sdk(sim: Harness) -> None:
    """One null price, or one missing field, and the SDK shows no type at all."""
    client = sim.client()
    fault = sim.preset("spot_price_null", type="1B200.30V")["faults"][0]
    with pytest.raises(TypeError):
        client.instance_types.get()
    sim.control("DELETE", f"/faults/{fault}")
    sim.preset("type_missing_field", type="1B200.30V", field="p2p")
    with pytest.raises(KeyError):
        client.instance_types.get()


@pytest.mark.parametrize(("mode", "seen"), [("in_stock", True), ("sold_out", False), ("string", "false")])
def test_availability_that_lies(sim: Harness, mode: str, seen: object) -> None:
    """True and then 503, false while there is stock, and a string that is true in Python."""
    sim.preset("availability_lies", mode=mode)
    assert sim.client().instances.is_available(TYPE) == seen
    assert sim.raw("POST", "/instances", json=order()).status_code == (503 if mode == "in_stock" else 202)


def test_a_fault_for_one_client_only(make: Make) -> None:
    """Two clients of one project; only one of them is told to wait."""
    sim = make(auth={"clients": {"simulator": "simulator", "other": "secret"}, "token_clock": "real"})
    say: dict[str, Any] = {"kind": "say", "status": 503}
    fault = {"match": {"client": "simulator", "path": "/v1/balance"}, "phase": "before_commit", "action": say}
    sim.control("POST", "/faults", fault)
    body = {"grant_type": "client_credentials", "client_id": "other", "client_secret": "secret"}
    token = requests.post(f"{sim.url}/oauth2/token", json=body, timeout=5).json()["access_token"]
    other = requests.get(f"{sim.url}/balance", headers={"Authorization": f"Bearer {token}"}, timeout=5)
    assert (other.status_code, sim.raw("GET", "/balance").status_code) == (200, 503)


def test_redirects_and_patches_by_hand(sim: Harness) -> None:
    """Raw faults reach what no preset does: a redirect, and a change deep in a list."""
    sim.create()
    redirect: dict[str, Any] = {"kind": "redirect", "location": "/elsewhere", "status": 307}
    sim.control("POST", "/faults", {"match": {"path": "/v1/balance"}, "phase": "before_commit", "action": redirect})
    answer = sim.raw("GET", "/balance")
    assert (answer.status_code, answer.headers["Location"]) == (307, "/elsewhere")
    patch = {"op": "set", "path": ["*", "cpu", "number_of_cores"], "value": -1}
    mutate: dict[str, Any] = {"kind": "mutate", "patches": [patch]}
    sim.control("POST", "/faults", {"match": {"path": "/v1/instances"}, "phase": "response", "action": mutate})
    assert sim.raw("GET", "/instances").json()[0]["cpu"]["number_of_cores"] == -1
    assert sim.raw("GET", "/instances").json()[0]["cpu"]["number_of_cores"] == 30
