"""The command line as a person at a prompt has it, within the process of the test."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from app.cli.main import cli


def typed(*arguments: str | Path, code: int = 0) -> str:
    """What a command prints; it must end with this exit code."""
    result = run(*arguments)
    assert result.exit_code == code, (result.output, result.exception)
    return result.output


def run(*arguments: str | Path) -> Result:
    """A command and everything that came of it, also our own errors."""
    return CliRunner().invoke(cli, [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def answer(*arguments: str | Path) -> Any:
    """What a command says to a program."""
    return json.loads(typed(*arguments, "--output", "json"))
