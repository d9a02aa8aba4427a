from pathlib import Path

import pytest

from .harness import copied, opened, start


@pytest.fixture(scope="session")
def _fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fresh") / "provider.db"
    with opened(path):
        pass
    return path


@pytest.fixture(scope="session")
def _started(_fresh: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = copied(_fresh, tmp_path_factory.mktemp("started"))
    with opened(path) as ledger:
        start(ledger)
    return path


@pytest.fixture
def fresh(_fresh: Path, tmp_path: Path) -> Path:
    """A database that was just made, and closed."""
    return copied(_fresh, tmp_path)


@pytest.fixture
def started(_started: Path, tmp_path: Path) -> Path:
    """A closed database of an installation that has started: six events, one empty group `gpu`."""
    return copied(_started, tmp_path)
