"""Chance from one seed. Every step of a story draws from a stream of its own."""

import random


class Chance:
    """What is drawn does not depend on what earlier steps drew, so leaving one out does not change the others."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.turn(0)

    def turn(self, salt: int) -> None:
        """Draw from another stream from now on."""
        self.random = stream(self._seed, salt)

    def happens(self, probability: float) -> bool:
        """True that often."""
        return self.random.random() < probability


def stream(*key: object) -> random.Random:
    """A generator of its own for a key, the same in every process."""
    return random.Random("/".join(str(part) for part in key))  # noqa: S311 - reproducible on purpose
