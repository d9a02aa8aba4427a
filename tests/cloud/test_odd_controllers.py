"""Power controllers that do not answer as they should: none of them may hold up another machine."""

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import cast

import pytest

from app.clock import FakeClock
from app.cloud.port import Cloud, Deletion, DeletionAnswer, DeletionResult
from app.cloud.several import SeveralClouds
from app.cloud.webhook import Patience, Placed, PowerSwitch, WebhookCloud, WebhookGroup, instance_type
from app.domain.ids import Mark
from app.domain.machine import Machine, Order
from app.domain.offering import Contract
from app.errors import NotSent, OutcomeUnknown

NAMES = ("box-1", "box-2", "box-3")
SHORT = Patience(hook_s=0.2, listing_s=0.2)
"""Nobody waits in a test."""
ORDER = Order(
    hostname="old-a2b3c4d5",
    instance_type="webhook.old",
    image="none",
    location="box-1",
    contract=Contract.ON_DEMAND,
    description=Mark(cluster="c", installation="i", group="old").text(),
)
ON = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\non"


def id_of(name: str) -> str:
    """The instance id of the machine of that name."""
    return f"webhook:old/{name}@old-{name}"


def deletions(*ids: str) -> list[Deletion]:
    """Deletions of these machines."""
    return [Deletion(instance_id=one, volume_ids=None) for one in ids]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a controller was asked, and with which token."""

    method: str
    path: str
    token: str | None


class Relay(ThreadingHTTPServer):
    """A controller that sends the bytes which `answer` makes of a request, whatever they are."""

    daemon_threads = True

    def __init__(self, answer: Callable[[Asked], bytes]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[Asked] = []

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"


class _Handler(BaseHTTPRequestHandler):
    server: Relay

    def do_POST(self) -> None:
        """As a GET, but with a body."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.do_GET()

    def do_GET(self) -> None:
        """Send the bytes and hang up."""
        asked = Asked(self.command, self.path, self.headers.get("Authorization"))
        self.server.asked.append(asked)
        self.wfile.write(self.server.answer(asked))
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing."""


@contextlib.contextmanager
def relay(answer: Callable[[Asked], bytes]) -> Iterator[Relay]:
    """Such a controller on a free port."""
    with Relay(answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join(10)


def cellar(url: str, patience: Patience | None = None, token_file: Path | None = None) -> WebhookCloud:
    """Three machines behind one controller, all on by the books."""
    switches = {
        name: PowerSwitch(
            name=name,
            scale_up_endpoint=f"{url}/{name}/start",
            scale_down_endpoint=f"{url}/{name}/stop",
            status_endpoint=f"{url}/{name}/status",
            token_file=token_file,
        )
        for name in NAMES
    }
    kind = instance_type("old", cpus=32, memory_gb=Decimal(128), gpus=4)
    placed = [
        Placed(instance_id=id_of(name), instance=f"old-{name}", node_group="old", machine=name, created_at=None)
        for name in NAMES
    ]
    groups = {"old": WebhookGroup(kind=kind, switches=switches)}
    return WebhookCloud(groups, FakeClock(), lambda: placed, patience or Patience())


@dataclass
class Rented:
    """What is asked of a cloud here: lists and deletions. `heard` is shared with whom the test likes."""

    heard: list[str] = field(default_factory=list)
    error: OutcomeUnknown | None = None

    def list_instances(self) -> Sequence[Machine]:
        """One machine."""
        return (Machine(instance_id="rented-1", hostname="h100-a2b3c4d5", status="running"),)

    def delete_instances(self, deletions: Sequence[Deletion]) -> Sequence[DeletionAnswer]:
        """Taken, or the error that was asked for."""
        self.heard.extend(one.instance_id for one in deletions)
        if self.error is not None:
            raise self.error
        return [DeletionAnswer(instance_id=one.instance_id, result=DeletionResult.ACCEPTED) for one in deletions]


def together(rented: Rented, own: WebhookCloud) -> SeveralClouds:
    """Both as one."""
    return SeveralClouds(cast("Cloud", rented), own)


@pytest.mark.parametrize(
    "content",
    [
        b"ON\r\n",
        b"",
        b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n" + b"[" * 60000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\non\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\non",
    ],
    ids=["no status line", "nothing", "deep JSON", "bad chunk", "too many headers"],
)
def test_no_answer_of_a_controller_breaks_a_listing(content: bytes) -> None:
    """Its machine is on for all that is known, and the rented ones are listed as ever."""
    with relay(lambda _: content) as server:
        machines = together(Rented(), cellar(server.url)).list_instances()
    assert [(one.instance_id, one.status) for one in machines] == [
        ("rented-1", "running"),
        (id_of("box-1"), "unknown"),
        (id_of("box-2"), "unknown"),
        (id_of("box-3"), "unknown"),
    ]


def test_bytes_that_are_not_http_are_no_answer_to_a_switch() -> None:
    """Neither on nor off is believed, and both in the words that jobs understand."""
    with relay(lambda _: b"ON\r\n") as server:
        own = cellar(server.url)
        with pytest.raises(NotSent, match=r"box-1 is not switched on: no answer \(BadStatusLine\)"):
            own.create_instance(ORDER)
        (answer,) = own.delete_instances(deletions(id_of("box-1")))
    assert (answer.result, answer.code) == (DeletionResult.REFUSED, "webhook_failed")
    assert answer.message == "box-1 is not switched off: no answer (BadStatusLine)"


@pytest.mark.parametrize("what", ["list", "delete"])
def test_controllers_are_asked_at_the_same_time(what: str) -> None:
    """Each of three answers only once all three were asked."""
    met = threading.Barrier(3, timeout=30)

    def answer(_: Asked) -> bytes:
        met.wait()
        return ON

    with relay(answer) as server:
        own = cellar(server.url, Patience(status_s=60, listing_s=60))
        if what == "list":
            assert [machine.status for machine in own.list_instances()] == ["running"] * 3
        else:
            answers = own.delete_instances(deletions(*map(id_of, NAMES)))
            assert [one.instance_id for one in answers] == [id_of(name) for name in NAMES]
            assert {one.result for one in answers} == {DeletionResult.ACCEPTED}
    assert len(server.asked) == 3


def test_a_controller_that_does_not_answer_is_not_waited_for_longer_than_the_deadline() -> None:
    """Not on, not off, not seen, however long its calls go on."""
    released = threading.Event()

    def answer(_: Asked) -> bytes:
        released.wait(30)
        return ON

    with relay(answer) as server:
        own = cellar(server.url, SHORT)
        assert [machine.status for machine in own.list_instances()] == ["unknown"] * 3
        seen = own.get_instance(id_of("box-2"))
        assert seen is not None
        assert seen.status == "unknown"
        answers = own.delete_instances(deletions(*map(id_of, NAMES)))
        assert {(one.result, one.code) for one in answers} == {(DeletionResult.REFUSED, "webhook_failed")}
        assert answers[0].message.startswith("box-1 is not switched off: no answer")
        with pytest.raises(NotSent, match="box-1 is not switched on: no answer"):
            own.create_instance(ORDER)
        assert not released.is_set()
        released.set()


def test_rented_machines_are_given_back_before_ours_are_switched_off() -> None:
    """They cost by the minute, and what is ours may not answer."""
    heard: list[str] = []

    def answer(asked: Asked) -> bytes:
        heard.append(asked.path)
        return b"ON\r\n"

    with relay(answer) as server:
        both = together(Rented(heard), cellar(server.url))
        answers = both.delete_instances(deletions(id_of("box-1"), "rented-1"))
    assert heard == ["rented-1", "/box-1/stop"]
    assert [(one.instance_id, one.result) for one in answers] == [
        (id_of("box-1"), DeletionResult.REFUSED),
        ("rented-1", DeletionResult.ACCEPTED),
    ]


def test_a_cloud_that_fails_does_not_keep_ours_on() -> None:
    """Its failure is the answer for its own machines only."""
    with relay(lambda _: ON) as server:
        failing = Rented(error=OutcomeUnknown("no answer in time", code="timeout"))
        both = together(failing, cellar(server.url))
        answers = both.delete_instances(deletions("rented-1", id_of("box-1")))
    assert [(one.result, one.code, one.message) for one in answers] == [
        (DeletionResult.REFUSED, "timeout", "no answer in time"),
        (DeletionResult.ACCEPTED, "", ""),
    ]


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_no_success(status: int, tmp_path: Path) -> None:
    """A login page that answers 200 has switched nothing, and a token is for nobody but the endpoint."""
    token = tmp_path / "token"
    token.write_text("hunter2", "utf-8")
    with relay(lambda _: ON) as login:
        moved = f"HTTP/1.1 {status} Moved\r\nLocation: {login.url}/login\r\nContent-Length: 0\r\n\r\n".encode()
        with relay(lambda _: moved) as server:
            own = cellar(server.url, token_file=token)
            (answer,) = own.delete_instances(deletions(id_of("box-1")))
            with pytest.raises(NotSent, match=f"box-1 is not switched on: HTTP {status}, a redirect, which is not"):
                own.create_instance(ORDER)
            seen = own.get_instance(id_of("box-1"))
    assert (answer.result, answer.code) == (DeletionResult.REFUSED, "webhook_failed")
    assert answer.message == (
        f"box-1 is not switched off: HTTP {status}, a redirect, which is not followed: "
        "configure the endpoint that it leads to"
    )
    assert seen is not None
    assert seen.status == "unknown"
    assert {one.token for one in server.asked} == {"Bearer hunter2"}
    assert login.asked == []


def test_what_is_on_or_off_already_is_as_it_was_asked_for() -> None:
    """409: the call is the repeat of one whose answer was lost."""
    with relay(lambda _: b"HTTP/1.1 409 Conflict\r\nContent-Length: 0\r\n\r\n") as server:
        own = cellar(server.url)
        assert own.create_instance(ORDER) == "webhook:old/box-1@old-a2b3c4d5"
        (answer,) = own.delete_instances(deletions(id_of("box-1")))
    assert answer.result is DeletionResult.ACCEPTED


def test_a_machine_that_the_configuration_has_no_more_is_refused_with_the_way_out() -> None:
    """Nobody knows where to switch it, and switched by hand it would stay in the books."""
    (answer,) = cellar("http://127.0.0.1:9").delete_instances(deletions("webhook:old/box-9@old-b2c3d4e5"))
    assert (answer.result, answer.code) == (DeletionResult.REFUSED, "unknown_machine")
    assert answer.message == "the configuration has no machine box-9 in old: put it back until it is switched off"
