"""How times and spans are said to people."""

from datetime import UTC, datetime, timedelta

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


def at(time: datetime) -> str:
    """`2026-01-05 10:00:00`, in UTC."""
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def span(time: timedelta) -> str:
    """The two largest units: `3 h 30 min`, `45 s`."""
    rest = max(round(time.total_seconds()), 0)
    parts: list[str] = []
    for seconds, unit in _UNITS:
        count, rest = divmod(rest, seconds)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "no time"
