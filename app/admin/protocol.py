"""What goes through the door: a JSON object on a line each way."""

import json
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

LONGEST_LINE = 64 * 1024


class Request(BaseModel):
    """What an operator wants done to a node group, and why.

    To adopt: machines whose host name begins with `hostname_prefix`; a dry run only says what would happen.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Literal["pause", "resume", "drain", "adopt"]
    node_group: str
    reason: str
    hostname_prefix: str = ""
    dry_run: bool = True


class Reply(BaseModel):
    """What happened, in sentences; or `error`, the name of one of our exceptions, and its message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    happened: tuple[str, ...] = ()
    error: str | None = None
    message: str = ""


def socket_of(database: Path) -> Path:
    """The socket of the server that writes a database."""
    return database.with_name(database.name + ".sock")


def line_of(message: Request | Reply) -> bytes:
    """A message as it is sent."""
    return message.model_dump_json().encode() + b"\n"


def object_of(line: bytes) -> Any:
    """What a line holds.

    Raises:
        ValueError: it is no JSON, or there is no end to it.
    """
    if not line.endswith(b"\n"):
        raise ValueError("the line does not end")
    return json.loads(line)
