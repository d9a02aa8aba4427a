"""Contract checks 34 to 39 and 45: what a client sees, and what really happened."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
import requests

from tests.simulator.harness import IMAGE, TYPE, APIException, Harness, order

Make = Callable[..., Harness]


def test_34_timeout_after_commit(sim: Harness) -> None:
    """34. The client sees a timeout, the truth one instance, and the list shows it."""
    sim.preset("create_timeout_after_commit")
    with pytest.raises(requests.ReadTimeout):
        sim.raw("POST", "/instances", json=order(), timeout=0.3)
    truth = sim.truth()
    assert (truth["creates_requested"], truth["creates_committed"], truth["creates_answered_ok"]) == (1, 1, 0)
    assert truth["creates_response_lost"] == 1
    assert [item["hostname"] for item in sim.raw("GET", "/instances").json()] == ["gpu-1"]


def test_35_timeout_before_commit(sim: Harness) -> None:
    """35. The same timeout, and nothing was created."""
    sim.preset("create_timeout_before_commit")
    with pytest.raises(requests.ReadTimeout):
        sim.raw("POST", "/instances", json=order(), timeout=0.3)
    assert sim.truth()["creates_committed"] == 0
    assert sim.raw("GET", "/instances").json() == []


@pytest.mark.parametrize(("preset", "committed"), [("create_5xx_before", 0), ("create_5xx_after", 1)])
def test_36_one_500_two_truths(sim: Harness, preset: str, committed: int) -> None:
    """36. The client gets the same server_error whether the instance exists or not."""
    sim.preset(preset)
    with pytest.raises(APIException) as caught:
        sim.client().instances.create(TYPE, IMAGE, "gpu-1", "", location="FIN-01", wait_for_status=None)
    assert caught.value.code == "server_error"
    assert sim.truth()["creates_committed"] == committed


def test_37_a_stale_list(sim: Harness) -> None:
    """37. list_stale of 30 s: an instance ordered 10 s ago is not in the list, but known by id."""
    instance_id = sim.create()
    sim.advance(10)
    sim.preset("list_stale", lag=30, times=-1)
    client = sim.client()
    assert client.instances.get() == []
    assert client.instances.get_by_id(instance_id).status == "provisioning"
    sim.advance(22)
    (seen,) = client.instances.get()
    assert (seen.id, seen.status) == (instance_id, "ordered")


def test_37b_a_stale_list_revives_the_dead(sim: Harness) -> None:
    """For 30 s after its end an instance is still listed as it was."""
    instance_id = sim.running()
    sim.advance(30)
    sim.client().instances.action(instance_id, "delete")
    sim.advance(20)
    sim.preset("list_stale", lag=30)
    (seen,) = sim.client().instances.get()
    assert (seen.id, seen.status) == (instance_id, "running")


def test_38_an_empty_list_once(sim: Harness) -> None:
    """38. list_empty fires once, the next list is complete."""
    instance_id = sim.create()
    sim.preset("list_empty")
    client = sim.client()
    assert client.instances.get() == []
    assert [item.id for item in client.instances.get()] == [instance_id]


def test_39_the_open_enum(sim: Harness) -> None:
    """39. An unknown status and unknown fields decode in the SDK, the status string kept."""
    instance_id = sim.running()
    sim.preset("object_unknown_status", status="migrating")
    assert sim.client().instances.get_by_id(instance_id).status == "migrating"
    sim.preset("object_extra_fields")
    raw = sim.raw("GET", "/instances").json()
    assert raw[0]["future_field"] == {"nested": [1, 2, {"three": None}]}
    sim.preset("object_extra_fields")
    assert sim.client().instances.get()[0].id == instance_id


def test_45_two_creates_at_once(sim: Harness) -> None:
    """45. Two POSTs released together by a barrier: two instances, two GPUs taken, never less than none."""
    sim.control("PUT", "/capacity", {"family": "H100", "location": "FIN-01", "free": 2})
    sim.control("POST", "/barrier", {"route": "POST /v1/instances", "n": 2})
    headers = {"Authorization": f"Bearer {sim.token()['access_token']}"}

    def post(_: int) -> int:
        return requests.post(f"{sim.url}/instances", json=order("same"), headers=headers, timeout=10).status_code

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(post, range(2))) == [202, 202]
    assert len(sim.truth()["duplicate_hostnames"]["same"]) == 2
    assert sim.truth()["max_in_flight"] == 2
    pools = sim.control("GET", "/capacity")
    assert next(p for p in pools if (p["family"], p["location"]) == ("H100", "FIN-01"))["free"] == 0
    assert sim.raw("POST", "/instances", json=order("third")).status_code == 503


def test_45b_a_barrier_holds_until_enough_have_come(sim: Harness) -> None:
    """The first request waits for the second."""
    sim.login()
    sim.control("POST", "/barrier", {"route": "GET /v1/balance", "n": 2})
    done = threading.Event()

    def first() -> None:
        headers = {"Authorization": str(sim.session.headers["Authorization"])}
        requests.get(f"{sim.url}/balance", headers=headers, timeout=10)
        done.set()

    thread = threading.Thread(target=first)
    thread.start()
    assert not done.wait(0.1)
    assert sim.raw("GET", "/balance").status_code == 200
    assert done.wait(5)
    thread.join()
