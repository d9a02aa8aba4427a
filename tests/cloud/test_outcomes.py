"""One row per thing that can go wrong, and what each proves about an order."""

import ssl
from collections.abc import Callable
from datetime import timedelta

import pytest

from app.cli.ports import free_port
from app.cloud.verda import VerdaCloud
from app.cloud.verda.wire import resolve
from app.domain.offering import Contract
from app.errors import CloudError, NoCapacity, NotSent, OutcomeUnknown, Rejected, Throttled

from .conftest import MakeCloud
from .toy import (
    INSTANCE,
    ORDER,
    SECRET,
    Reply,
    Toy,
    close,
    cut,
    deaf_port,
    drip,
    error,
    grant,
    hang,
    html,
    later,
    nothing,
    ok,
    raw,
    reset,
    written,
)

HEAD = b"HTTP/1.1 202 Accepted\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"

# What the API itself refuses in its own words was not done; everything else may have been.
JUDGED: dict[str, tuple[Reply, type[CloudError], str, int | None]] = {
    "bad request": (error(400, "invalid_request", "Invalid ssh-key ID"), Rejected, "invalid_request", 400),
    "no funds": (error(402, "insufficient_funds", "Balance too low"), Rejected, "insufficient_funds", 402),
    "quota": (error(403, "forbidden_action", "Quota exceeded"), Rejected, "forbidden_action", 403),
    "no scope": (error(403, "forbidden_action", "Insufficient scope"), Rejected, "insufficient_scope", 403),
    "no scope, no code": (ok({"message": "Insufficient scope"}, 403), Rejected, "insufficient_scope", 403),
    "not found": (error(404, "not_found", "No such type"), Rejected, "not_found", 404),
    "refusal without code": (ok({"message": "no"}, 400), Rejected, "http_400", 400),
    "refusal without message": (ok({"code": "invalid_request"}, 400), Rejected, "invalid_request", 400),
    "throttled": (error(429, "rate_limit_exceeded", "Slow down"), Throttled, "rate_limit_exceeded", 429),
    "throttled, short text": (raw(b"Rate limit!", 429, Retry_After="7"), Throttled, "rate_limit_exceeded", 429),
    "throttled, page": (html(429), Throttled, "rate_limit_exceeded", 429),
    "throttled, cut body": (cut(b"Rate", 11, 429), Throttled, "rate_limit_exceeded", 429),
    "no stock": (error(503, "service_unavailable", "No capacity available"), NoCapacity, "service_unavailable", 503),
    "503 of a gateway": (html(503), OutcomeUnknown, "http_503", 503),
    "503 with another code": (error(503, "maintenance", "Later"), OutcomeUnknown, "maintenance", 503),
    "503 cut short": (cut(b'{"code":"service_unav', 60, 503), OutcomeUnknown, "http_503", 503),
    "server error": (error(500, "server_error", "Oops"), OutcomeUnknown, "server_error", 500),
    "empty server error": (raw(b"", 500), OutcomeUnknown, "http_500", 500),
    "bad gateway": (html(502), OutcomeUnknown, "http_502", 502),
    "gateway timeout": (html(504), OutcomeUnknown, "http_504", 504),
    "a status of no RFC": (html(520), OutcomeUnknown, "http_520", 520),
    "refusal in HTML": (html(403), OutcomeUnknown, "http_403", 403),
    "refusal as list": (ok([{"code": "invalid_request"}], 400), OutcomeUnknown, "http_400", 400),
    "refusal as string": (ok("code message", 400), OutcomeUnknown, "http_400", 400),
    "refusal as null": (ok(None, 400), OutcomeUnknown, "http_400", 400),
    "refusal as number": (ok(7, 400), OutcomeUnknown, "http_400", 400),
    "refusal as empty object": (ok({}, 400), OutcomeUnknown, "http_400", 400),
    "refusal of numbers": (ok({"code": 1, "message": 2}, 400), OutcomeUnknown, "http_400", 400),
    "refusal without end": (raw(b"[" * 60_000, 400), OutcomeUnknown, "http_400", 400),
    "refusal of a megabyte": (raw(b'{"code":"' + b"x" * 1_000_000 + b'"}', 400), OutcomeUnknown, "http_400", 400),
    "conflict": (error(409, "conflict", "Exists"), OutcomeUnknown, "conflict", 409),
    "teapot": (error(418, "teapot", "Short"), OutcomeUnknown, "teapot", 418),
    "moved": (raw(b"", 302, Location="/v1/instances"), OutcomeUnknown, "http_302", 302),
    "moved with method": (raw(b"", 307, Location="/v1/instances"), OutcomeUnknown, "http_307", 307),
    "not modified": (raw(b"", 304), OutcomeUnknown, "http_304", 304),
    "hang": (hang, OutcomeUnknown, "timeout", None),
    "close": (close, OutcomeUnknown, "connection_lost", None),
    "reset": (reset, OutcomeUnknown, "connection_lost", None),
    "not HTTP": (written(b"garbage\r\n\r\n"), OutcomeUnknown, "connection_lost", None),
    "dripping head": (drip(b"HTTP/1.1 2", b"02 Accepted\r\n" + b"X: y\r\n" * 50), OutcomeUnknown, "timeout", None),
    "dripping body": (drip(HEAD + b"Content-Length: 500\r\n\r\n", b" " * 500), OutcomeUnknown, "timeout", 202),
    "hanging body": (drip(HEAD + b"Content-Length: 36\r\n\r\n", b" ", 5.0), OutcomeUnknown, "timeout", 202),
    "id cut short, length known": (cut(INSTANCE[:9].encode(), 36, 202), OutcomeUnknown, "answer_cut_short", 202),
    "id cut short, length unknown": (cut(INSTANCE[:9].encode(), None, 202), OutcomeUnknown, "unreadable_answer", 202),
    "id badly packed": (raw(b"not gzip", 202, Content_Encoding="gzip"), OutcomeUnknown, "answer_cut_short", 202),
    "number beyond measure": (raw(b"5e99999999999999999999", 202), OutcomeUnknown, "unreadable_answer", 202),
    "negative chunk": (written(CHUNKED + b"-5\r\n"), OutcomeUnknown, "answer_cut_short", 202),
    "no id": (raw(b"", 202), OutcomeUnknown, "unreadable_answer", 202),
    "no content": (nothing, OutcomeUnknown, "unreadable_answer", 204),
    "null id": (ok(None, 202), OutcomeUnknown, "unreadable_answer", 202),
    "id of another shape": (raw(b"i-0123456789", 202), OutcomeUnknown, "unreadable_answer", 202),
    "two ids": (raw(f"{INSTANCE} {INSTANCE}".encode(), 202), OutcomeUnknown, "unreadable_answer", 202),
    "page instead of id": (html(200), OutcomeUnknown, "unreadable_answer", 200),
    "object without id": (ok({"instance": INSTANCE}, 202), OutcomeUnknown, "unreadable_answer", 202),
    "list of ids": (ok([INSTANCE], 202), OutcomeUnknown, "unreadable_answer", 202),
}  # fmt: skip


