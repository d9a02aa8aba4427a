from collections.abc import Iterator
from pathlib import Path

import pytest

from .rig import Rig, rig, simulator


@pytest.fixture
def house(tmp_path: Path) -> Iterator[Rig]:
    """A provider that has just started over a simulated API, with the empty group h100."""
    with simulator() as sim:
        made = rig(tmp_path, sim)
        yield made
        made.shut_down()
