"""What the tests of the configuration share: a valid file to spoil, and the problems of a file as plain tuples."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from app.config.load import NO_OVERRIDES, LoadedConfig, Overrides, load
from app.errors import ConfigurationError, Problem

GROUP = """\
node_groups:
  gpu:
    instance_type: 1A100.22V
    image: ubuntu-24.04
    max_size: 3
    location: FIN-01
"""
"""A valid configuration of six lines: what is added below begins on line 7, two or four blanks deep or at the top."""

Told: TypeAlias = tuple[int | None, str, str]
Text: TypeAlias = str | bytes


class Desk:
    """A directory with a configuration file in it."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.path = directory / "config.yaml"

    def write(self, text: Text, name: str = "config.yaml") -> Path:
        """Put a file there."""
        path = self.directory / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    def load(
        self, text: Text, *, environ: Mapping[str, str] | None = None, overrides: Overrides = NO_OVERRIDES
    ) -> LoadedConfig:
        """Load a text as a file."""
        return load(self.write(text), environ=environ or {}, overrides=overrides)

    def problems(
        self, text: Text, *, environ: Mapping[str, str] | None = None, overrides: Overrides = NO_OVERRIDES
    ) -> tuple[Problem, ...]:
        """What is wrong with a text; nothing if it loads."""
        return refusal(lambda: self.load(text, environ=environ, overrides=overrides))

    def told(
        self, text: Text, *, environ: Mapping[str, str] | None = None, overrides: Overrides = NO_OVERRIDES
    ) -> list[Told]:
        """The problems of a text as line, path, message; all of them in this one file."""
        problems = self.problems(text, environ=environ, overrides=overrides)
        assert {problem.source for problem in problems} <= {str(self.path)}
        return [plain(problem) for problem in problems]

    def warned(self, text: Text, *, environ: Mapping[str, str] | None = None) -> list[Told]:
        """The warnings about a text that loads."""
        return [plain(problem) for problem in self.load(text, environ=environ).warnings]


def outcome(attempt: Callable[[], LoadedConfig]) -> LoadedConfig | ConfigurationError:
    """What an attempt ends with; any other exception is a failure of the test."""
    try:
        return attempt()
    except ConfigurationError as error:
        return error


def refusal(attempt: Callable[[], LoadedConfig]) -> tuple[Problem, ...]:
    """The problems an attempt ends with, none if it succeeds."""
    end = outcome(attempt)
    return end.problems if isinstance(end, ConfigurationError) else ()


def plain(problem: Problem) -> Told:
    """Line, path, message."""
    return problem.line, problem.path, problem.message
