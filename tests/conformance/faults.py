"""Deliberate faults of the provider, to see whether the suite notices them.

`python -m tests.conformance.faults NAME serve …` is the provider's own command line with one behaviour changed.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from app.cli.main import main as run_provider


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One behaviour changed: what it is in words, which statements must notice, and the change itself."""

    name: str
    words: str
    statements: tuple[str, ...]
    apply: Callable[[], None]


def change(owner: Any, name: str, make: Callable[[Any], Any]) -> Callable[[], None]:
    """A change that replaces an attribute by what `make` makes of it."""

    def apply() -> None:
        setattr(owner, name, make(getattr(owner, name)))

    return apply


def fault(name: str, words: str, statements: str, apply: Callable[[], None]) -> Fault:
    """A fault, with the statements separated by blanks."""
    return Fault(name=name, words=words, statements=tuple(statements.split()), apply=apply)


def all_faults() -> Mapping[str, Fault]:
    """Every fault by name."""
    from . import (  # noqa: PLC0415 - they import this module
        faults_of_answers,
        faults_of_deletion,
        faults_of_groups,
        faults_of_options,
        faults_of_service,
        faults_of_sizes,
    )

    rooms = (
        faults_of_service,
        faults_of_groups,
        faults_of_sizes,
        faults_of_deletion,
        faults_of_answers,
        faults_of_options,
    )
    return MappingProxyType({fault.name: fault for room in rooms for fault in room.FAULTS})


SMOKE: Final = ("bare-group-id", "old-field-only")
"""What runs with every test run; all of them take minutes."""


def main() -> None:
    """Change the behaviour, then be the provider."""
    name, *arguments = sys.argv[1:]
    all_faults()[name].apply()
    sys.argv = [sys.argv[0], *arguments]
    run_provider()


if __name__ == "__main__":
    main()
