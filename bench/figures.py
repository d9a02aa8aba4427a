"""What a benchmark comes to: a ratio to something else measured in the same run, and the goal it is held against."""

import statistics
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

_MEDIAN = 50

Act = Callable[[], object]


class Sense(StrEnum):
    """On which side of the goal is good."""

    AT_LEAST = ">="
    AT_MOST = "<="


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """`ours` beside `reference`, both in `unit`; `low` and `high` are the quartiles of the ratio over the rounds.

    `is_tail` says that a percentile is compared, which takes many rounds to mean anything.
    """

    name: str
    reference: str
    sense: Sense
    goal: float
    ratio: float
    low: float
    high: float
    ours: float
    reference_value: float
    unit: str
    rounds: int
    is_tail: bool = False

    @property
    def is_met(self) -> bool:
        """The goal is reached."""
        return self.ratio >= self.goal if self.sense is Sense.AT_LEAST else self.ratio <= self.goal


def seconds(act: Act) -> float:
    """How long it takes once."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def interleaved(ours: Act, reference: Act, rounds: int) -> list[tuple[float, float]]:
    """Both in turn, so that a busy machine slows both alike: seconds of ours and of the reference."""
    return [(seconds(ours), seconds(reference)) for _ in range(rounds)]


def slower(
    name: str, reference: str, goal: float, pairs: Sequence[tuple[float, float]], *, quantile: int = 50
) -> Figure:
    """Time of ours over time of the reference, which may be `goal` at most, at a percentile."""
    ours, bare = zip(*pairs, strict=True)
    values = (_at(ours, quantile), _at(bare, quantile))
    figure = _figure(name, reference, Sense.AT_MOST, goal, values, pairs, 1)
    return replace(figure, is_tail=quantile != _MEDIAN)


def rate(name: str, reference: str, goal: float, pairs: Sequence[tuple[float, float]], count: int = 1) -> Figure:
    """Rate of ours over rate of the reference, `goal` at least, from the medians of the times; `count` things each."""
    ours, bare = zip(*pairs, strict=True)
    turned = [(b, a) for a, b in pairs]
    medians = (statistics.median(bare), statistics.median(ours))
    figure = _figure(name, reference, Sense.AT_LEAST, goal, medians, turned, count)
    return replace(figure, ours=figure.reference_value, reference_value=figure.ours)


def of_values(  # noqa: PLR0917 - the parts of one row
    name: str, reference: str, goal: float, ours: float, reference_value: float, unit: str, rounds: int = 1
) -> Figure:
    """Two values, of which ours may be `goal` times the other at most."""
    ratio = ours / reference_value
    return Figure(
        name=name,
        reference=reference,
        sense=Sense.AT_MOST,
        goal=goal,
        ratio=ratio,
        low=ratio,
        high=ratio,
        ours=ours,
        reference_value=reference_value,
        unit=unit,
        rounds=rounds,
    )


def _at(values: Sequence[float], quantile: int) -> float:
    return statistics.median(values) if quantile == _MEDIAN else statistics.quantiles(values, n=100)[quantile - 1]


def _figure(  # noqa: PLR0917 - the parts of one row
    name: str,
    reference: str,
    sense: Sense,
    goal: float,
    values: tuple[float, float],
    pairs: Sequence[tuple[float, float]],
    count: int,
) -> Figure:
    ratios = [a / b for a, b in pairs]
    low, _, high = statistics.quantiles(ratios, n=4) if len(ratios) > 1 else (ratios[0],) * 3
    return Figure(
        name=name,
        reference=reference,
        sense=sense,
        goal=goal,
        ratio=values[0] / values[1],
        low=low,
        high=high,
        ours=values[0] / count * 1000,
        reference_value=values[1] / count * 1000,
        unit="ms",
        rounds=len(pairs),
    )


def table(figures: Iterable[Figure]) -> str:
    """Every figure with its goal, in Markdown."""
    lines = [
        "| what | ours | reference | | ratio | quartiles | goal | |",
        "|---|---|---|---|---|---|---|---|",
    ]
    return "\n".join((*lines, *map(row, figures))) + "\n"


def row(figure: Figure) -> str:
    """One figure as a row of the table."""
    cells = (
        figure.name,
        f"{figure.ours:.3f} {figure.unit}",
        figure.reference,
        f"{figure.reference_value:.3f} {figure.unit}",
        f"{figure.ratio:.2f}",
        f"{figure.low:.2f} to {figure.high:.2f}",
        f"{figure.sense} {figure.goal}",
        "met" if figure.is_met else "**missed**",
    )
    return f"| {' | '.join(cells)} |"
