"""What a fault is: which requests it matches, how often it fires, and what it does to them."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from app.simulator.steer import Steer


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Phase(StrEnum):
    """When a fault strikes: before the request is looked at, before or after it took effect, or on a good answer.

    `after_commit` waits for a request that changed something, `response` for one that was answered below 400.
    """

    ACCEPT = "accept"
    BEFORE_COMMIT = "before_commit"
    AFTER_COMMIT = "after_commit"
    RESPONSE = "response"


class Match(_Model):
    """Which requests. Everything given must hold; `path` and the values of `body` are regular expressions."""

    method: str | None = None
    path: str = ".*"
    body: dict[str, str] = Field(default_factory=dict, description="JSON field of the request → pattern of its value")
    client: str | None = Field(default=None, description="client id behind the request's token")
    younger_than_s: float | None = Field(
        default=None, description="only when the instance in the path was created less than so many seconds ago"
    )


class Hang(_Model):
    """Never answer; the connection is closed after so many real seconds."""

    kind: Literal["hang"] = "hang"
    seconds: float = 3600.0


class Delay(_Model):
    """Answer, but so many real seconds later."""

    kind: Literal["delay"] = "delay"
    seconds: float = 5.0


class Reset(_Model):
    """Break the connection with a TCP reset."""

    kind: Literal["reset"] = "reset"


class Close(_Model):
    """Close the connection without a byte."""

    kind: Literal["close"] = "close"


class Truncate(_Model):
    """Send only the first bytes of the body; without a length the client takes them for all of it."""

    kind: Literal["truncate"] = "truncate"
    bytes: int = 9
    with_length: bool = True


class Drip(_Model):
    """Send the answer in small pieces."""

    kind: Literal["drip"] = "drip"
    bytes: int = 2
    interval_s: float = 0.2


class Say(_Model):
    """Answer with this instead. `json_body` wins over `text`."""

    kind: Literal["say"] = "say"
    status: int
    text: str = ""
    json_body: JsonValue = None
    content_type: str = "text/html"
    headers: dict[str, str] = Field(default_factory=dict)


class ReplaceBody(_Model):
    """Keep the status and put this in the body; `{body}` stands for what was there."""

    kind: Literal["replace_body"] = "replace_body"
    text: str
    content_type: str = "application/json"


class Patch(_Model):
    """One change to a JSON answer. Path elements are keys, indexes, `key=value` of list elements, or `*` for all."""

    op: Literal["set", "remove"]
    path: tuple[str, ...]
    value: JsonValue = None


class Mutate(_Model):
    """Change the JSON of the answer."""

    kind: Literal["mutate"] = "mutate"
    patches: tuple[Patch, ...]


class Redirect(_Model):
    """Answer with a redirect."""

    kind: Literal["redirect"] = "redirect"
    location: str
    status: int = 302


class Reshape(_Model):
    """Change a list of instances as a whole.

    `hole` leaves one out (`instance_id`, or one drawn per answer), `stale` shows the list of `amount` seconds ago,
    `huge` adds `amount` strangers' objects.
    """

    kind: Literal["reshape"] = "reshape"
    how: Literal["empty", "hole", "duplicate", "reverse", "stale", "huge"]
    amount: float = 30.0
    instance_id: str | None = None


class Bend(_Model):
    """Let the request through, but steer what the world does with it."""

    kind: Literal["bend"] = "bend"
    steer: Steer


Action = Annotated[
    Hang | Delay | Reset | Close | Truncate | Drip | Say | ReplaceBody | Mutate | Redirect | Reshape | Bend,
    Field(discriminator="kind"),
]


class Fault(_Model):
    """One thing that will go wrong. The first matching fault in order of creation strikes."""

    match: Match = Match()
    skip: int = Field(default=0, ge=0, description="matches to let pass first")
    times: int = Field(default=1, ge=-1, description="how often to fire; -1 until removed")
    probability: float = Field(default=1.0, ge=0, le=1, description="chance of each match after the skipped ones")
    per_path: bool = Field(default=False, description="whether skip and times count for every path on its own")
    phase: Phase
    action: Action
    name: str = Field(default="", description="the preset it came from, for the logs")


@dataclass(slots=True, kw_only=True)
class FaultRecord:
    """A fault in force, with its counts; `paths` holds [matched, fired] per path for `per_path` faults."""

    id: str
    fault: Fault
    matched: int = 0
    fired: int = 0
    paths: dict[str, tuple[int, int]] = field(default_factory=dict)
