from pathlib import Path

import pytest

from tests.audit.scenario import tell


@pytest.fixture(scope="session")
def story(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The closed database of the story; nobody writes it."""
    path = tmp_path_factory.mktemp("story") / "provider.db"
    tell(path)
    return path
