"""What every event has in common, and the envelope the log puts around it."""

from abc import abstractmethod
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict

from app.errors import ProviderError


class Event(BaseModel):
    """A fact: something that was decided or seen. Never refused, never edited, no behaviour.

    `type` is the stable name in the log; `schema_version` counts incompatible changes of the payload; `words` is the
    sentence people read in `v_events`, with `{field}` for a top-level field of the payload.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    type: ClassVar[str]
    schema_version: ClassVar[int] = 1
    words: ClassVar[str]

    @property
    def sentence(self) -> str:
        """The fact in words, as `v_events` tells it."""
        fields = {name: "-" if value is None else value for name, value in self.model_dump(mode="json").items()}
        return self.words.format_map(fields)

    @property
    @abstractmethod
    def stream(self) -> str:
        """Name of the stream the event belongs to: `<category>-<id>`, the category without a hyphen."""
        raise NotImplementedError  # pragma: no cover - every category overrides it


class NodeGroupEvent(Event):
    """An event of the stream `nodegroup-<name>`."""

    node_group: str

    @property
    def stream(self) -> str:
        """`nodegroup-<name>`."""
        return f"nodegroup-{self.node_group}"


class InstanceEvent(Event):
    """An event of the stream `instance-<name>`; the group is repeated so that the log can be filtered by it."""

    instance: str
    node_group: str

    @property
    def stream(self) -> str:
        """`instance-<name>`."""
        return f"instance-{self.instance}"


class CloudEvent(Event):
    """An event of the one stream `cloud`."""

    @property
    def stream(self) -> str:
        """Always `cloud`."""
        return "cloud"


class ClusterEvent(Event):
    """An event of the one stream `cluster`."""

    @property
    def stream(self) -> str:
        """Always `cluster`."""
        return "cluster"


class ServiceEvent(Event):
    """An event of the one stream `service`."""

    @property
    def stream(self) -> str:
        """Always `service`."""
        return "service"


@dataclass(frozen=True, slots=True)
class Decision:
    """What a decider answers: facts to record, and a refusal to raise once they are recorded.

    No facts and no refusal means "already so": that is how idempotence looks.
    """

    events: tuple[Event, ...] = ()
    refusal: ProviderError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Who wanted it, and the id that joins everything one RPC or one job run did."""

    actor: str
    correlation_id: str


E_co = TypeVar("E_co", bound=Event, covariant=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recorded(Generic[E_co]):
    """An event in its place in the log.

    `position` is the 1-based, gap-free place in the whole log, `version` the 1-based place in the stream;
    `recorded_at` is UTC and never goes back from one position to the next.
    """

    position: int
    stream: str
    version: int
    recorded_at: datetime
    cause: Cause
    event: E_co