@pytest.mark.parametrize(("reply", "outcome", "code", "status"), JUDGED.values(), ids=JUDGED.keys())
def test_an_order_that_did_not_succeed(
    toy: Toy, make_cloud: MakeCloud, reply: Reply, outcome: type[CloudError], code: str, status: int | None
) -> None:
    """Whatever happens there is one POST and no look-up: the SDK's own look-up loses the ids of paid machines."""
    toy.on("POST", "/instances", reply)
    with pytest.raises(CloudError) as raised:
        make_cloud(timeout=timedelta(seconds=0.4 if code == "timeout" else 5)).create_instance(ORDER)
    assert (type(raised.value), raised.value.code, raised.value.status) == (outcome, code, status)
    assert len(toy.seen("POST", "/instances")) == 1
    assert {(seen.method, seen.path) for seen in toy.all_seen} == {
        ("POST", "/v1/oauth2/token"),
        ("POST", "/v1/instances"),
    }


IDS = {
    "plain": raw(INSTANCE.encode(), 202),
    "quoted": ok(INSTANCE, 202),
    "object": ok({"id": INSTANCE, "status": "new"}, 202),
    "newline": raw(f"{INSTANCE}\n".encode(), 202),
    "spaces": raw(f" \r\n {INSTANCE} \t".encode(), 202),
    "byte order mark": raw(b"\xef\xbb\xbf" + INSTANCE.encode(), 202),
    "quoted after byte order mark": raw(b"\xef\xbb\xbf" + f'"{INSTANCE}"'.encode(), 202),
    "quoted with newline inside": ok(f"{INSTANCE}\n", 202),
    "length unknown": cut(INSTANCE.encode(), None, 202),
    "200 instead of 202": raw(INSTANCE.encode(), 200),
    "slow but in time": later(0.05, raw(INSTANCE.encode(), 202)),
    "dripping but in time": drip(HEAD + b"Content-Length: 36\r\n\r\n", INSTANCE.encode(), 0.001),
}


