from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.simulator.harness import Harness


@pytest.fixture
def make() -> Iterator[Callable[..., Harness]]:
    """A factory of simulators with sections of the configuration replaced; all are stopped afterwards."""
    made: list[Harness] = []

    def build(**config: Any) -> Harness:
        made.append(Harness(**config))
        return made[-1]

    yield build
    for harness in made:
        harness.close()


@pytest.fixture
def sim(make: Callable[..., Harness]) -> Harness:
    """A calm simulator with a manual clock and round durations."""
    return make()
