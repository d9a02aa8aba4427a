"""What became of each request, for metrics and logs."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from app.errors import CloudError, NoCapacity, NotSent, Rejected, Throttled


class Outcome(StrEnum):
    """The closed set of outcomes, as log value and metric label."""

    OK = "ok"
    NOT_SENT = "not-sent"
    REJECTED = "rejected"
    THROTTLED = "throttled"
    NO_CAPACITY = "no-capacity"
    UNKNOWN = "outcome-unknown"

    @classmethod
    def of(cls, error: CloudError | None) -> "Outcome":
        """The outcome that an error stands for; None is success."""
        match error:
            case None:
                return cls.OK
            case NotSent():
                return cls.NOT_SENT
            case Rejected():
                return cls.REJECTED
            case Throttled():
                return cls.THROTTLED
            case NoCapacity():
                return cls.NO_CAPACITY
            case _:
                return cls.UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class CallReport:
    """One request to the API, with everything that was waited for.

    `operation` is the method of the `Cloud` port that made it; a deletion of many machines makes several requests.
    `status` is the HTTP status if there was an answer and the SDK shows it, `code` the error's, empty on success.
    """

    operation: str
    outcome: Outcome
    status: int | None
    code: str
    duration_s: float


Observer = Callable[[CallReport], None]


def ignore(_report: CallReport) -> None:
    """The observer for those who do not want to know."""
