"""Showing something again and again."""

import threading
from collections.abc import Callable

import typer
from rich.console import Console

EVERY_S = 2.0


def shown(draw: Callable[[], None], *, again: bool, every_s: float = EVERY_S) -> None:
    """Draw once, or until Ctrl-C; on a terminal each picture replaces the one before."""
    console = Console()
    try:
        while True:
            if again and console.is_terminal:
                console.clear()
            draw()
            if not again:
                return
            threading.Event().wait(every_s)
    except KeyboardInterrupt:
        typer.echo()
