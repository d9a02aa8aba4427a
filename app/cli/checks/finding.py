"""What a check finds."""

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    """How a finding is meant."""

    FINE = "fine"
    WARNING = "warning"
    WRONG = "wrong"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at, what was seen, and what to do about it unless it is fine."""

    check: str
    verdict: Verdict
    seen: str
    remedy: str = ""


def fine(check: str, seen: str) -> Finding:
    """As it should be."""
    return Finding(check=check, verdict=Verdict.FINE, seen=seen)


def warning(check: str, seen: str, remedy: str) -> Finding:
    """It works and may not for long, or not as meant."""
    return Finding(check=check, verdict=Verdict.WARNING, seen=seen, remedy=remedy)


def wrong(check: str, seen: str, remedy: str) -> Finding:
    """Something that the operator wants does not work."""
    return Finding(check=check, verdict=Verdict.WRONG, seen=seen, remedy=remedy)


def unknown(check: str, seen: str, remedy: str) -> Finding:
    """It could not be looked at."""
    return Finding(check=check, verdict=Verdict.UNKNOWN, seen=seen, remedy=remedy)
