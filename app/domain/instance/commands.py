"""What jobs tell the books about instances: intents before an effect, outcomes after it."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from app.domain.instance.events import Found


class Refusal(StrEnum):
    """The ways in which a create call is proven not to have created anything."""

    NOT_SENT = "not-sent"
    REJECTED = "rejected"
    THROTTLED = "throttled"
    NO_CAPACITY = "no-capacity"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptCreate:
    """Write down the next create call of this instance, if one is due."""

    instance: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCreated:
    """A machine exists for this instance."""

    instance: str
    instance_id: str
    found: Found


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCreateRefused:
    """The create call did nothing. `status`, `code` and `message` are the API's own; `retry_after` its wish."""

    instance: str
    attempt: int
    refusal: Refusal
    status: int | None
    code: str
    message: str
    retry_after: timedelta | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCreateUnknown:
    """Nobody knows what became of the create call."""

    instance: str
    attempt: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleOutCreate:
    """The machine of an unknown create call was looked for long and often enough."""

    instance: str
    attempt: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptDelete:
    """Write down the next delete calls, those of these instances that are due.

    `interrupted`: instances whose last delete call was made by a process that did not live to hear the answer; there is
    nothing to wait for.
    """

    instances: tuple[str, ...]
    interrupted: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDeleteRefused:
    """The delete call was not taken."""

    instance: str
    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmEnded:
    """Absent from the lists, and a direct look-up says it is no more. `known_by_id`: the API still shows its record."""

    instance: str
    instance_id: str
    known_by_id: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnProviderId:
    """A real node shows this provider id for the instance."""

    instance: str
    provider_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckDeadlines:
    """Give up on what has taken too long, in every group."""

    failed_expiry: timedelta
