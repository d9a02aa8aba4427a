"""The server's side of the door."""

import contextlib
import pwd
import socket
import struct
import threading
from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import assert_never

from pydantic import ValidationError

from app.admin.protocol import (
    ANY_REQUEST,
    LONGEST_LINE,
    Claim,
    Reply,
    Request,
    line_of,
    object_of,
    short_name,
)
from app.clock import Ids
from app.domain.adoption import AdoptMachines, judged
from app.domain.decide import Command
from app.domain.envelope import Cause
from app.domain.machine import Machine
from app.domain.nodegroup.commands import DrainNodeGroup, PauseNodeGroup, ResumeNodeGroup
from app.domain.nodegroup.decide import served_group
from app.domain.startup import ClaimInstallation
from app.errors import InvalidRequest, ProviderError
from app.ledger.ledger import Ledger
from app.log import get_logger

_ACTOR = "operator"
_PATIENCE_S = 5.0
_MOST_TOLD = 200
_CREDENTIALS = struct.Struct("3i")  # pid, uid, gid

_log = get_logger(room="admin")


Machines = Callable[[], Sequence[Machine]]
"""Lists the machines of the cloud's project; raises ProviderError."""


class AdminServer:
    """Listens on a socket file that only our own user (and root) can open. `start` and `stop` may each be called once.

    One request at a time: a person types them, and the ledger takes one command at a time anyway.
    """

    def __init__(self, ledger: Ledger, ids: Ids, path: Path, machines: Machines = tuple) -> None:
        self._ledger = ledger
        self._machines = machines
        self._ids = ids
        self._path = path
        self._socket: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve, name="admin", daemon=True)

    def start(self) -> None:
        """Open the door; without it everything else works, so what keeps it shut is only logged."""
        door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._path.unlink(missing_ok=True)  # a predecessor's: we hold the writer lock
            with short_name(self._path) as name:
                door.bind(name)
            self._path.chmod(0o600)  # before `listen`, so nobody slips in
            door.listen()
        except OSError as error:
            door.close()
            _log.warning("no operator commands: the socket cannot be made", path=str(self._path), error=str(error))
            return
        self._socket = door
        self._thread.start()

    def stop(self) -> None:
        """Close the door, and let the request under way end."""
        door, self._socket = self._socket, None
        if door is None:
            return
        with contextlib.suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)
        door.close()
        self._thread.join(_PATIENCE_S)
        self._path.unlink(missing_ok=True)

    def _serve(self) -> None:
        while (door := self._socket) is not None:
            try:
                caller, _ = door.accept()
            except OSError:
                return  # closed
            with caller, contextlib.suppress(OSError):  # one who hangs up does not get an answer
                caller.settimeout(_PATIENCE_S)
                caller.sendall(line_of(self._answer(caller)))

    def _answer(self, caller: socket.socket) -> Reply:
        try:
            with caller.makefile("rb") as lines:
                request = ANY_REQUEST.validate_python(object_of(lines.readline(LONGEST_LINE)))
        except (ValueError, ValidationError) as error:
            return Reply(error=InvalidRequest.__name__, message=f"not a request: {error}")
        operator = _operator(caller)
        if isinstance(request, Claim):
            reply = carry_out(request, self._ledger, self._ids)
            _log.info("operator command", **request.model_dump(), operator=operator, refused=reply.message)
            return reply
        cause = Cause(actor=_ACTOR, correlation_id=self._ids.token())
        try:
            if request.command == "adopt" and request.dry_run:
                return Reply(happened=self._would_adopt(request))
            recorded = self._ledger.execute(self._command(request, operator), cause)
        except ProviderError as error:
            return Reply(error=type(error).__name__, message=error.message)
        happened = tuple(item.event.sentence for item in recorded)
        _log.info(
            "operator command",
            command=request.command,
            node_group=request.node_group,
            operator=operator,
            reason=request.reason,
            correlation_id=cause.correlation_id,
        )
        return Reply(happened=happened or (f"nothing to do: {request.node_group} is so already",))

    def _command(self, request: Request, operator: str) -> Command:
        if request.command == "adopt":
            return AdoptMachines(
                node_group=request.node_group,
                machines=self._named(request),
                operator=operator,
                reason=request.reason,
            )
        return command_of(request, operator)

    def _named(self, request: Request) -> tuple[Machine, ...]:
        """The machines that the prefix names; an empty one would name every stranger's."""
        if not request.hostname_prefix:
            raise InvalidRequest("a hostname prefix must not be empty: it would name every machine of the project")
        named = (machine for machine in self._machines() if machine.hostname.startswith(request.hostname_prefix))
        return tuple(sorted(named, key=lambda machine: (machine.hostname, machine.instance_id)))

    def _would_adopt(self, request: Request) -> tuple[str, ...]:
        books = self._ledger.books
        group = served_group(books, request.node_group)
        told = []
        for machine, against in islice(judged(self._named(request), group, books), _MOST_TOLD):
            words = f"{machine.hostname} ({machine.instance_id}, {machine.instance_type}, {machine.location}"
            words += f", {machine.status}, {machine.price_per_hour} an hour)"
            told.append(f"would adopt {words}" if against is None else f"would leave {words}: {against}")
        return tuple(told) or (f"no machine's host name begins with {request.hostname_prefix!r}",)


def carry_out(request: Claim, ledger: Ledger, ids: Ids) -> Reply:
    """Have the ledger take an installation's machines over."""
    command = ClaimInstallation(installation_id=request.installation)
    try:
        recorded = ledger.execute(command, Cause(actor=_ACTOR, correlation_id=ids.token()))
    except ProviderError as error:
        return Reply(error=type(error).__name__, message=error.message)
    happened = tuple(item.event.sentence for item in recorded)
    return Reply(happened=happened or (f"nothing to do: {request.installation} is so already",))


def command_of(request: Request, operator: str) -> Command:
    """The command that a request stands for."""
    match request.command:
        case "pause":
            return PauseNodeGroup(node_group=request.node_group, operator=operator, reason=request.reason)
        case "resume":
            return ResumeNodeGroup(node_group=request.node_group, operator=operator, reason=request.reason)
        case "drain":
            return DrainNodeGroup(node_group=request.node_group, operator=operator, reason=request.reason)
        case "adopt":
            raise InvalidRequest("machines are adopted by the server, which knows them")
        case _:
            assert_never(request.command)


def _operator(caller: socket.socket) -> str:
    """Who is at the other end, by the kernel's word."""
    raw = caller.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    _, uid, _ = _CREDENTIALS.unpack(raw)
    try:
        return f"{pwd.getpwuid(uid).pw_name} (uid {uid})"
    except KeyError:
        return f"uid {uid}"
