"""Processes that are meant to die in the middle of their work."""

import math
import os
import signal
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType
from typing import Any

from app.clock import FakeClock
from app.store import sqlite

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


class _Doomed(ModuleType):
    """The usual driver, on whose connections a number of statements may begin, and no more."""

    def __init__(self) -> None:
        super().__init__("doomed")
        vars(self).update({name: item for name, item in vars(sqlite.driver()).items() if name != "connect"})
        self._left = math.inf

    def connect(self, *args: Any, **settings: Any) -> Any:
        """A connection that tells of every statement that begins, those of triggers and COMMIT too."""
        connection = sqlite.driver().connect(*args, **settings)
        connection.set_trace_callback(self._count)
        return connection

    def die_at(self, statement: int) -> None:
        """Have this very process killed when that many statements more have begun."""
        self._left = statement

    def _count(self, _statement: str) -> None:
        self._left -= 1
        if self._left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def die_opening(path: Path, statement: int, acknowledge: Connection) -> None:
    """Open a database and die at a statement of that; acknowledge if there are not that many."""
    driver = _Doomed()
    driver.die_at(statement)
    with opened(path, holder=f"doomed at {statement}", module=driver):
        acknowledge.send((0, ""))


def die_appending(path: Path, statement: int, acknowledge: Connection) -> None:
    """Ask for one more node and die at a statement of that; acknowledge if there are not that many."""
    driver = _Doomed()
    with opened(path, holder=f"doomed at {statement}", module=driver) as ledger:
        driver.die_at(statement)
        ledger.execute(one_more(f"gpu-{statement:08d}"), CA)
        acknowledge.send((ledger.head.position, ledger.head.hash))
