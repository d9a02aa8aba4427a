import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.audit.scenario import A, B, C, E, F, tell
from tests.e2e.harness import ROOT, clean_environment


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a database where commands look for it."""
    directory = tmp_path_factory.mktemp("home")
    (directory / "var").mkdir()
    tell(directory / "var" / "provider.db")
    return directory


def completed(line: str, home: Path) -> list[str]:
    """What bash would offer at the end of this line."""
    words = line.split(" ")
    environment = {
        **clean_environment(),
        "PYTHONPATH": str(ROOT),
        "_VERDA_CLOUD_PROVIDER_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    command = [sys.executable, "-m", "app.cli.main"]
    done = subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=True, timeout=100)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("verda-cloud-provider e", ["events", "explain", "export"]),
        ("verda-cloud-provider pause b", ["batch"]),
        ("verda-cloud-provider history gpu-", [F, E, C, B, A]),
        ("verda-cloud-provider explain g", ["gpu", F, E, C, B, A]),
        ("verda-cloud-provider config s", ["show", "schema"]),
        ("verda-cloud-provider costs --b", ["--by"]),
    ],
)
def test_the_tabulator_knows_commands_options_and_names(line: str, offered: list[str], home: Path) -> None:
    """Names are long and made by chance: nobody types them."""
    assert completed(line, home) == offered


def test_without_a_database_nothing_is_offered_and_nothing_is_wrong(tmp_path: Path) -> None:
    """Pressing a key must not print an error, nor make a file."""
    assert completed("verda-cloud-provider history gpu-", tmp_path) == []
    assert os.listdir(tmp_path) == []  # noqa: PTH208 - names are what matters
