"""Contract checks 6 to 18, 40 and 41: the life of instances, seen with the stock SDK 1.25."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import requests

from tests.simulator.harness import IMAGE, TYPE, APIException, Harness, order

Make = Callable[..., Harness]

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


def test_06_empty_project_is_an_empty_list(sim: Harness) -> None:
    """6. instances.get() on an empty project is []."""
    assert sim.client().instances.get() == []


def test_07_create_is_one_post_and_one_get(sim: Harness) -> None:
    """7. create(wait_for_status=None): one POST, one GET, and a bare object in `ordered`."""
    client = sim.client()
    created = client.instances.create(TYPE, IMAGE, "gpu-1", "mine", location="FIN-01", wait_for_status=None)
    assert [(row["method"], row["status"]) for row in sim.requests()[1:]] == [("POST", 202), ("GET", 200)]
    assert UUID.fullmatch(created.id)
    assert sim.requests()[2]["path"] == f"/v1/instances/{created.id}"
    assert (created.status, created.ip, created.image, created.os_volume_id) == ("ordered", None, None, None)


def test_08_the_id_comes_bare(sim: Harness) -> None:
    """8. POST answers 202 with the id, no quotes, no newline."""
    answer = sim.raw("POST", "/instances", json=order())
    assert answer.status_code == 202
    assert UUID.fullmatch(answer.text)


def test_09_nulls_and_empty_lists_are_absent(sim: Harness) -> None:
    """9. The SDK's payload with explicit nulls and empty lists is accepted, and unknown fields are ignored."""
    nothing: dict[str, Any] = {"startup_script_id": None, "os_volume": None, "coupon": None, "future": {"x": 1}}
    answer = sim.raw("POST", "/instances", json=order(ssh_key_ids=[], volumes=[], existing_volumes=[], **nothing))
    assert answer.status_code == 202


def test_10_default_create_waits_for_the_next_status(make: Make) -> None:
    """10. create() returns once the status is not `ordered`; if it stays, builtin TimeoutError."""
    sim = make(clock={"mode": "real"}, durations={"preset": "fast"})
    client = sim.client()
    created = client.instances.create(TYPE, IMAGE, "gpu-1", "", location="FIN-01", initial_interval=0.02)
    assert created.status != "ordered"
    sim.preset("stuck_ordered")
    with pytest.raises(TimeoutError):
        client.instances.create(TYPE, IMAGE, "gpu-2", "", location="FIN-01", max_wait_time=0.15, initial_interval=0.05)


def test_11_the_clock_walks_an_instance_to_running(sim: Harness) -> None:
    """11. ordered until 5 s, provisioning until 105 s, then running with every documented field."""
    instance_id = sim.create(description="ca:v1 group=a")
    sim.advance(4.999)
    assert sim.status(instance_id) == "ordered"
    sim.advance(0.001)
    assert sim.status(instance_id) == "provisioning"
    sim.advance(99.999)
    assert sim.status(instance_id) == "provisioning"
    sim.advance(0.001)
    document = sim.raw("GET", f"/instances/{instance_id}").json()
    assert document["status"] == "running"
    documented = {
        "id", "ip", "private_ip", "status", "created_at", "created_by_user_id", "instance_type", "hostname",
        "description", "location", "is_spot", "contract", "pricing", "price_per_hour", "image", "os_name",
        "os_volume_id", "volume_ids", "ssh_key_ids", "startup_script_id", "cpu", "gpu", "gpu_memory", "memory",
        "storage", "jupyter_token", "tags",
    }  # fmt: skip
    assert documented <= set(document)
    assert isinstance(document["price_per_hour"], float)
    assert document["price_per_hour"] == 2.29
    assert document["created_at"] == "2026-01-05T00:00:00.000Z"
    assert document["contract"] == "PAY_AS_YOU_GO"
    assert document["cpu"]["number_of_cores"] == 30
    assert document["gpu_memory"]["size_in_gigabytes"] == 80
    assert document["volume_ids"] == [document["os_volume_id"]]


def test_11b_the_address_appears_before_running(sim: Harness) -> None:
    """The address appears at 60 % of provisioning: at 5 + 60 s, while the API still says provisioning."""
    instance_id = sim.create()
    sim.advance(64)
    assert sim.client().instances.get_by_id(instance_id).ip is None
    sim.advance(1)
    seen = sim.client().instances.get_by_id(instance_id)
    assert seen.status == "provisioning"
    assert seen.ip


def test_12_status_filters(sim: Harness) -> None:
    """12. get(status='running') filters; a status nobody knows is [], never 500."""
    running = sim.running("gpu-1")
    sim.create("gpu-2")
    client = sim.client()
    assert [item.id for item in client.instances.get(status="running")] == [running]
    assert client.instances.get(status="nonsense") == []


def test_13_unknown_id_is_not_found(sim: Harness) -> None:
    """13. get_by_id of an unknown UUID raises APIException('not_found')."""
    with pytest.raises(APIException) as caught:
        sim.client().instances.get_by_id("00000000-0000-4000-8000-000000000000")
    assert caught.value.code == "not_found"