@pytest.mark.parametrize("reply", IDS.values(), ids=IDS.keys())
def test_an_id_is_found_in_every_form(toy: Toy, cloud: VerdaCloud, reply: Reply) -> None:
    """Documented quoted, sent plain, seen as an object: an id not understood is a machine paid for and not known."""
    toy.on("POST", "/instances", reply)
    assert cloud.create_instance(ORDER) == INSTANCE


def test_retry_after_is_handed_on(toy: Toy, cloud: VerdaCloud) -> None:
    """Whoever schedules the next attempt needs it."""
    toy.on("POST", "/instances", raw(b"Rate limit!", 429, Retry_After="7"))
    with pytest.raises(Throttled) as raised:
        cloud.create_instance(ORDER)
    assert raised.value.retry_after == timedelta(seconds=7)


def test_a_refused_connection_proves_that_nothing_was_sent(make_cloud: MakeCloud) -> None:
    """`requests` raises the same exception for a reset after sending."""
    _assert_not_sent(make_cloud(base_url=f"http://127.0.0.1:{free_port()}/v1"), "connection_failed")


def test_a_connection_that_is_never_made_proves_that_nothing_was_sent(make_cloud: MakeCloud) -> None:
    """As with a firewall that drops packets."""
    with deaf_port() as port:
        options = {"base_url": f"http://127.0.0.1:{port}/v1", "connect_timeout": timedelta(seconds=0.2)}
        _assert_not_sent(make_cloud(**options), "connection_failed")


def test_a_name_that_is_not_resolved_proves_that_nothing_was_sent(make_cloud: MakeCloud) -> None:
    """As with a typing mistake or a dead name server."""
    _assert_not_sent(make_cloud(base_url=f"http://{'a' * 64}.invalid/v1"), "name_not_resolved")


def test_a_failed_handshake_proves_that_nothing_was_sent(toy: Toy, make_cloud: MakeCloud) -> None:
    """As with an unknown certificate authority."""
    _assert_not_sent(make_cloud(base_url=f"https://127.0.0.1:{toy.port}/v1"), "tls_failed")
    assert toy.all_seen == []


def _assert_not_sent(cloud: VerdaCloud, code: str) -> None:
    for call in (lambda: cloud.create_instance(ORDER), cloud.list_instances):
        with pytest.raises(NotSent) as raised:
            call()
        assert raised.value.code == code


def test_a_name_server_that_does_not_answer_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, toy: Toy) -> None:
    """The operating system's resolver has no timeout that a caller could set."""
    monkeypatch.setattr("socket.getaddrinfo", lambda *_args, **_options: [toy.released.wait(5)])
    with pytest.raises(TimeoutError, match="was not resolved within"):
        resolve("api.verda.com", 443, 0.05)


