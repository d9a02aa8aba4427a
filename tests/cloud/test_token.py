import threading
from collections.abc import Callable
from datetime import timedelta

import pytest

from app.clock import FakeClock
from app.cloud.verda import VerdaCloud
from app.errors import CloudError, NotSent, OutcomeUnknown, Rejected

from .conftest import MakeCloud
from .toy import (
    INSTANCE,
    ORDER,
    SECRET,
    Reply,
    Toy,
    close,
    error,
    grant,
    hang,
    html,
    instance,
    later,
    needs_token,
    ok,
    raw,
)

REVOKED = error(401, "unauthorized_request", "Invalid token")


def at_once(number: int, call: Callable[[], object]) -> list[object]:
    """What a number of threads got from one call, made at the same moment; an exception counts as a result."""
    results: list[object] = []
    start = threading.Barrier(number)

    def run() -> None:
        start.wait()
        try:
            results.append(call())
        except CloudError as error_:
            results.append(error_)

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def test_the_login_sends_the_credentials_as_json(toy: Toy, cloud: VerdaCloud) -> None:
    """As the SDK does."""
    toy.on("GET", "/instances", ok([]))
    cloud.list_instances()
    login = toy.seen("POST", "/oauth2/token")[0]
    assert login.body == {"grant_type": "client_credentials", "client_id": "client", "client_secret": SECRET}
    assert "Authorization" not in login.headers


def test_one_login_serves_many_calls(toy: Toy, cloud: VerdaCloud) -> None:
    """Tokens live an hour."""
    toy.on("GET", "/instances", ok([]))
    for _ in range(5):
        cloud.list_instances()
    assert toy.logins == 1


@pytest.mark.parametrize(
    ("expires_in", "good_s", "dead_s"),
    [
        (3600, 3539, 3541),  # a margin of a minute
        (100, 79, 81),  # or of a fifth
        ("3600", 3539, 3541),  # as a string
        (None, 239, 241),  # not said
        ("soon", 239, 241),
        (-5, 239, 241),
        (0, 0.9, 1.1),  # a server that gives out dead tokens is not asked more than once a second
        (10**12, 86_339, 86_341),
    ],
)
def test_a_token_is_replaced_before_it_expires(
    toy: Toy, make_cloud: MakeCloud, expires_in: object, good_s: float, dead_s: float
) -> None:
    """A request that leaves just before would arrive with a dead token."""
    clock = FakeClock()
    toy.on("POST", "/oauth2/token", grant("first", expires_in), grant("second"))
    toy.on("GET", "/instances", ok([]))
    cloud = make_cloud(clock=clock)
    cloud.list_instances()
    clock.advance(good_s)
    cloud.list_instances()
    assert toy.logins == 1
    clock.advance(dead_s - good_s)
    cloud.list_instances()
    assert toy.logins == 2
    assert toy.seen("GET", "/instances")[-1].headers["Authorization"] == "Bearer second"


def test_a_wall_clock_that_is_set_back_does_not_keep_a_dead_token(toy: Toy, make_cloud: MakeCloud) -> None:
    """The SDK counts by the wall clock and would keep it."""
    clock = FakeClock()
    toy.on("GET", "/instances", ok([]))
    cloud = make_cloud(clock=clock)
    cloud.list_instances()
    clock.step_wall(timedelta(hours=-5))
    clock.advance(3601)
    cloud.list_instances()
    assert toy.logins == 2


def test_eight_threads_at_expiry_make_one_login(toy: Toy, cloud: VerdaCloud) -> None:
    """The SDK would make eight."""
    toy.on("POST", "/oauth2/token", later(0.05, grant("token")))
    toy.on("GET", "/instances", ok([instance()]))
    results = at_once(8, cloud.list_instances)
    assert [isinstance(result, list) for result in results] == [True] * 8
    assert toy.logins == 1


def test_eight_threads_with_a_revoked_token_make_one_login(toy: Toy, cloud: VerdaCloud) -> None:
    """F66: nobody outside notices; the SDK would fail every call for up to an hour."""
    toy.on("GET", "/instances", needs_token("token-1", ok([])))
    cloud.list_instances()
    toy.on("GET", "/instances", needs_token("token-2", ok([instance()])))
    results = at_once(8, cloud.list_instances)
    assert [isinstance(result, list) for result in results] == [True] * 8
    assert toy.logins == 2


