import json
import os
import pwd
import re
import signal
import socket
import stat
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from app.admin.client import ask
from app.admin.protocol import Request, socket_of
from app.admin.server import AdminServer
from app.clock import SeededIds
from app.domain.envelope import Event, Recorded
from app.domain.instance.commands import AttemptCreate, ConfirmEnded, RecordCreated
from app.domain.instance.events import Found
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.domain.nodegroup.commands import IncreaseSize
from app.errors import InvalidRequest, NotFound, RuleViolation, Unreachable
from app.ledger.ledger import Ledger
from tests.cli.prompt import answer, run, typed
from tests.store.harness import CA, H100, one_more, opened, rows, start

A, B = "gpu-aaaaaaaa", "gpu-bbbbbbbb"
ME = f"{pwd.getpwuid(os.getuid()).pw_name} (uid {os.getuid()})"


@contextmanager
def served(database: Path) -> Iterator[Ledger]:
    """A ledger with a started installation, and the door to it."""
    with opened(database) as ledger:
        start(ledger)
        server = AdminServer(ledger, SeededIds(1), socket_of(database))
        server.start()
        try:
            yield ledger
        finally:
            server.stop()


def test_an_operators_command_is_recorded_with_who_and_why(tmp_path: Path) -> None:
    """By the kernel's word, not by what the caller says of itself."""
    database = tmp_path / "provider.db"
    with served(database) as ledger:
        told = typed("pause", "gpu", "--reason", "new GPU driver", "--database", database)
        assert told.endswith(f"gpu paused by {ME}: new GPU driver\n")
        with pytest.raises(RuleViolation, match=r"is paused since .* by .*: new GPU driver"):
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        (shown,) = answer("groups", "--database", database)
        assert shown["paused"] == "new GPU driver"
        again = typed("pause", "gpu", "--reason", "me too", "--database", database)
        assert again.endswith("nothing to do: gpu is so already\n")
        typed("resume", "gpu", "--reason", "done", "--database", database)
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    query = "SELECT actor, what FROM v_events WHERE type IN ('nodegroup.paused', 'nodegroup.resumed') ORDER BY position"
    assert rows(database, query) == [
        ("operator", f"gpu paused by {ME}: new GPU driver"),
        ("operator", f"gpu resumed by {ME}: done"),
    ]


def test_draining_shows_what_it_costs_and_asks_first(tmp_path: Path) -> None:
    """F16: what runs on the machines ends with them. A machine at 0.60 an hour, and a wish that costs nothing yet."""
    database = tmp_path / "provider.db"
    with served(database) as ledger:
        ledger.execute(IncreaseSize(node_group="gpu", delta=2, names=(A, B)), CA)
        ledger.execute(AttemptCreate(instance=A), CA)
        ledger.execute(RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED), CA)
        refused = run("drain", "gpu", "--reason", "sold", "--database", database)  # no answer is no
        assert refused.exit_code == 1
        assert re.search(rf"^{A} +provisioning +1H100\.80S\.30V +0\.60 +usd$", refused.output, re.MULTILINE)
        assert (
            "2 instances, 0.60 an hour\nDelete all machines of gpu, with whatever runs on them? [y/N]" in refused.output
        )
        assert ledger.books.target_size("gpu") == 2
        told = typed("drain", "gpu", "--reason", "sold", "--yes", "--no-wait", "--database", database)
        assert ledger.books.target_size("gpu") == 0
    assert told.splitlines()[-4:] == [  # the server, in this very process, logs before it
        f"gpu paused by {ME}: sold",
        "gpu gives back 2 instances: target size 0",
        f"{A} to be deleted (drained)",
        f"{B} no longer wanted, nothing was bought (deleted)",
    ]


@pytest.fixture
def _signals_as_they_were() -> Iterator[None]:
    """A command that waits listens for Ctrl-C, and is a process of its own elsewhere."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals_as_they_were")
def test_draining_waits_for_the_proof_that_a_machine_is_gone(tmp_path: Path) -> None:
    """F16: until then it may cost."""
    database = tmp_path / "provider.db"
    with served(database) as ledger:
        ledger.execute(one_more(A), CA)
        ledger.execute(AttemptCreate(instance=A), CA)
        ledger.execute(RecordCreated(instance=A, instance_id="i-1", found=Found.ANSWERED), CA)

        def prove(recorded: Sequence[Recorded[Event]]) -> None:
            if any(item.event.type == "instance.delete-requested" for item in recorded):
                proof = ConfirmEnded(instance=A, instance_id="i-1", known_by_id=True)
                threading.Timer(0.2, ledger.execute, (proof, CA)).start()

        ledger.subscribe(prove)
        told = typed("drain", "gpu", "--reason", "sold", "--yes", "--database", database)
        assert ledger.books.instances[A].state is InstanceState.GONE
    assert told.endswith(f"{A} is proven gone\n")


def test_draining_a_group_that_nobody_knows_asks_nothing(tmp_path: Path) -> None:
    """A yes to it would be worth nothing."""
    database = tmp_path / "provider.db"
    with served(database):
        result = run("drain", "gup", "--reason", "sold", "--database", database)
    assert result.exit_code == 2
    assert "there is no node group 'gup': known are gpu" in result.output
    assert "[y/N]" not in result.output


def test_refusals_come_back_as_what_they_are(tmp_path: Path) -> None:
    """So that the exit code is the same as anywhere, and nothing has changed."""
    database = tmp_path / "provider.db"
    with served(database) as ledger:
        before = ledger.head.position
        with pytest.raises(NotFound, match="there is no node group 'gpus': known are gpu"):
            ask(socket_of(database), Request(command="pause", node_group="gpus", reason="x"))
        with pytest.raises(InvalidRequest, match="reason must be 1 to 500 characters, has 0"):
            ask(socket_of(database), Request(command="drain", node_group="gpu", reason=" "))
        assert ledger.head.position == before


@pytest.mark.parametrize("sent", [b"", b"{}\n", b"no json\n", b"[" * 70_000, b'{"command": "pause"', b"\xff\xfe\n"])
def test_nonsense_is_answered_and_the_door_stays_open(sent: bytes, tmp_path: Path) -> None:
    """Whoever knocks wrongly keeps nobody else out."""
    database = tmp_path / "provider.db"
    with served(database):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.connect(str(socket_of(database)))
            door.sendall(sent)
            door.shutdown(socket.SHUT_WR)
            reply = json.loads(door.makefile("rb").readline())
        assert reply["error"] == "InvalidRequest"
        assert ask(socket_of(database), Request(command="pause", node_group="gpu", reason="x"))


def test_only_our_own_user_may_open_it_and_nothing_is_left_behind(tmp_path: Path) -> None:
    """Who could open it could give all machines back. A file left by a killed server is in nobody's way."""
    database = tmp_path / "provider.db"
    socket_of(database).write_text("left by a killed server")
    with served(database):
        assert stat.S_IMODE(socket_of(database).stat().st_mode) == 0o600
    assert not socket_of(database).exists()


