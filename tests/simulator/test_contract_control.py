"""Contract checks 46 to 48: the ledger, and a control plane that leaves no trace."""

import pytest
import requests

from tests.simulator.harness import Harness, order


def test_46_the_ledger_adds_up(sim: Harness) -> None:
    """46. Slices minus refunds equal billed seconds times price, within a millionth of a dollar per instance."""
    ids = [sim.create(f"gpu-{number}", is_spot=number % 2 == 0) for number in range(6)]
    ids += [sim.create(f"cpu-{number}", instance_type="CPU.4V.16G", image="ubuntu-24.04") for number in range(4)]
    for number, instance_id in enumerate(ids):
        sim.advance(137.003 * number + 111)
        sim.raw("PUT", "/instances", json={"id": instance_id, "action": "delete"})
    sim.advance(10)
    truth = sim.truth()
    expected = sum(item["billed_seconds"] * item["price_per_hour"] / 3600 for item in truth["instances"])
    paid = truth["ledger"]["slice"] + truth["ledger"]["refund"]
    assert paid == pytest.approx(expected, abs=len(ids) * 1e-6)
    assert truth["cost_instances"] == pytest.approx(paid, abs=1e-9)
    assert all(item["status"] == "discontinued" for item in truth["instances"])
    assert truth["balance"] == pytest.approx(100_000 - paid - truth["cost_volumes"], abs=1e-6)


def test_47_the_control_plane_leaves_no_trace(sim: Harness) -> None:
    """47. /_sim needs no bearer, counts in no rate limit and in no counter of the data plane."""
    for _ in range(70):
        assert requests.get(f"{sim.simulator.control_url}/health", timeout=5).status_code == 200
    truth = sim.truth()
    assert truth["requests"] == 0
    assert truth["requests_by_route"] == {}
    assert truth["connections_opened"] == 0
    assert sim.requests() == []
    sim.login()
    assert '"project";r=499' in sim.raw("GET", "/balance").headers["RateLimit"]


def test_48_reset_is_a_new_world(sim: Harness) -> None:
    """48. After a reset counters, clock, ids and faults are as new, and the same story gives the same ids."""
    first = sim.create()
    sim.advance(500)
    sim.preset("create_5xx_before")
    sim.control("POST", "/reset", {"seed": 7})
    assert sim.control("GET", "/faults") == []
    assert sim.control("GET", "/clock")["now"] == "2026-01-05T00:00:00.000Z"
    truth = sim.truth()
    assert (truth["requests"], truth["creates_committed"], truth["instances"]) == (0, 0, [])
    del sim.session.headers["Authorization"]
    assert sim.create() == first


def test_clock_modes_and_the_next_event(sim: Harness) -> None:
    """The next event of a new order is its provisioning at 5 s; a scaled clock runs by itself."""
    sim.create()
    assert sim.control("GET", "/clock")["next_event"] == "2026-01-05T00:00:05.000Z"
    sim.control("POST", "/clock/advance", {"to_next_event": True})
    assert sim.control("GET", "/clock")["now"] == "2026-01-05T00:00:05.000Z"
    sim.control("POST", "/clock/advance", {"until": "2026-01-05T01:00:00Z"})
    assert sim.control("GET", "/clock")["now"] == "2026-01-05T01:00:00.000Z"
    assert sim.control("POST", "/clock", {"mode": "scaled", "factor": 1_000_000})["mode"] == "scaled"
    assert sim.control("GET", "/clock")["now"] > "2026-01-05T01:00:00.000Z"


def test_guests_are_what_the_cluster_would_see(sim: Harness) -> None:
    """A machine is a guest once it runs, and ready 60 s later, under the provider id its script would compute."""
    instance_id = sim.create()
    sim.advance(104)
    assert sim.control("GET", "/guests") == []
    sim.advance(1)
    (guest,) = sim.control("GET", "/guests")
    assert (guest["instance_id"], guest["hostname"], guest["provider_id"]) == (instance_id, "gpu-1", "verda://gpu-1")
    assert (guest["ready"], guest["ready_at"]) == (False, None)
    sim.advance(60)
    (guest,) = sim.control("GET", "/guests")
    assert (guest["ready"], guest["ready_at"]) == (True, "2026-01-05T00:02:45.000Z")


