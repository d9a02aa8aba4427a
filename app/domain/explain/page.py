"""What an explanation is made of, and how times and spans are said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A question and its answer, a sentence a line."""

    question: str
    answer: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page in plain words: what it is about, how it stands, and the questions."""

    title: str
    sections: tuple[Section, ...]

    @property
    def lines(self) -> Sequence[str]:
        """As text."""
        lines = [self.title]
        for section in self.sections:
            lines += ["", section.question, *(f"  {sentence}" for sentence in section.answer)]
        return lines


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
