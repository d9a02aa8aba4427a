"""The account at Verda as a whole: refused for want of money or permission, or accepted again."""

from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from app.domain.envelope import CloudEvent


class AccountRefused(CloudEvent):
    """Verda refuses every order of this account, for want of money or permission. No order is tried before `until`."""

    type: ClassVar[str] = "cloud.account-refused"
    words: ClassVar[str] = "Verda takes no orders from this account, next try at {until} ({code}): {message}"
    code: str
    message: str
    until: datetime


class AccountAccepted(CloudEvent):
    """Verda takes orders again."""

    type: ClassVar[str] = "cloud.account-accepted"
    words: ClassVar[str] = "Verda takes orders from this account again, after none since {since}"
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountRefusal:
    """The account is refused as a whole, `failures` times by now, last at `position` of the log.

    No order is sent before `until`, and then one to see.
    """

    code: str
    message: str
    since: datetime
    until: datetime
    failures: int
    position: int


def evolve(
    known: AccountRefusal | None, event: AccountRefused | AccountAccepted, at: datetime, position: int
) -> AccountRefusal | None:
    """Fold one event about the account; None while it is accepted."""
    if isinstance(event, AccountAccepted):
        return None
    return AccountRefusal(
        code=event.code,
        message=event.message,
        since=at if known is None else known.since,
        until=event.until,
        failures=1 if known is None else known.failures + 1,
        position=position,
    )
