"""Showing something again and again, until Ctrl-C."""

import signal
import threading
from collections.abc import Callable
from types import FrameType

from rich.console import Console

EVERY_S = 2.0


def interrupted() -> threading.Event:
    """An event set by the first SIGINT or SIGTERM; the second one ends the process as usual."""
    stop = threading.Event()

    def _handle(number: int, _frame: FrameType | None) -> None:
        signal.signal(number, signal.SIG_DFL)
        stop.set()

    signal.signal(signal.SIGINT, _handle)
    signal.signal(signal.SIGTERM, _handle)
    return stop


def shown(draw: Callable[[], None], *, again: bool) -> None:
    """Draw once, or until Ctrl-C; on a terminal each picture replaces the one before."""
    if not again:
        draw()
        return
    console, stop = Console(), interrupted()
    while not stop.is_set():
        if console.is_terminal:
            console.clear()
        draw()
        stop.wait(EVERY_S)