def test_truth_counts_by_group_and_waste(sim: Harness) -> None:
    """Groups come from the mark in the description; waste is what was paid before the guest was ready."""
    mark = "ca:v1 cluster=prod installation=x group={}"
    sim.create("a-1", description=mark.format("a"))
    sim.create("a-2", description=mark.format("a"))
    sim.create("b-1", description=mark.format("b"))
    assert sim.truth()["alive_by_group"] == {"a": 2, "b": 1}
    assert (sim.truth()["alive"], sim.truth()["peak_alive"]) == (3, 3)
    sim.advance(165 + 165)
    # ready after 165 s, looked at after 330 s: half of what was paid bought nothing
    truth = sim.truth()
    assert truth["cost_instances"] == pytest.approx(3 * 330 * 2.29 / 3600, abs=3e-6)
    assert truth["wasted_cost"] == pytest.approx(truth["cost_instances"] / 2, abs=3e-6)


def test_orphans_are_what_the_caller_does_not_know(sim: Harness) -> None:
    """Known by id or hostname, with their volumes; everything else that costs money is an orphan."""
    known_by_id, known_by_name, unknown = sim.running("one"), sim.running("two"), sim.running("three")
    found = sim.control("GET", f"/truth/orphans?known={known_by_id},two")
    assert [item["id"] for item in found["instances"]] == [unknown]
    assert [item["instance_id"] for item in found["volumes"]] == [unknown]
    assert known_by_name != unknown


def test_posts_after_an_unknown_without_looking_are_counted(sim: Harness) -> None:
    """A second POST for a group after a lost answer, with no list between, is what a provider must never do."""
    body = order(description="ca:v1 group=a")
    sim.preset("create_reset_after_commit", times=2)
    for _ in range(2):
        with pytest.raises(requests.ConnectionError):
            sim.raw("POST", "/instances", json=body)
    assert sim.truth()["posts_after_unknown_without_list"] == 1
    sim.raw("GET", "/instances")
    sim.raw("POST", "/instances", json=body)
    assert sim.truth()["posts_after_unknown_without_list"] == 1


def test_snapshot_and_restore_fork_a_world(sim: Harness) -> None:
    """A restored world is the same, and goes on the same way as the original did."""
    instance_id = sim.create()
    sim.advance(50)
    saved = requests.get(f"{sim.simulator.control_url}/snapshot", timeout=5).content
    sim.advance(55)
    later = sim.create("gpu-2")
    restored = requests.post(f"{sim.simulator.control_url}/restore", data=saved, timeout=5)
    assert restored.status_code == 200
    assert sim.status(instance_id) == "provisioning"
    sim.advance(55)
    assert sim.status(instance_id) == "running"
    assert sim.create("gpu-2") == later


def test_raw_faults_can_be_added_counted_and_lifted(sim: Harness) -> None:
    """A fault that skips one match and fires twice, its counts, and its removal."""
    fault = {
        "match": {"method": "GET", "path": "/v1/balance"}, "skip": 1, "times": 2, "phase": "before_commit",
        "action": {"kind": "say", "status": 418, "text": "teapot"},
    }  # fmt: skip
    (fault_id,) = sim.control("POST", "/faults", fault)["faults"]
    assert [sim.raw("GET", "/balance").status_code for _ in range(5)] == [200, 418, 418, 200, 200]
    (seen,) = sim.control("GET", "/faults")
    assert (seen["id"], seen["fired"]) == (fault_id, 2)
    assert [row["faults"] for row in sim.requests()].count([fault_id]) == 2
    sim.control("DELETE", f"/faults/{fault_id}")
    assert sim.control("GET", "/faults") == []


def test_what_makes_no_sense_is_refused(sim: Harness) -> None:
    """Unknown presets, acts, pools and fields are 400 or 404, never a crash."""
    root = sim.simulator.control_url
    answers = [
        requests.post(f"{root}/faults", json={"preset": "nonsense"}, timeout=5),
        requests.post(f"{root}/faults", json={"phase": "never"}, timeout=5),
        requests.post(f"{root}/faults", json={"preset": "slow", "args": {"seconds": "x"}}, timeout=5),
        requests.post(f"{root}/instances/none/evict", timeout=5),
        requests.post(f"{root}/instances/none/dance", timeout=5),
        requests.put(f"{root}/capacity", json={"family": "X", "location": "Y"}, timeout=5),
        requests.post(f"{root}/clock", json={"mode": "odd"}, timeout=5),
        requests.post(f"{root}/restore", data=b"{}", timeout=5),
        requests.post(f"{root}/barrier", json={"route": "("}, timeout=5),
        requests.post(f"{root}/clock/advance", json={"until": "soon"}, timeout=5),
        requests.get(f"{root}/requests?since=x", timeout=5),
    ]
    assert {answer.status_code for answer in answers} <= {400, 404}
