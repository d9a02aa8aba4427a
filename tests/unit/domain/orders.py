"""The outcomes that a create call can have, about the first attempt of A unless said otherwise."""

from datetime import timedelta

from app.domain.cloud import DuplicateInstanceDetected
from app.domain.instance.commands import (
    AttemptCreate,
    RecordCreated,
    RecordCreateRefused,
    RecordCreateUnknown,
    Refusal,
)
from app.domain.instance.events import Found
from app.domain.offering import Contract

from .facts import (
    A_ID,
    H100,
    A,
    attempted,
    failed,
    h100,
    wanted,
)

ATTEMPT = AttemptCreate(instance=A)
SECOND = timedelta(seconds=1)
PREFER_SPOT = H100.model_copy(update={"contracts": (Contract.SPOT, Contract.ON_DEMAND)})
ONE_PLACE = H100.model_copy(update={"locations": ("FIN-01",)})
THREE_PLACES = H100.model_copy(update={"locations": ("FIN-01", "FIN-02", "FIN-03")})
submitting = h100.given(wanted(), attempted())
OUT_OF_STOCK = failed()


def no_capacity(attempt: int = 1) -> RecordCreateRefused:
    """The API's normal stock-out: HTTP 503 with its own error object."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.NO_CAPACITY,
        status=503,
        code="service_unavailable",
        message="No capacity available",
        retry_after=None,
    )


def rejected(
    status: int | None = 400, code: str = "invalid_request", message: str = "Invalid location", attempt: int = 1
) -> RecordCreateRefused:
    """The API refused in its own words."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.REJECTED,
        status=status,
        code=code,
        message=message,
        retry_after=None,
    )


def throttled(wish: timedelta | None = None, attempt: int = 1) -> RecordCreateRefused:
    """Over the rate limit."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.THROTTLED,
        status=429,
        code="rate_limit_exceeded",
        message="Rate limit",
        retry_after=wish,
    )


def not_sent(attempt: int = 1) -> RecordCreateRefused:
    """The request never left."""
    return RecordCreateRefused(
        instance=A,
        attempt=attempt,
        refusal=Refusal.NOT_SENT,
        status=None,
        code="connection_refused",
        message="connection refused",
        retry_after=None,
    )


def exists(instance_id: str = A_ID, found: Found = Found.ANSWERED) -> RecordCreated:
    """There is a machine."""
    return RecordCreated(instance=A, instance_id=instance_id, found=found)


def nobody_knows(attempt: int = 1) -> RecordCreateUnknown:
    """No answer, or none that can be read."""
    return RecordCreateUnknown(instance=A, attempt=attempt, reason="read timed out")


def too_many(instance_id: str, reason: str) -> DuplicateInstanceDetected:
    """The intent to delete a machine that no instance stands for."""
    return DuplicateInstanceDetected(instance_id=instance_id, instance=A, reason=reason)