def test_without_a_server_the_command_says_so(tmp_path: Path) -> None:
    """Exit code 3: what is needed cannot be reached."""
    result = run("pause", "gpu", "--reason", "x", "--database", tmp_path / "provider.db")
    assert isinstance(result.exception, Unreachable)
    assert "start it, or name its --database" in result.exception.message


@pytest.mark.parametrize(
    ("hangs_up", "words"),
    [
        (False, "has not answered yet; it may still do it: `events` shows what was done"),
        (True, "went away before it answered; it may have done it: `events` shows what was done"),
    ],
)
def test_a_server_that_has_the_request_and_does_not_answer_is_there(
    hangs_up: bool,  # noqa: FBT001 - a case
    words: str,
    tmp_path: Path,
) -> None:
    """To start another one would be the wrong thing, and to say that nothing was done might be untrue."""
    path = socket_of(tmp_path / "provider.db")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.bind(str(path))
        door.listen()

        def hear() -> None:
            caller, _ = door.accept()
            with caller, caller.makefile("rb") as lines:
                lines.readline()
                if not hangs_up:
                    lines.readline()  # until the caller gives up

        server = threading.Thread(target=hear)
        server.start()
        with pytest.raises(Unreachable, match=words):
            ask(path, Request(command="pause", node_group="gpu", reason="x"), answer_s=60 if hangs_up else 0.05)
        server.join()


def test_a_path_too_long_for_a_socket_stops_nobody(tmp_path: Path) -> None:
    """The server does its work without the door."""
    directory = tmp_path / ("x" * 120)
    directory.mkdir()
    with served(directory / "provider.db") as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    with pytest.raises(Unreachable):
        ask(socket_of(directory / "provider.db"), Request(command="pause", node_group="gpu", reason="x"))


def test_machines_of_another_tool_are_adopted_after_a_dry_run(tmp_path: Path) -> None:
    """By the beginning of their host names; nothing happens without --yes, and strangers are left alone."""
    database = tmp_path / "provider.db"
    shown = [
        Machine(instance_id=f"id-{name}", hostname=name, status="running", instance_type=kind, location="FIN-01")
        for name, kind in (("old-vm-1", H100.name), ("old-vm-2", "1V100.6V"), ("olde", H100.name))
    ]
    with opened(database) as ledger:
        start(ledger)
        server = AdminServer(ledger, SeededIds(1), socket_of(database), lambda: shown)
        server.start()
        try:
            words = ("adopt", "--hostname-prefix", "old-vm-", "--group", "gpu", "--database", database)
            told = typed(*words)
            assert ledger.books.target_size("gpu") == 0
            typed(*words, "--yes", "--reason", "moving house")
            assert {name for name, one in ledger.books.instances.items() if one.node_group == "gpu"} == {"old-vm-1"}
            assert run("adopt", "--hostname-prefix", "", "--group", "gpu", "--database", database).exit_code != 0
        finally:
            server.stop()
    assert told.splitlines()[-3:] == [
        "would adopt old-vm-1 (id-old-vm-1, 1H100.80S.30V, FIN-01, running, None an hour)",
        (
            "would leave old-vm-2 (id-old-vm-2, 1V100.6V, FIN-01, running, None an hour): "
            "it is a 1V100.6V, the group is of 1H100.80S.30V"
        ),
        "nothing was changed: say --yes to do it",
    ]
    sentence = f"nobody in this log: the machine id-old-vm-1 was taken over by {ME}: moving house."
    assert sentence in typed("explain", "old-vm-1", "--database", database)
    query = "SELECT actor, what FROM v_events WHERE type = 'instance.adopted'"
    assert rows(database, query) == [("operator", "old-vm-1 (id-old-vm-1) found at the cloud and taken into gpu")]
