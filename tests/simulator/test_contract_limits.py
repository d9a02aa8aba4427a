"""Contract checks 31 to 33 and 42 to 44: rate limits and connections."""

import json
import socket
import time
from collections.abc import Callable

import pytest
import requests

from tests.simulator.harness import APIException, Harness, VerdaClient

Make = Callable[..., Harness]


def test_31_windows_of_sixty(sim: Harness) -> None:
    """31. The 61st GET of one id and the 121st list are 429 with Retry-After; other paths are not affected."""
    instance_id = sim.create()
    statuses = [sim.raw("GET", f"/instances/{instance_id}").status_code for _ in range(61)]
    assert statuses == [200] * 60 + [429]
    lists = [sim.raw("GET", "/instances").status_code for _ in range(121)]
    assert lists == [200] * 120 + [429]
    refused = sim.raw("GET", "/instances")
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert sim.raw("GET", "/balance").status_code == 200
    assert sim.truth()["429_sent"] == 3


def test_31b_the_project_limit(make: Make) -> None:
    """500 requests a minute over all paths; the 501st is refused wherever it goes, and the next window is new."""
    sim = make(limits={"clock": "sim"})
    paths = [f"/instances/{number:08x}-0000-4000-8000-000000000000" for number in range(50)]
    statuses = [sim.raw("GET", path).status_code for path in paths for _ in range(10)]
    assert set(statuses) == {404}
    assert sim.raw("GET", "/locations").status_code == 429
    sim.advance(60)
    assert sim.raw("GET", "/locations").status_code == 200


def test_32_every_authenticated_answer_tells_the_limits(sim: Harness) -> None:
    """32. RateLimit and RateLimit-Policy on every authenticated 2xx, as documented; not on open endpoints."""
    sim.login()
    answer = sim.raw("GET", "/instances")
    assert answer.headers["RateLimit-Policy"] == '"project";q=500;w=60, "endpoint";q=120;w=60'
    assert answer.headers["RateLimit"].startswith('"project";r=499;t=')
    assert '"endpoint";r=119;t=' in answer.headers["RateLimit"]
    for method, path, body in (
        ("GET", "/balance", None),
        ("GET", "/scripts", None),
        ("POST", "/scripts", {"name": "n", "script": "#!"}),
    ):
        assert {"RateLimit", "RateLimit-Policy"} <= set(sim.raw(method, path, json=body).headers)
    assert "RateLimit" not in requests.get(f"{sim.url}/instance-types", timeout=5).headers


def test_33_the_short_429_breaks_the_stock_sdk(sim: Harness) -> None:
    """33. A 429 with eleven bytes of text: JSONDecodeError in the SDK, status and delay on the wire."""
    client = sim.client()
    sim.preset("rate_limit", times=2, retry_after=17)
    with pytest.raises(json.JSONDecodeError):
        client.instances.get()
    answer = sim.raw("GET", "/instances")
    assert (answer.status_code, answer.headers["Retry-After"], len(answer.content)) == (429, "17", 11)
    assert client.instances.get() == []


@pytest.mark.parametrize(("body", "length"), [("text", 11), ("empty", 0)])
def test_33b_bodies_of_429(make: Make, body: str, length: int) -> None:
    """The limiter's own 429 has the configured body."""
    sim = make(limits={"endpoint_per_window": 1, "body": body})
    sim.raw("GET", "/balance")
    assert len(sim.raw("GET", "/balance").content) == length


def test_33c_a_429_in_json(make: Make) -> None:
    """With the JSON body the SDK can tell."""
    sim = make(limits={"endpoint_per_window": 1, "body": "json"})
    client = sim.client()
    client.balance.get()
    with pytest.raises(APIException) as caught:
        client.balance.get()
    assert caught.value.code == "rate_limit_exceeded"


def test_33d_a_neighbour_eats_the_quota(sim: Harness) -> None:
    """`neighbour_storm`: somebody else in the project has spent all but one request of this window."""
    sim.login()
    sim.preset("neighbour_storm", requests=499)
    assert [sim.raw("GET", "/balance").status_code for _ in range(2)] == [200, 429]


def test_42_keep_alive_is_one_fast_connection(sim: Harness) -> None:
    """42. Ten requests over one session use one connection, and none waits for a delayed acknowledgement."""
    sim.login()
    times = []
    for _ in range(10):
        begun = time.perf_counter()
        sim.raw("GET", "/balance")
        times.append(time.perf_counter() - begun)
    assert sim.truth()["connections_opened"] == 1
    assert sorted(times)[5] < 0.02


def test_43_the_stock_sdk_opens_a_connection_per_call(sim: Harness) -> None:
    """43. Ten calls, ten connections besides the token's; two hundred at once all get their answer."""
    client = sim.client()
    for _ in range(10):
        client.balance.get()
    assert sim.truth()["connections_opened"] == 11
    line = b"GET /v1/instance-types HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    address = (sim.simulator.host, sim.simulator.port)
    sockets = [socket.create_connection(address, timeout=20) for _ in range(200)]
    try:
        for connection in sockets:
            connection.sendall(line)
        firsts = []
        for connection in sockets:
            data = b""
            while chunk := connection.recv(65_536):
                data += chunk
            firsts.append(data[:15])
    finally:
        for connection in sockets:
            connection.close()
    assert firsts == [b"HTTP/1.1 200 OK"] * 200


def test_44_trailing_slash_and_strange_paths(sim: Harness) -> None:
    """44. A base url with a trailing slash gives `//`: 404 in JSON, not a crash."""
    with pytest.raises(APIException) as caught:
        VerdaClient("simulator", "simulator", base_url=f"{sim.url}/")
    assert caught.value.code == "not_found"
    assert requests.get(f"{sim.url}/instances/", timeout=5).json()["code"] == "not_found"
    assert requests.get(f"http://127.0.0.1:{sim.simulator.port}/", timeout=5).status_code == 404


def test_garbage_closes_the_connection_and_nothing_else(sim: Harness) -> None:
    """What is no HTTP is dropped; the next client is served."""
    with socket.create_connection((sim.simulator.host, sim.simulator.port), timeout=5) as connection:
        connection.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert connection.recv(10) == b""
    assert sim.client().instances.get() == []


def test_answers_carry_a_loud_name_and_the_simulated_date(sim: Harness) -> None:
    """`Server` says what this is, and `Date` is the simulated clock's."""
    headers = requests.get(f"{sim.url}/instance-types", timeout=5).headers
    assert headers["Server"] == "verda-simulator"
    assert headers["Date"] == "Mon, 05 Jan 2026 00:00:00 GMT"
