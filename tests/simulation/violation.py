"""What a broken invariant is."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.stage import Stage

Always = Callable[["Stage"], Iterable[str]]
"""Holds whenever nothing is under way on the main thread: yields a sentence for every way in which it does not."""


class Violated(Exception):
    """An invariant does not hold; `invariant` is the name of the function that says so."""

    def __init__(self, invariant: str, words: str) -> None:
        super().__init__(f"{invariant}: {words}")
        self.invariant = invariant
        self.words = words
