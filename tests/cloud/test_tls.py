"""The same promises hold over TLS, where production lives."""

import socket
import threading
from collections.abc import Iterator
from datetime import timedelta

import pytest

from app.cloud.verda import VerdaCloud
from app.errors import NotSent, OutcomeUnknown

from .conftest import MakeCloud
from .toy import CERTIFICATE, INSTANCE, ORDER, Reply, Toy, close, drip, hang, ok


@pytest.fixture
def secure() -> Iterator[Toy]:
    """A server with a certificate that nobody trusts by default."""
    server = Toy(tls=True)
    yield server
    server.close()


def trusting(cloud: VerdaCloud) -> VerdaCloud:
    """The client, made to trust the test's certificate."""
    for session in (cloud._transport._session, cloud._transport._fresh):
        session.verify = str(CERTIFICATE)
    return cloud


def test_calls_work_and_reads_keep_their_connection(secure: Toy, make_cloud: MakeCloud) -> None:
    """A handshake per poll would be waste."""
    secure.on("GET", "/instances", ok([]))
    secure.on("POST", "/instances", ok(INSTANCE, 202))
    cloud = trusting(make_cloud(base_url=secure.base_url))
    assert [cloud.list_instances(), cloud.list_instances()] == [[], []]
    assert cloud.create_instance(ORDER) == INSTANCE
    assert len({seen.connection for seen in secure.seen("GET", "/instances")}) == 1
    assert len({seen.connection for seen in secure.all_seen}) == 3


def test_an_unknown_certificate_is_refused_before_anything_is_sent(secure: Toy, make_cloud: MakeCloud) -> None:
    """The operator is told why."""
    with pytest.raises(NotSent, match="certificate verify failed") as raised:
        make_cloud(base_url=secure.base_url).create_instance(ORDER)
    assert raised.value.code == "tls_failed"
    assert secure.all_seen == []


def test_a_handshake_that_never_ends_is_given_up(make_cloud: MakeCloud) -> None:
    """Somebody accepts, and that is all."""
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        cloud = trusting(make_cloud(base_url=f"https://127.0.0.1:{port}/v1", connect_timeout=timedelta(seconds=0.2)))
        with pytest.raises(NotSent) as raised:
            cloud.create_instance(ORDER)
    assert raised.value.code == "tls_failed"


def test_a_dripping_answer_meets_the_deadline(secure: Toy, make_cloud: MakeCloud) -> None:
    """Each byte comes in a record of its own, and in time."""
    secure.on("GET", "/instances", drip(b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n", b"[" + b" " * 399))
    cloud = trusting(make_cloud(base_url=secure.base_url, timeout=timedelta(seconds=0.4)))
    started = cloud._clock.monotonic()
    with pytest.raises(OutcomeUnknown) as raised:
        cloud.list_instances()
    assert raised.value.code == "timeout"
    assert cloud._clock.monotonic() - started < 2


@pytest.mark.parametrize(("reply", "code"), [(hang, "timeout"), (close, "connection_lost")])
def test_no_answer_after_sending_leaves_the_outcome_unknown(
    secure: Toy, make_cloud: MakeCloud, reply: Reply, code: str
) -> None:
    """The stage tells, not the exception, which is the same as for a failed handshake."""
    secure.on("POST", "/instances", reply)
    cloud = trusting(make_cloud(base_url=secure.base_url, timeout=timedelta(seconds=0.5)))
    with pytest.raises(OutcomeUnknown) as raised:
        cloud.create_instance(ORDER)
    assert raised.value.code == code


def test_threads_may_share_a_secure_client(secure: Toy, make_cloud: MakeCloud) -> None:
    """Each has a connection of its own while it needs one."""
    secure.on("GET", "/instances", ok([]))
    cloud = trusting(make_cloud(base_url=secure.base_url, timeout=timedelta(seconds=5)))
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append(cloud.list_instances())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [[]] * 8
