"""Processes that are meant to die in the middle of their work."""

import os
import signal
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, event

from app.clock import FakeClock

from .harness import CA, one_more, opened
from .story import Story


def tell_for_ever(path: Path, seed: int, acknowledge: Connection) -> None:
    """Go on with the story of a database, and say after each command how far the log goes now."""
    clock = FakeClock()
    with opened(path, clock, holder=f"doomed {seed}") as ledger:
        story = Story(ledger, clock, seed)
        if ledger.books.position == 0:
            story.begin()
        while True:
            acknowledge.send((ledger.head.position, ledger.head.hash))
            story.walk(1)


def _die_at(statement: int) -> Callable[..., None]:
    """A listener that kills this very process when a number of statements and commits have begun."""
    left = statement

    def listener(*_: Any, **__: Any) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return listener


def _listen(listener: Callable[..., None]) -> None:
    event.listen(Engine, "before_cursor_execute", listener)
    event.listen(Engine, "after_cursor_execute", listener)
    event.listen(Engine, "commit", listener)


def die_opening(path: Path, statement: int, acknowledge: Connection) -> None:
    """Open a database and die at a statement of that; acknowledge if there are not that many."""
    _listen(_die_at(statement))
    with opened(path, holder=f"doomed at {statement}"):
        acknowledge.send((0, ""))


def die_appending(path: Path, statement: int, acknowledge: Connection) -> None:
    """Ask for one more node and die at a statement of that; acknowledge if there are not that many."""
    with opened(path, holder=f"doomed at {statement}") as ledger:
        _listen(_die_at(statement))
        ledger.execute(one_more(f"gpu-{statement:08d}"), CA)
        acknowledge.send((ledger.head.position, ledger.head.hash))
