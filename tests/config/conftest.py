from pathlib import Path

import pytest

from .harness import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """An empty directory to write a configuration into."""
    return Desk(tmp_path)
