"""Whatever the API answers: a value or one of our own errors, and nothing else."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.clock import FakeClock
from app.cloud.ratelimit import parse_ratelimit
from app.cloud.verda import decode
from app.cloud.verda.outcome import failure_of, retry_after
from app.cloud.verda.transport import Answer
from app.cloud.verda.words import LONGEST_MESSAGE, printable
from app.errors import CloudError, NotSent, OutcomeUnknown

from .conftest import MakeCloud
from .test_reading import H100, VOLUME_JSON
from .toy import INSTANCE, ORDER, Toy, instance, written

NOW = datetime(2026, 1, 5, tzinfo=UTC)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["1e99999", "NaN", "-0"])
)
JSON = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)
READERS: dict[str, tuple[Callable[[decode.Entry], object], dict[str, object]]] = {
    "machine": (decode.machine, instance()),
    "type": (decode.instance_type, H100),
    "volume": (decode.volume, {**VOLUME_JSON, "instances": []}),
    "stock": (decode.stock, {"location_code": "FIN-01", "availabilities": ["CPU.4V.16G"]}),
    "location": (decode.location_code, {"code": "FIN-01"}),
    "image": (decode.image_name, {"image_type": "ubuntu-24.04"}),
    "balance": (decode.balance, {"amount": 1, "currency": "usd"}),
}


@given(body=st.binary())
def test_any_bytes_are_read_or_refused(body: bytes) -> None:
    """Also as an id: what passes has the shape of one."""
    for read in (decode.value, decode.entry, lambda raw: decode.readable(raw, decode.machine)):
        with suppress(decode.Unreadable):
            read(body)
    with suppress(decode.Unreadable):
        assert len(decode.new_id(body)) == 36


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=50)
@given(data=st.data())
def test_any_value_in_any_field_is_read_or_refused(name: str, data: st.DataObject) -> None:
    """One field odd, the others as documented."""
    read, sound = READERS[name]
    field = data.draw(st.sampled_from(sorted(sound)))
    odd = json.dumps([{**sound, field: data.draw(JSON)}]).encode()
    with suppress(decode.Unreadable):
        decode.complete(odd, read)


@given(
    status=st.integers(200, 599),
    body=JSON | st.fixed_dictionaries({}, optional={"code": JSON, "message": JSON}),
    headers=st.dictionaries(st.sampled_from(["Retry-After", "RateLimit"]), st.text()),
    creating=st.booleans(),
)
def test_any_answer_is_a_success_or_one_of_our_errors(
    status: int, body: object, headers: dict[str, str], *, creating: bool
) -> None:
    """With a message that fits into a log."""
    answer = Answer(status=status, headers=headers, body=json.dumps(body).encode())
    failure = failure_of(answer, creating=creating, now=NOW, redact=str)
    assert (failure is None) == (200 <= status < 300)
    if isinstance(failure, CloudError):
        assert failure.code
        assert 0 < len(failure.message) <= LONGEST_MESSAGE
        assert failure.message.isprintable()


GOOD = b'HTTP/1.1 202 Accepted\r\nRateLimit: "project";r=486;t=37\r\nContent-Length: 36\r\n\r\n' + INSTANCE.encode()
CHUNKED = b"HTTP/1.1 202 Accepted\r\nTransfer-Encoding: chunked\r\n\r\n24\r\n" + INSTANCE.encode() + b"\r\n0\r\n\r\n"
NOISE = (b"\r\n", b"\n", b"\x00", b": ", b"-1", b"9" * 20, b"Content-Length: 3\r\n", b"Content-Encoding: gzip\r\n")


def garbled(good: bytes, chance: random.Random) -> bytes:
    """An answer with a few bytes changed, left out, repeated or put in."""
    answer = bytearray(good)
    for _ in range(chance.randint(1, 5)):
        place, length = chance.randrange(len(answer)), chance.randint(0, 8)
        answer[place : place + length] = chance.choice((*NOISE, b"", chance.randbytes(1), bytes(answer[:length])))
    return bytes(answer)


@pytest.mark.parametrize("good", [GOOD, CHUNKED], ids=["plain", "chunked"])
def test_no_garbled_answer_gets_past_the_closed_set_of_outcomes(toy: Toy, make_cloud: MakeCloud, good: bytes) -> None:
    """Anything else would look like a mistake of ours, and the machine would be forgotten."""
    chance = random.Random(20260105)  # noqa: S311 - reproducible on purpose
    cloud = make_cloud(clock=(clock := FakeClock()), wait=clock.advance, breaker_threshold=1000)
    outcomes: set[type[CloudError]] = set()
    for _ in range(200):
        clock.advance(60)
        toy.on("POST", "/instances", written(garbled(good, chance)))
        try:
            assert len(cloud.create_instance(ORDER)) == len(INSTANCE)
        except CloudError as failure:
            outcomes.add(type(failure))
    assert OutcomeUnknown in outcomes
    assert NotSent not in outcomes


@given(words=st.text() | st.from_regex(r"Mon, [0-9]{1,3} Jan [0-9]{1,20} 00:00:30 ([+-][0-9]{1,20}|GMT)"))
def test_any_header_is_understood_or_left_out(words: str) -> None:
    """They come from whatever stands between us."""
    delay = retry_after({"Retry-After": words}, NOW)
    assert delay is None or delay >= timedelta()
    assert all(left >= 0 and reset >= 0 for left, reset in parse_ratelimit(words).values())


@given(words=st.text(max_size=2000))
def test_any_words_become_one_short_line(words: str) -> None:
    """Nothing in them may move a terminal's cursor."""
    line = printable(words)
    assert len(line) <= LONGEST_MESSAGE
    assert line.isprintable()
