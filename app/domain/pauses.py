"""Pauses that are facts: they end at a time that was written down, whatever the clock has done since."""

from datetime import datetime, timedelta


def is_over(until: datetime | None, now: datetime, longest: timedelta) -> bool:
    """Whether a pause until then, which may be `longest` at most, has ended.

    One that would last for longer from now began by a clock that was ahead and has been set back: waiting for the time
    it showed would take as long as it was wrong.
    """
    return until is None or not now < until <= now + longest
