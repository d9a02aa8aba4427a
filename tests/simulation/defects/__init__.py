"""Deliberate defects: small changes to the program that the simulation must notice, to know that it would."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any
from unittest.mock import patch


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One name of the program that stands for something else. `holder` is a module or a class."""

    holder: Any
    name: str
    new: Any

    def applied(self) -> AbstractContextManager[Any]:
        """In force until left."""
        return patch.object(self.holder, self.name, self.new)


@dataclass(frozen=True, slots=True, kw_only=True)
class Defect:
    """A mistake that somebody could make, in words, and the changes that make it."""

    name: str
    words: str
    changes: Callable[[], Sequence[Change]]

    @contextmanager
    def made(self) -> Iterator[None]:
        """The program has this defect until left."""
        with ExitStack() as stack:
            for change in self.changes():
                stack.enter_context(change.applied())
            yield