def test_the_deadline_holds_from_the_first_byte_to_the_last(toy: Toy, make_cloud: MakeCloud) -> None:
    """F63: read timeouts start again with every byte, so a dripping body would pass any of them."""
    cloud = make_cloud(timeout=timedelta(seconds=0.3), silence_timeout=timedelta(seconds=0.2))
    toy.on("GET", "/instances", drip(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n", b"[" + b" " * 399))
    started = cloud._clock.monotonic()
    with pytest.raises(OutcomeUnknown):
        cloud.list_instances()
    assert cloud._clock.monotonic() - started < 2


def test_silence_ends_a_call_before_its_deadline(toy: Toy, make_cloud: MakeCloud) -> None:
    """F63: a peer that is gone without a word is noticed sooner than a slow one."""
    cloud = make_cloud(timeout=timedelta(seconds=4), silence_timeout=timedelta(seconds=0.2))
    toy.on("GET", "/instances", hang)
    started = cloud._clock.monotonic()
    with pytest.raises(OutcomeUnknown) as raised:
        cloud.list_instances()
    assert raised.value.code == "timeout"
    assert cloud._clock.monotonic() - started < 3


def test_an_answer_without_end_is_not_read_to_its_end(toy: Toy, make_cloud: MakeCloud) -> None:
    """Nobody's answer may fill our memory."""
    toy.on("GET", "/instances", raw(b"[" + b" " * 300_000 + b"]"))
    with pytest.raises(OutcomeUnknown) as raised:
        make_cloud(answer_bytes=100_000).list_instances()
    assert raised.value.code == "answer_too_large"


def test_a_redirect_is_not_followed(toy: Toy, cloud: VerdaCloud) -> None:
    """A followed POST turns into a GET whose page passes for an id."""
    toy.on("POST", "/instances", raw(b"", 302, Location=f"{toy.base_url}/elsewhere"))
    toy.on("GET", "/elsewhere", raw(INSTANCE.encode()))
    with pytest.raises(OutcomeUnknown):
        cloud.create_instance(ORDER)
    assert toy.seen("GET", "/elsewhere") == []


READS: dict[str, Callable[[VerdaCloud], object]] = {
    "list": VerdaCloud.list_instances,
    "types": VerdaCloud.instance_types,
    "availability": lambda cloud: cloud.availability(Contract.SPOT),
    "locations": VerdaCloud.locations,
    "images": VerdaCloud.images,
    "volumes": VerdaCloud.volumes,
    "balance": VerdaCloud.balance,
}
PATHS = {
    "list": "/instances",
    "types": "/instance-types",
    "availability": "/instance-availability",
    "locations": "/locations",
    "images": "/images",
    "volumes": "/volumes",
    "balance": "/balance",
}


@pytest.mark.parametrize("name", READS)
@pytest.mark.parametrize(
    ("reply", "outcome"),
    [
        (error(403, "forbidden_action", "Insufficient scope"), Rejected),
        (error(503, "service_unavailable", "Later"), OutcomeUnknown),
        (raw(b"Rate limit!", 429), Throttled),
        (html(502), OutcomeUnknown),
        (html(200), OutcomeUnknown),
        (ok(None), OutcomeUnknown),
        (ok("text"), OutcomeUnknown),
        (ok([], 206), OutcomeUnknown),
        (raw(b"", 200), OutcomeUnknown),
        (raw(b'[{"id": NaN}]', 200), OutcomeUnknown),
        (raw(b"\xff\xfe", 200), OutcomeUnknown),
        (ok([{}]), OutcomeUnknown),
        (ok([7]), OutcomeUnknown),
        (close, OutcomeUnknown),
    ],
)
def test_no_failure_passes_for_an_empty_answer(
    toy: Toy, cloud: VerdaCloud, name: str, reply: Reply, outcome: type[CloudError]
) -> None:
    """An account that cannot be read is not an empty account."""
    toy.on("GET", PATHS[name], reply)
    with pytest.raises(CloudError) as raised:
        READS[name](cloud)
    assert type(raised.value) is outcome


def test_the_apis_words_are_shown_in_one_short_line(toy: Toy, cloud: VerdaCloud) -> None:
    """They end in terminals, logs and events."""
    toy.on("POST", "/instances", error(400, "bad\x1b[31m", "line\nbreak \x1b[31mred\x07 " + "x" * 1000))
    with pytest.raises(Rejected) as raised:
        cloud.create_instance(ORDER)
    assert raised.value.message.startswith("line break \N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER} xxx")
    assert len(raised.value.message) == 300
    assert raised.value.code.isprintable()


def test_secrets_that_the_api_repeats_are_taken_out(toy: Toy, cloud: VerdaCloud) -> None:
    """Error messages like to quote what they complain about."""
    toy.on("POST", "/oauth2/token", grant("the-token"))
    toy.on("POST", "/instances", error(400, "invalid_request", f"token the-token of {SECRET} is odd"))
    with pytest.raises(Rejected) as raised:
        cloud.create_instance(ORDER)
    assert raised.value.message == "token *** of *** is odd"


@pytest.mark.parametrize("instance_id", ["", "..", "a/b", "a b", "a?b", "a%2Fb", "a\nb"])
def test_an_id_that_could_leave_its_path_is_not_sent(toy: Toy, cloud: VerdaCloud, instance_id: str) -> None:
    """Deleting one thing must never turn into deleting another."""
    with pytest.raises(NotSent) as raised:
        cloud.get_instance(instance_id)
    assert raised.value.code == "invalid_path"
    assert toy.all_seen == []


def test_certificates_are_checked() -> None:
    """Nothing here may switch it off."""
    cloud = VerdaCloud(client_id="client", client_secret=SECRET)
    assert cloud._transport._session.verify is True
    assert ssl.create_default_context().verify_mode is ssl.CERT_REQUIRED
