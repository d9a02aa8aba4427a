"""The operator's side of the door."""

import socket
from pathlib import Path

from pydantic import ValidationError

from app import errors
from app.admin.protocol import LONGEST_LINE, Reply, Request, line_of, object_of
from app.errors import ProviderError, Unreachable

_PATIENCE_S = 30.0


def ask(path: Path, request: Request) -> tuple[str, ...]:
    """Have something done by the server behind this socket; what happened, in sentences.

    Raises:
        Unreachable: there is no server, it is not ours to command, or it does not answer.
        ProviderError: the server refused; the same class as there.
    """
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.settimeout(_PATIENCE_S)
            door.connect(str(path))
            door.sendall(line_of(request))
            with door.makefile("rb") as lines:
                reply = Reply.model_validate(object_of(lines.readline(LONGEST_LINE)))
    except PermissionError as error:
        raise Unreachable(f"{path} is not ours to open: run this as the server's user, or as root") from error
    except OSError as error:
        message = f"no server answers at {path} ({error.strerror or error}): start it, or name its --database"
        raise Unreachable(message) from error
    except (ValueError, ValidationError) as error:
        raise Unreachable(f"what answers at {path} is no server of ours: {error}") from error
    if reply.error is not None:
        raise _refusal(reply)
    return reply.happened


def _refusal(reply: Reply) -> ProviderError:
    kind = getattr(errors, reply.error or "", None)
    if isinstance(kind, type) and issubclass(kind, ProviderError) and kind.__init__ is ProviderError.__init__:
        return kind(reply.message)
    return ProviderError(reply.message)
