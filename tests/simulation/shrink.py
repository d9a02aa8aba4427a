"""From a story that breaks an invariant to a short one that still does."""

from collections.abc import Callable

from tests.simulation.run import Theatre, Verdict

_MOST_RUNS = 400


class Shrinker:
    """Leaves out steps, in halves first and one by one in the end, as long as the same invariant breaks."""

    def __init__(self, theatre: Theatre, broken: Verdict, length: int) -> None:
        self._theatre = theatre
        self._broken = broken
        self._length = length
        self._runs = 0

    def shrink(self, tell: Callable[[str], None] = lambda _: None) -> list[int]:
        """Numbers of the steps that are needed."""
        kept = list(range(1, (self._broken.step or self._length) + 1))
        size = len(kept)
        while size >= 1 and self._runs < _MOST_RUNS:
            kept = self._without_parts(kept, size)
            tell(f"{len(kept)} steps left")
            size = size // 2 if size > 1 else 0
        return kept

    def _without_parts(self, kept: list[int], size: int) -> list[int]:
        """Drop every part of this size that is not needed, the last ones first."""
        for start in range(len(kept) - size, -size, -size):
            first = max(start, 0)
            fewer = kept[:first] + kept[max(start + size, 0) :]
            if self._runs < _MOST_RUNS and self._still_breaks(fewer):
                kept = fewer
        return kept

    def _still_breaks(self, kept: list[int]) -> bool:
        self._runs += 1
        return (
            self._theatre.run(self._broken.seed, self._length, only=frozenset(kept)).invariant == self._broken.invariant
        )