def test_an_order_refused_for_its_token_is_sent_again(toy: Toy, cloud: VerdaCloud) -> None:
    """F66: the API's own 401 proves that it was not executed."""
    toy.on("POST", "/instances", needs_token("token-2", raw(INSTANCE.encode(), 202)))
    assert cloud.create_instance(ORDER) == INSTANCE
    first, second = toy.seen("POST", "/instances")
    assert first.body == second.body


def test_an_order_refused_by_a_gateway_is_not_sent_again(toy: Toy, cloud: VerdaCloud) -> None:
    """A 401 in somebody else's words proves nothing. The next call logs in again all the same."""
    toy.on("POST", "/instances", html(401))
    toy.on("GET", "/instances", needs_token("token-2", ok([])))
    with pytest.raises(OutcomeUnknown) as raised:
        cloud.create_instance(ORDER)
    assert raised.value.code == "http_401"
    assert len(toy.seen("POST", "/instances")) == 1
    assert cloud.list_instances() == []
    assert len(toy.seen("GET", "/instances")) == 1


def test_an_order_refused_for_its_token_is_not_sent_if_there_is_no_other(toy: Toy, cloud: VerdaCloud) -> None:
    """Both halves are proven: the first was not executed, the second did not leave."""
    toy.on("POST", "/oauth2/token", grant("first"), html(502))
    toy.on("POST", "/instances", REVOKED)
    with pytest.raises(NotSent) as raised:
        cloud.create_instance(ORDER)
    assert raised.value.code == "http_502"
    assert len(toy.seen("POST", "/instances")) == 1


def test_a_read_refused_by_a_gateway_is_sent_again(toy: Toy, cloud: VerdaCloud) -> None:
    """Reading twice harms nobody."""
    toy.on("GET", "/instances", html(401), ok([]))
    assert cloud.list_instances() == []
    assert toy.logins == 2


def test_a_call_is_sent_again_only_once(toy: Toy, cloud: VerdaCloud) -> None:
    """A server that refuses every token must not be asked for ever."""
    toy.on("POST", "/instances", REVOKED)
    with pytest.raises(Rejected) as raised:
        cloud.create_instance(ORDER)
    assert (raised.value.code, raised.value.status) == ("unauthorized_request", 401)
    assert len(toy.seen("POST", "/instances")) == 2
    assert toy.logins == 2


LOGIN_FAILURES: dict[str, tuple[Reply, str, int | None]] = {
    "wrong secret": (error(401, "unauthorized_request", "Invalid client id or secret"), "unauthorized_request", 401),
    "wrong grant": (error(400, "invalid_request", "unsupported grant type"), "invalid_request", 400),
    "throttled": (raw(b"Rate limit!", 429), "rate_limit_exceeded", 429),
    "down": (html(503), "http_503", 503),
    "empty error": (raw(b"", 500), "http_500", 500),
    "closed": (close, "connection_lost", None),
    "hanging": (hang, "timeout", None),
    "moved": (raw(b"", 302, Location="/v1/login"), "http_302", 302),
    "page": (html(200), "unreadable_token", 200),
    "null": (ok(None), "unreadable_token", 200),
    "list": (ok(["token"]), "unreadable_token", 200),
    "empty object": (ok({}), "unreadable_token", 200),
    "token of the wrong kind": (ok({"access_token": 7, "expires_in": 60}), "unreadable_token", 200),
    "empty token": (ok({"access_token": "", "expires_in": 60}), "unreadable_token", 200),
    "token that breaks the header": (ok({"access_token": "a\r\nX-Evil: 1", "expires_in": 60}), "unreadable_token", 200),
    "token outside ASCII": (ok({"access_token": "tökén", "expires_in": 60}), "unreadable_token", 200),
}


