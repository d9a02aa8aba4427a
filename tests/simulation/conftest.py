"""A theatre for the whole session: making its database takes longer than most stories."""

from collections.abc import Iterator

import pytest

from tests.simulation.run import Theatre


@pytest.fixture(scope="session")
def theatre() -> Iterator[Theatre]:
    """A place to run stories in."""
    with Theatre() as place:
        yield place