def test_14_offline_is_billed(sim: Harness) -> None:
    """14. shutdown takes 20 s, start 30 s, and the bill does not stop in between."""
    instance_id = sim.running()
    client = sim.client()
    client.instances.action(instance_id, "shutdown")
    sim.advance(19)
    assert sim.status(instance_id) == "running"
    sim.advance(1)
    assert sim.status(instance_id) == "offline"
    address = client.instances.get_by_id(instance_id).ip
    sim.advance(1000)
    client.instances.action(instance_id, "start")
    sim.advance(30)
    again = client.instances.get_by_id(instance_id)
    assert (again.status, again.ip) == ("running", address)
    assert sim.one(instance_id)["billed_seconds"] == 105 + 20 + 1000 + 30


def test_15_delete_passes_through_deleting(sim: Harness) -> None:
    """15. delete: 202, `deleting` for 10 s, then gone from the list and `discontinued` by id."""
    instance_id = sim.running()
    client = sim.client()
    answer = sim.raw("PUT", "/instances", json={"id": instance_id, "action": "delete"})
    assert answer.status_code == 202
    assert answer.json() == [{"instanceId": instance_id, "action": "delete", "status": "success"}]
    assert client.instances.get_by_id(instance_id).status == "deleting"
    assert [item.id for item in client.instances.get()] == [instance_id]
    sim.advance(10)
    assert client.instances.get_by_id(instance_id).status == "discontinued"
    assert client.instances.get() == []
    assert [item.id for item in client.instances.get(status="discontinued")] == [instance_id]


def test_16_delete_is_refused_in_provisioning(sim: Harness) -> None:
    """16. In `provisioning` the API refuses, and the instance goes on as if nobody had asked."""
    instance_id = sim.create()
    sim.advance(5)
    with pytest.raises(APIException) as caught:
        sim.client().instances.action(instance_id, "delete")
    assert caught.value.code == "forbidden_action"
    assert caught.value.message == "Can't discontinue a provisioning instance"
    sim.advance(100)
    assert sim.status(instance_id) == "running"


@pytest.mark.parametrize("style", [204, 403])
def test_17_second_delete(make: Make, style: int) -> None:
    """17. A second delete is 204, or the 403 of 2025 when so configured."""
    sim = make(behaviour={"repeat_delete": style})
    instance_id = sim.running()
    client = sim.client()
    client.instances.action(instance_id, "delete")
    sim.advance(10)
    if style == 204:
        client.instances.action(instance_id, "delete")
        assert sim.requests()[-1]["status"] == 204
    else:
        with pytest.raises(APIException) as caught:
            client.instances.action(instance_id, "delete")
        assert caught.value.message == "Can't discontinue a discontinued instance"
    assert sim.truth()["deletes_repeated"] == 1


def test_18_a_partly_failing_batch_is_207(sim: Harness) -> None:
    """18. One good id and one unknown: HTTP 207, silent in the SDK, the good one deleted, both in the raw body."""
    good, unknown = sim.running(), "00000000-0000-4000-8000-000000000000"
    assert sim.client().instances.action([good, unknown], "delete") is None
    assert sim.requests()[-1]["status"] == 207
    assert sim.status(good) == "deleting"
    second = sim.create("gpu-2")
    body = sim.raw("PUT", "/instances", json={"id": [second, unknown], "action": "delete"}).json()
    assert [(item["instanceId"], item["status"]) for item in body] == [(second, "success"), (unknown, "error")]
    assert body[1]["statusCode"] == 404


@pytest.mark.parametrize("hostname", ["-a", "a-", "a_b", "a.b", "", "123", "x" * 64])
def test_40_bad_hostnames_are_refused(sim: Harness, hostname: str) -> None:
    """40. The console's hostname rule: letters, digits, inner hyphens, a letter, at most 63 characters."""
    answer = sim.raw("POST", "/instances", json=order(hostname))
    assert (answer.status_code, answer.json()["code"]) == (400, "invalid_request")


def test_40b_hostnames_are_not_unique(sim: Harness) -> None:
    """40. Two creates with one hostname are both accepted: nothing protects from a retried create."""
    first, second = sim.create("x" * 63), sim.create("x" * 63)
    assert first != second
    assert sim.truth()["duplicate_hostnames"] == {"x" * 63: [first, second]}


def _story(seed: int) -> list[bytes]:
    """The bodies of one fixed conversation, time stamps included."""
    sim = Harness(seed=seed)
    try:
        bodies = [json.dumps(sim.token()).encode()]
        first = sim.create("gpu-1", is_spot=True)
        sim.create("gpu-2")
        sim.advance(200)
        bodies += [sim.raw("GET", path).content for path in ("/instances", "/volumes", "/instance-types", "/journal")]
        bodies.append(sim.raw("PUT", "/instances", json={"id": first, "action": "delete"}).content)
        sim.advance(200)
        bodies += [sim.raw("GET", path).content for path in ("/instances", "/volumes/trash", "/balance")]
        return bodies
    finally:
        sim.close()


