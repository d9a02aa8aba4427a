import subprocess
import sys

import pytest

from app.cli.families import loaded
from app.cli.main import COMMANDS
from tests.e2e.harness import ROOT

_SERVER = ("grpc", "verda", "requests", "apscheduler", "alembic", "starlette", "app.bootstrap")

_LOOK = """
import sys
from app.cli import main
from app.cli.families import loaded
for family in sys.argv[1].split():
    loaded(family)
print(*sorted(sys.modules))
"""


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_tells_what_each_command_tells_of_itself(name: str) -> None:
    """The list is written down apart from the commands, so that it costs no imports."""
    family, words = COMMANDS[name]
    command = loaded(family).commands[name]
    assert (command.help or "").split("\n\n")[0].replace("\n", " ") == words


@pytest.mark.parametrize(
    ("families", "also"),
    [((), ("sqlalchemy", "pydantic")), (("look", "story", "money"), ("app.domain.books",))],
    ids=["help", "looking"],
)
def test_looking_does_not_load_the_server(families: tuple[str, ...], also: tuple[str, ...]) -> None:
    """A command typed in anger answers at once; what it loads is what it takes."""
    command = [sys.executable, "-c", _LOOK, " ".join(families)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=100)
    assert set(done.stdout.split()) & {*_SERVER, *also} == set()
