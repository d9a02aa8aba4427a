"""Geometry of the two charts. Pure: numbers in, coordinates of an SVG out; the templates draw them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

WIDTH = 600
HEIGHT = 56
_TOP = 4
_BOTTOM = 1
"""Room for the line's own width: it is not cut off at its highest and lies on the ground at zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steps:
    """A line that moves in steps: `path` is an SVG path in a box of WIDTH by HEIGHT, `area` closes it at the bottom."""

    path: str
    area: str
    lowest: int
    highest: int


def steps(changes: Sequence[tuple[datetime, int]], start: int, since: datetime, until: datetime) -> Steps:
    """The course of a number that was `start` at `since` and changed at these times."""
    values = [start, *(value for _, value in changes)]
    top = max(*values, 1)
    length = max((until - since).total_seconds(), 1.0)

    def x(at: datetime) -> float:
        return round(min(max((at - since).total_seconds() / length, 0.0), 1.0) * WIDTH, 1)

    def y(value: int) -> float:
        return round(HEIGHT - _BOTTOM - value / top * (HEIGHT - _TOP - _BOTTOM), 1)

    parts = [f"M0 {y(start)}"]
    for at, value in changes:
        parts.append(f"H{x(at)}V{y(value)}")
    parts.append(f"H{WIDTH}")
    path = "".join(parts)
    return Steps(path=path, area=f"{path}V{HEIGHT}H0Z", lowest=min(values), highest=max(values))


def shares(amounts: Sequence[Decimal], width: int) -> Sequence[int]:
    """Lengths of bars: the largest amount fills `width`, anything above nothing is at least one wide."""
    top = max(amounts, default=Decimal(0))
    if top <= 0:
        return [0 for _ in amounts]
    return [max(round(amount / top * width), 1) if amount > 0 else 0 for amount in amounts]
