"""Groups that failed are left alone for a while, twice as long each time."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from .flags import Flags


@dataclass(frozen=True, slots=True, kw_only=True)
class Rest:
    """How long a group rests, until when, since when, and why."""

    duration: timedelta
    until: datetime
    failed_at: datetime
    code: str


class Backoff:
    """In memory only: a restart of the autoscaler forgets all of it."""

    def __init__(self, flags: Flags) -> None:
        self._flags = flags
        self._rests: dict[str, Rest] = {}

    def begin(self, group: str, code: str, now: datetime) -> None:
        """Rest. Failing again while resting starts the same rest anew; failing after it doubles the rest."""
        duration = self._flags.initial_backoff
        known = self._rests.get(group)
        if known is not None:
            is_over = known.until < now
            duration = min(known.duration * 2, self._flags.max_backoff) if is_over else known.duration
        self._rests[group] = Rest(duration=duration, until=now + duration, failed_at=now, code=code)

    def reason(self, group: str, now: datetime) -> str | None:
        """Why a group rests, None if it does not."""
        rest = self._rests.get(group)
        return None if rest is None or rest.until < now else rest.code

    def clear(self, group: str) -> None:
        """Forget that the group ever failed."""
        self._rests.pop(group, None)

    def forget_old(self, now: datetime) -> None:
        """What has not failed for hours begins with a short rest again."""
        reset = self._flags.backoff_reset
        self._rests = {group: rest for group, rest in self._rests.items() if rest.failed_at + reset >= now}
