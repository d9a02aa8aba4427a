"""What goes through the door: a JSON object on a line each way."""

import contextlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

LONGEST_LINE = 64 * 1024


class Claim(BaseModel):
    """The machines of an earlier installation are this cluster's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: Literal["claim"] = "claim"
    installation: str = Field(min_length=1, max_length=100)


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


AnyRequest = Request | Claim
ANY_REQUEST: TypeAdapter[AnyRequest] = TypeAdapter(Annotated[AnyRequest, Field(discriminator="command")])


class Reply(BaseModel):
    """What happened, in sentences; or `error`, the name of one of our exceptions, and its message."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    happened: tuple[str, ...] = ()
    error: str | None = None
    message: str = ""


def socket_of(database: Path) -> Path:
    """The socket of the server that writes a database."""
    return database.with_name(database.name + ".sock")


@contextlib.contextmanager
def short_name(path: Path) -> Iterator[str]:
    """The same file under a name that fits: the system takes 107 bytes of a socket's, and directories can be deep."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{directory}/{path.name}"
    finally:
        os.close(directory)


def line_of(message: AnyRequest | Reply) -> bytes:
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