def test_41_same_seed_same_bytes() -> None:
    """41. Same seed and requests: identical bodies; another seed: other ids."""
    assert _story(7) == _story(7)
    assert _story(7)[1] != _story(8)[1]


@pytest.mark.parametrize(
    ("change", "status", "code"),
    [
        ({"location_code": "MARS-1"}, 400, "invalid_request"),
        ({"location_code": None}, 400, "invalid_request"),
        ({"instance_type": "9X"}, 400, "invalid_request"),
        ({"instance_type": "1V100.6V", "location_code": "ICE-01"}, 400, "invalid_request"),
        ({"image": "windows"}, 400, "invalid_request"),
        ({"ssh_key_ids": ["nobody"]}, 400, "invalid_request"),
        ({"startup_script_id": "nothing"}, 400, "invalid_request"),
        ({"existing_volumes": ["nothing"]}, 400, "invalid_request"),
        ({"volumes": [{"name": "d", "size": 10, "type": "HDD"}]}, 400, "invalid_request"),
        ({"contract": "SPOT"}, 400, "invalid_request"),
        ({"pricing": "DYNAMIC_PRICE"}, 400, "invalid_request"),
        ({"tags": [{"key": "k"}] * 11}, 400, "invalid_request"),
        ({"tags": [{"key": "k" * 64}]}, 400, "invalid_request"),
        ({"instance_type": "1GB300.32V"}, 503, "service_unavailable"),
    ],
)
def test_what_is_wrong_with_an_order_is_said(sim: Harness, change: dict[str, object], status: int, code: str) -> None:
    """Every check of a create answers its own status, and nothing is created."""
    answer = sim.raw("POST", "/instances", json=order() | change)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert sim.truth()["creates_committed"] == 0


def test_a_broken_body_is_400_and_a_strange_path_404(sim: Harness) -> None:
    """Nothing a client can send makes the simulator answer 500."""
    sim.login()
    broken = sim.session.post(f"{sim.url}/instances", data=b"{nope", timeout=5)
    assert (broken.status_code, broken.json()["code"]) == (400, "invalid_request")
    assert sim.raw("POST", "/instances", json=[1]).status_code == 400
    assert sim.raw("GET", "/clusters").json()["code"] == "not_found"
    assert sim.raw("PATCH", "/instances").status_code == 404


def test_an_image_may_be_named_by_its_uuid(sim: Harness) -> None:
    """`image` accepts the id from GET /images, and the object then shows the image_type."""
    images = sim.raw("GET", "/images").json()
    uuid = next(item["id"] for item in images if item["image_type"] == IMAGE)
    instance_id = sim.running(image=uuid)
    assert sim.client().instances.get_by_id(instance_id).image == IMAGE


def test_tags_filter_the_list_and_can_be_removed(sim: Harness) -> None:
    """`tag=key` and `tag=key=value`, several are all required; keys are lower case; a second link is 409."""
    tagged = sim.create("gpu-1", tags=[{"key": "CA-Cluster", "value": "prod"}, {"key": "blue"}])
    sim.create("gpu-2", tags=[{"key": "ca-cluster", "value": "test"}])

    def ids(*tags: str) -> list[str]:
        return [item["id"] for item in sim.raw("GET", "/instances", params={"tag": list(tags)}).json()]

    assert ids("ca-cluster=prod", "blue") == [tagged]
    assert len(ids("ca-cluster")) == 2
    again = sim.raw("POST", f"/instances/{tagged}/tags", json={"key": "blue"})
    assert again.status_code == 409
    added = sim.raw("POST", f"/instances/{tagged}/tags", json={"key": "green", "value": "x"})
    assert (added.status_code, added.json()["key"]) == (201, "green")
    assert sim.raw("DELETE", f"/instances/{tagged}/tags/{added.json()['id']}").status_code == 204
    assert ids("green") == []


def test_validating_may_come_between(make: Make) -> None:
    """With probability 1 every instance passes through `validating`, here for 7 s."""
    durations = {"preset": "fast", "ordering": 1, "provisioning": 2, "validating": 7}
    sim = make(chances={"validating": 1}, durations=durations)
    instance_id = sim.create()
    sim.advance(3)
    assert sim.status(instance_id) == "validating"
    sim.advance(7)
    assert sim.status(instance_id) == "running"


def test_the_deprecated_action_path_works(sim: Harness) -> None:
    """POST /instances/action is the old name of PUT /instances."""
    instance_id = sim.create()
    assert sim.raw("POST", "/instances/action", json={"id": instance_id, "action": "delete"}).status_code == 202
    with pytest.raises(requests.JSONDecodeError):
        sim.raw("PUT", "/instances", json={"id": instance_id, "action": "delete"}).json()