@pytest.mark.parametrize(("reply", "code", "status"), LOGIN_FAILURES.values(), ids=LOGIN_FAILURES.keys())
def test_without_a_token_nothing_is_sent(
    toy: Toy, make_cloud: MakeCloud, reply: Reply, code: str, status: int | None
) -> None:
    """Whatever became of the login, the order is proven not to have left."""
    toy.on("POST", "/oauth2/token", reply)
    with pytest.raises(NotSent) as raised:
        make_cloud(timeout=timedelta(seconds=0.3 if code == "timeout" else 5)).create_instance(ORDER)
    assert (raised.value.code, raised.value.status) == (code, status)
    assert raised.value.message.startswith("no access token: ")
    assert SECRET not in raised.value.message
    assert toy.seen("POST", "/instances") == []


def test_a_login_with_only_a_token_in_it_is_enough(toy: Toy, cloud: VerdaCloud) -> None:
    """The SDK insists on all five fields."""
    toy.on("POST", "/oauth2/token", ok({"access_token": "bare"}))
    toy.on("GET", "/instances", needs_token("bare", ok([])))
    assert cloud.list_instances() == []


def test_threads_behind_a_hanging_login_do_not_wait_one_after_the_other(toy: Toy, make_cloud: MakeCloud) -> None:
    """The first one's failure is theirs too."""
    toy.on("POST", "/oauth2/token", hang)
    cloud = make_cloud(timeout=timedelta(seconds=0.3))
    started = cloud._clock.monotonic()
    results = at_once(8, cloud.list_instances)
    assert cloud._clock.monotonic() - started < 2
    assert [type(result) for result in results] == [NotSent] * 8
    assert toy.logins == 1


def test_a_failed_login_is_remembered_for_two_seconds(toy: Toy, make_cloud: MakeCloud) -> None:
    """Long enough for those who wait, short enough not to matter after an outage."""
    clock = FakeClock()
    toy.on("POST", "/oauth2/token", html(502), grant("token"))
    toy.on("GET", "/instances", ok([]))
    cloud = make_cloud(clock=clock)
    for _ in range(3):
        with pytest.raises(NotSent):
            cloud.list_instances()
    assert toy.logins == 1
    clock.advance(2.1)
    assert cloud.list_instances() == []
    assert toy.logins == 2


def test_one_callers_lack_of_time_is_not_held_against_the_next(toy: Toy, make_cloud: MakeCloud) -> None:
    """Nothing was learnt about the login."""
    clock = FakeClock()
    toy.on("GET", "/instances", ok([]))
    cloud = make_cloud(clock=clock)
    with pytest.raises(NotSent) as raised:
        cloud._client._authentication.token(clock.monotonic())
    assert raised.value.code == "deadline"
    assert cloud.list_instances() == []


def test_a_throttled_login_is_remembered_as_long_as_it_says(toy: Toy, make_cloud: MakeCloud) -> None:
    """Logging in has a rate limit too."""
    clock = FakeClock()
    toy.on("POST", "/oauth2/token", raw(b"Rate limit!", 429, Retry_After="30"), grant("token"))
    toy.on("GET", "/instances", ok([]))
    cloud = make_cloud(clock=clock)
    with pytest.raises(NotSent) as raised:
        cloud.list_instances()
    assert raised.value.retry_after == timedelta(seconds=30)
    clock.advance(29)
    with pytest.raises(NotSent):
        cloud.list_instances()
    clock.advance(2)
    assert cloud.list_instances() == []


def test_a_slow_login_counts_against_the_calls_deadline(toy: Toy, make_cloud: MakeCloud) -> None:
    """The caller does not care what the time went into."""
    toy.on("POST", "/oauth2/token", later(0.3, grant("token")))
    toy.on("POST", "/instances", later(0.4, ok(INSTANCE, 202)))
    cloud = make_cloud(timeout=timedelta(seconds=0.6))
    started = cloud._clock.monotonic()
    with pytest.raises(OutcomeUnknown):
        cloud.create_instance(ORDER)
    assert 0.5 < cloud._clock.monotonic() - started < 2


def test_the_sdks_own_way_of_logging_in_is_closed(cloud: VerdaCloud) -> None:
    """It has neither deadline nor lock, so nothing may come to use it by accident."""
    for way in (cloud._client._authentication.authenticate, cloud._client._authentication.refresh):
        with pytest.raises(NotImplementedError):
            way()
    assert cloud._client._authentication.is_expired()
