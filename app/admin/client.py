"""The operator's side of the door."""

import socket
from pathlib import Path

from pydantic import ValidationError

from app import errors
from app.admin.protocol import LONGEST_LINE, AnyRequest, Claim, Reply, line_of, object_of, short_name, socket_of
from app.admin.server import carry_out
from app.clock import Clock, Ids
from app.errors import ProviderError, Unreachable
from app.ledger.ledger import open_ledger

_PATIENCE_S = 30.0
_ANSWER_S = 180.0
"""Longer than a server may take that asks the cloud first (`verda.timeout`), behind one other request."""

_ENDED = "the server at {path} went away before it answered; it may have done it: `events` shows what was done"


def ask(path: Path, request: AnyRequest, answer_s: float = _ANSWER_S) -> tuple[str, ...]:
    """Have something done by the server behind this socket; what happened, in sentences.

    Raises:
        Unreachable: there is no server, it is not ours to command, or it does not answer in time.
        ProviderError: the server refused; the same class as there.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door, short_name(path) as name:
            door.settimeout(_PATIENCE_S)
            door.connect(name)
            door.sendall(line_of(request))
            door.settimeout(answer_s)
            reply = _reply(door, path)
    except PermissionError as error:
        raise Unreachable(f"{path} is not ours to open: run this as the server's user, or as root") from error
    except OSError as error:
        message = f"no server answers at {path} ({error.strerror or error}): start it, or name its --database"
        raise Unreachable(message) from error
    if reply.error is not None:
        raise _refusal(reply)
    return reply.happened


def _reply(door: socket.socket, path: Path) -> Reply:
    """From here on the server has the request, so that without an answer nobody knows whether it is carried out."""
    try:
        with door.makefile("rb") as lines:
            line = lines.readline(LONGEST_LINE)
    except TimeoutError as error:
        message = f"the server at {path} has not answered yet; it may still do it: `events` shows what was done"
        raise Unreachable(message) from error
    except OSError as error:
        raise Unreachable(_ENDED.format(path=path)) from error
    if not line:
        raise Unreachable(_ENDED.format(path=path))
    try:
        return Reply.model_validate(object_of(line))
    except (ValueError, ValidationError) as error:
        raise Unreachable(f"what answers at {path} is no server of ours: {error}") from error


def claim(
    database: Path, installation: str, clock: Clock, ids: Ids, trusted_networks: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Take an installation's machines over: through the server, or in this very process where none runs.

    `trusted_networks` are network file systems that the operator answers for.

    Raises:
        RuleViolation: no machine of that installation was seen.
        StoreError: the database is held by a process that cannot be asked, or cannot be used.
    """
    request = Claim(installation=installation)
    if _is_open(socket_of(database)):
        return ask(socket_of(database), request)
    ledger = open_ledger(database, clock, "an operator's command", trusted_networks)
    try:
        reply = carry_out(request, ledger, ids)
    finally:
        ledger.close()
    if reply.error is not None:
        raise _refusal(reply)
    return reply.happened


def _is_open(path: Path) -> bool:
    """Somebody listens. What a killed server left does not answer."""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door, short_name(path) as name:
            door.settimeout(_PATIENCE_S)
            door.connect(name)
    except (FileNotFoundError, ConnectionRefusedError):
        return False
    except OSError:
        return True  # somebody, and `ask` says what is the matter
    return True


def _refusal(reply: Reply) -> ProviderError:
    kind = getattr(errors, reply.error or "", None)
    if isinstance(kind, type) and issubclass(kind, ProviderError) and kind.__init__ is ProviderError.__init__:
        return kind(reply.message)
    return ProviderError(reply.message)
