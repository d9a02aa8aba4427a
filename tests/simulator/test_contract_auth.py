"""Contract checks 1 to 5: tokens, as the stock SDK 1.25 uses them."""

from collections.abc import Callable

import pytest
import requests

from tests.simulator.harness import APIException, Harness

Make = Callable[..., Harness]


def test_01_construction_is_one_token_request(sim: Harness) -> None:
    """1. Constructing the client makes exactly one request, a JSON POST to /v1/oauth2/token, and succeeds."""
    sim.client()
    (row,) = sim.requests()
    assert (row["method"], row["path"], row["status"]) == ("POST", "/v1/oauth2/token", 200)


def test_02_wrong_secret_is_unauthorized(sim: Harness) -> None:
    """2. A wrong secret raises APIException with code unauthorized_request."""
    with pytest.raises(APIException) as caught:
        sim.client(secret="wrong")
    assert caught.value.code == "unauthorized_request"
    assert caught.value.message == "Invalid client id or client secret"


def test_03_token_answer_has_five_keys(sim: Harness) -> None:
    """3. The five keys the SDK reads by subscript are there; expires_in is an int; forms are accepted like JSON."""
    token = sim.token()
    assert set(token) == {"access_token", "refresh_token", "token_type", "expires_in", "scope"}
    assert type(token["expires_in"]) is int
    assert token["expires_in"] == 3600
    assert (token["token_type"], token["scope"]) == ("Bearer", "cloud-api-v1")
    form = {"grant_type": "client_credentials", "client_id": "simulator", "client_secret": "simulator"}
    assert requests.post(f"{sim.url}/oauth2/token", data=form, timeout=5).status_code == 200
    odd = requests.post(f"{sim.url}/oauth2/token", json={"grant_type": "password"}, timeout=5)
    assert (odd.status_code, odd.json()) == (400, {"code": "invalid_request", "message": "unsupported grant type"})


def test_04_refresh_and_its_fallback(sim: Harness) -> None:
    """4. An expired client sends grant refresh_token and works; when that is refused it logs in again."""
    client = sim.client()
    client._authentication._expires_at = 0
    assert client.instances.get() == []
    assert sim.truth()["token_calls"] == 2
    sim.preset("refresh_rejected")
    client._authentication._expires_at = 0
    assert client.instances.get() == []
    tokens = [(row["status"], row["faults"]) for row in sim.requests() if row["path"].endswith("token")]
    assert tokens == [(200, []), (200, []), (401, ["refresh_rejected"]), (200, [])]


def test_05_no_bearer_or_a_revoked_one_is_401(sim: Harness) -> None:
    """5. Without or with a revoked token: 401 in JSON; the SDK raises and does not try again."""
    bare = requests.get(f"{sim.url}/instances", timeout=5)
    assert bare.status_code == 401
    assert bare.json()["code"] == "unauthorized_request"
    client = sim.client()
    sim.control("POST", "/tokens/revoke")
    before = len(sim.requests())
    with pytest.raises(APIException) as caught:
        client.instances.get()
    assert caught.value.code == "unauthorized_request"
    assert len(sim.requests()) == before + 1


def test_tokens_expire_by_the_simulated_clock(make: Make) -> None:
    """By default the server's clock decides, so a jump of it gives "expired here, fresh there"."""
    sim = make(auth={"token_ttl_s": 3600})
    client = sim.client()
    sim.advance(3599)
    assert client.instances.get() == []
    sim.advance(1)
    with pytest.raises(APIException):
        client.instances.get()


def test_a_single_use_refresh_token_dies_with_its_use(make: Make) -> None:
    """With rotation on, the same refresh token is refused the second time."""
    sim = make(auth={"refresh_single_use": True, "token_clock": "real"})
    body = {"grant_type": "refresh_token", "refresh_token": sim.token()["refresh_token"]}
    answers = [requests.post(f"{sim.url}/oauth2/token", json=body, timeout=5).status_code for _ in range(2)]
    assert answers == [200, 401]
