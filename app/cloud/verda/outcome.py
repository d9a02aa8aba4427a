"""Judges an answer: what the HTTP status and the API's own error object together prove.

Only the API's own words prove that it did nothing. A gateway between us may answer any status in HTML while the API is
executing the request, so a status alone proves nothing, with one exception: 429, which the API itself answers with a
body too short to be JSON (Verda OpenAPI).
"""

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal, InvalidOperation
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from typing import NoReturn

from app.cloud.verda.transport import SUCCESS, Answer
from app.cloud.verda.words import printable
from app.errors import CloudError, NoCapacity, OutcomeUnknown, Rejected, Throttled

INSUFFICIENT_SCOPE = "insufficient_scope"
UNAUTHORIZED = "unauthorized_request"

_REFUSALS = frozenset(
    {
        HTTPStatus.BAD_REQUEST,
        HTTPStatus.UNAUTHORIZED,
        HTTPStatus.PAYMENT_REQUIRED,
        HTTPStatus.FORBIDDEN,
        HTTPStatus.NOT_FOUND,
    }
)
_GONE = re.compile(
    r"discontinue a (discontinued|deleted|deleting) instance|already (been )?(discontinued|deleted)", re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiError:
    """The API's own error object; either part may be missing."""

    code: str
    message: str


def parse_json(body: bytes) -> object:
    """JSON with numbers as Decimal, so that prices keep every digit.

    Raises:
        ValueError: not JSON, not UTF-8, nested without end, or with NaN.
    """
    try:
        return json.loads(body.decode("utf-8-sig"), parse_float=Decimal, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except InvalidOperation:
        raise ValueError("a number with an exponent beyond all measure") from None


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def api_error(answer: Answer) -> ApiError | None:
    """The error object of an answer, None if the body is not one or not complete."""
    if answer.flaw:
        return None
    try:
        body = parse_json(answer.body)
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    code, message = (part if isinstance(part := body.get(key), str) else "" for key in ("code", "message"))
    return ApiError(code=code, message=message) if code or message else None


def failure_of(answer: Answer, *, creating: bool, now: datetime, redact: Callable[[str], str]) -> CloudError | None:
    """What an answer means; None for a complete success.

    `creating` tells the order of a machine from all other calls: only there does 503 mean that nothing is in stock.
    `redact` takes our secrets out of the API's words.
    """
    status = answer.status
    if status in SUCCESS:
        if not answer.flaw:
            return None
        return OutcomeUnknown("the answer's body did not arrive completely", code=answer.flaw, status=status)
    delay = retry_after(answer.headers, now)
    error = api_error(answer)
    code = _code(error, status)
    message = printable(redact(error.message)) if error else ""
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        words = message or "the API's rate limit is exceeded"
        return Throttled(words, code=code, status=status, retry_after=delay)
    if error is None:
        words = f"HTTP {status} without the API's own error object"
        return OutcomeUnknown(words, code=code, status=status, retry_after=delay)
    if status in _REFUSALS:
        return Rejected(message or code, code=code, status=status)
    if creating and status == HTTPStatus.SERVICE_UNAVAILABLE and error.code == "service_unavailable":
        return NoCapacity(message or code, code=code, status=status, retry_after=delay)
    return OutcomeUnknown(message or code, code=code, status=status, retry_after=delay)


def _code(error: ApiError | None, status: int) -> str:
    if error and status == HTTPStatus.FORBIDDEN and "insufficient scope" in error.message.lower():
        return INSUFFICIENT_SCOPE
    fallback = "rate_limit_exceeded" if status == HTTPStatus.TOO_MANY_REQUESTS else f"http_{status}"
    return (printable(error.code) if error else "") or fallback


def retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """`Retry-After` as a delay, from seconds or from a date; None if absent or unreadable."""
    value = headers.get("Retry-After", "").strip()
    if value.isdecimal() and len(value) <= len("999999"):
        return timedelta(seconds=int(value))
    try:
        moment = parsedate_to_datetime(value)
    except (ValueError, OverflowError):
        return None
    return max(moment.replace(tzinfo=moment.tzinfo or UTC) - now, timedelta())


def says_not_found(error: CloudError) -> bool:
    """The API itself says that there is no such thing."""
    return isinstance(error, Rejected) and error.status == HTTPStatus.NOT_FOUND and error.code == "not_found"


def says_already_gone(error: CloudError) -> bool:
    """Refused because it is done: `not_found`, or a 403 of servers from before March 2026 (Verda OpenAPI)."""
    return says_not_found(error) or (isinstance(error, Rejected) and words_say_gone(error.message))


def words_say_gone(message: str) -> bool:
    """`Can't discontinue a discontinued instance` and the like."""
    return _GONE.search(message) is not None


def concerns_access(error: CloudError) -> bool:
    """Refused because of our credentials: says nothing about the thing asked for."""
    return isinstance(error, Rejected) and (
        error.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.PAYMENT_REQUIRED} or error.code == INSUFFICIENT_SCOPE
    )
