"""What a refused create call means: for the autoscaler, and for the next attempt."""

from dataclasses import dataclass
from datetime import timedelta

from app.domain.instance.commands import RecordCreateRefused, Refusal
from app.domain.instance.events import ErrorClass, FailureCode

_FIRST_PAUSE = timedelta(seconds=2)
LONGEST_PAUSE = timedelta(minutes=1)
LONGEST_WISH = timedelta(minutes=10)
"""A pause that the API asks for is honoured up to this length, by what limits the rate of all calls as well."""
MAX_MESSAGE = 400
"""Cluster Autoscaler cuts messages in its status at 500 characters; the rest is left for the remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`rung_closed`: this offering is used up for this wish. `final`: no other offering will fare better.

    `is_about_the_account`: nor will another wish, of whatever group. `passes`: the next wish may fare better, though
    nothing of the group's settings has changed.
    """

    error_class: ErrorClass
    code: FailureCode
    remedy: str = ""
    rung_closed: bool = False
    final: bool = False
    is_about_the_account: bool = False
    passes: bool = False

    @property
    def is_about_the_offering(self) -> bool:
        """What is missing is missing to every wish for this offering, and to none for another."""
        return self.error_class is ErrorClass.OUT_OF_RESOURCES and not self.final

    def message(self, words: str) -> str:
        """The words of who refused, then what to do."""
        return f"{words[:MAX_MESSAGE]}{'; ' if self.remedy else ''}{self.remedy}"


_NOT_SENT = Verdict(error_class=ErrorClass.OTHER, code=FailureCode.CLOUD_UNREACHABLE)
_THROTTLED = Verdict(error_class=ErrorClass.OTHER, code=FailureCode.RATE_LIMITED)
NO_CAPACITY = Verdict(
    error_class=ErrorClass.OUT_OF_RESOURCES,
    code=FailureCode.OUT_OF_STOCK,
    remedy="add locations or another group",
    rung_closed=True,
)
_NO_MONEY = Verdict(
    error_class=ErrorClass.OUT_OF_RESOURCES,
    code=FailureCode.INSUFFICIENT_FUNDS,
    remedy="top up the Verda balance",
    rung_closed=True,
    final=True,
    is_about_the_account=True,
)
_QUOTA = Verdict(
    error_class=ErrorClass.OUT_OF_RESOURCES,
    code=FailureCode.QUOTA_EXCEEDED,
    remedy="ask Verda for a higher quota or use other locations",
    rung_closed=True,
)
_SCOPE = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.FORBIDDEN,
    remedy="give the API credentials the scope cloud-api-v1",
    rung_closed=True,
    final=True,
    is_about_the_account=True,
)
_CREDENTIALS = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.FORBIDDEN,
    remedy="check the API credentials",
    rung_closed=True,
    final=True,
    is_about_the_account=True,
)
_IMAGE = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.IMAGE_NOT_SUPPORTED,
    remedy="choose an image that the instance type supports",
    rung_closed=True,
    final=True,
)
_INVALID = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.INVALID_REQUEST,
    remedy="mend the node group's configuration",
    rung_closed=True,
)


SCRIPT_REFUSED = "startup_script_refused"
SCRIPT_QUOTA = "startup_script_quota"
SCRIPT_UNMADE = "startup_script_unmade"
JOIN_TOKEN_UNMADE = "join_token_unmade"  # noqa: S105 - a code
"""Codes of ours for orders that were not sent because there is no startup script for the machine."""

_SCRIPT = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.SCRIPT_REFUSED,
    remedy="mend the node group's startup script",
    rung_closed=True,
    final=True,
)
_SCRIPTS = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.SCRIPT_QUOTA,
    remedy="delete startup scripts in Verda's console or ask Verda for a higher quota",
    rung_closed=True,
    final=True,
    passes=True,
)
_UNMADE = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.SCRIPT_REFUSED,
    remedy="mend the node group's startup script",
    rung_closed=True,
    final=True,
    passes=True,
)


SWITCH_REFUSED = "webhook_refused"
MACHINE_UNKNOWN = "unknown_machine"
"""Codes of ours for machines of our own that were not switched on."""
SWITCH_UNANSWERED = "webhook_failed"
"""And for one that may have been: no answer came, or one that is no refusal."""

_POWER = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.POWER_REFUSED,
    remedy="ask the machine's power API why",
    rung_closed=True,
)

_NO_TOKEN_YET = Verdict(error_class=ErrorClass.OTHER, code=FailureCode.JOIN_TOKEN)
_NO_TOKEN = Verdict(
    error_class=ErrorClass.OTHER,
    code=FailureCode.JOIN_TOKEN,
    remedy="grant the provider what the component join-tokens has",
    rung_closed=True,
    final=True,
    passes=True,
)


_OURS = {
    SCRIPT_REFUSED: _SCRIPT,
    SCRIPT_QUOTA: _SCRIPTS,
    SCRIPT_UNMADE: _UNMADE,
    JOIN_TOKEN_UNMADE: _NO_TOKEN,
    SWITCH_REFUSED: _POWER,
    MACHINE_UNKNOWN: _POWER,
}


def judge(command: RecordCreateRefused) -> Verdict:
    """The meaning of a refusal: by kind, then HTTP status, then the API's code; its message only as the last resort."""
    match command.refusal:
        case Refusal.NOT_SENT:
            return _NO_TOKEN_YET if command.code == JOIN_TOKEN_UNMADE else _NOT_SENT
        case Refusal.THROTTLED:
            return _THROTTLED
        case Refusal.NO_CAPACITY:
            return NO_CAPACITY
        case Refusal.REJECTED:
            return _judge_rejection(command)


def _judge_rejection(command: RecordCreateRefused) -> Verdict:
    if command.code in _OURS:
        return _OURS[command.code]
    if command.status == 402 or command.code == "insufficient_funds":  # noqa: PLR2004 - HTTP status
        return _NO_MONEY
    if command.status == 401:  # noqa: PLR2004 - HTTP status
        return _CREDENTIALS
    if "scope" in command.code or "scope" in command.message.lower():
        return _SCOPE
    if command.status == 403 or command.code == "forbidden_action":  # noqa: PLR2004 - HTTP status
        return _QUOTA
    if "operating system" in command.message.lower() or "image" in command.message.lower():
        return _IMAGE
    return _INVALID


def pause(attempt: int, wish: timedelta | None = None) -> timedelta:
    """How long to wait after the attempt-th failure in a row: doubling from 2 s to 1 min, or longer if the API asks."""
    doubled = _FIRST_PAUSE * (1 << min(max(attempt - 1, 0), 5))
    return max(min(doubled, LONGEST_PAUSE), min(wish or timedelta(), LONGEST_WISH))


_FIRST_ACCOUNT_PAUSE = timedelta(minutes=1)
LONGEST_ACCOUNT_PAUSE = timedelta(minutes=30)


def account_pause(failures: int) -> timedelta:
    """How long no order is tried after the account was refused so often in a row: doubling from 1 min to 30 min."""
    return min(_FIRST_ACCOUNT_PAUSE * (1 << min(max(failures - 1, 0), 5)), LONGEST_ACCOUNT_PAUSE)
