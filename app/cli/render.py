"""Rendering answers: tables that become plain text when nobody looks, JSON, YAML."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import rich.box
import rich.table
import typer
import yaml
from rich.console import Console
from rich.progress import Progress


class Output(StrEnum):
    """Forms of an answer."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


def show(output: Output, value: object) -> None:
    """Print a value for a program to read."""
    if output is Output.JSON:
        typer.echo(json.dumps(value, indent=2, default=str))
    else:
        typer.echo(yaml.safe_dump(json.loads(json.dumps(value, default=str)), sort_keys=False), nl=False)


@contextmanager
def progress_bar(words: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on standard error for something that takes long: tell it how much is done, and of how much.

    Only on a terminal; it is gone afterwards.
    """
    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(words, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


class Table:
    """Rows under columns that are named in the order of their importance; narrow terminals get the first ones.

    `always` are shown on any: what the table is about.
    """

    def __init__(self, *columns: str, always: Sequence[str] = ()) -> None:
        self._columns = columns
        self._always = frozenset((columns[0], *always))

    def print(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Draw it; in a pipe lines are never cut, and every column is there."""
        console = Console()
        if not console.is_terminal:
            for line in _plain(self._columns, rows):
                typer.echo(line)
            return
        shown = self._fitting(rows, console.width)
        table = rich.table.Table(box=rich.box.SIMPLE_HEAD)
        for column in shown:
            numeric = bool(rows) and all(isinstance(row.get(column), int | float) for row in rows)
            table.add_column(
                _head(column), justify="right" if numeric else "left", overflow="fold", no_wrap=column not in _SENTENCES
            )
        for row in rows:
            table.add_row(*(_cell(row.get(column)) for column in shown))
        console.print(table)
        if len(shown) < len(self._columns):
            more = ", ".join(_head(column) for column in self._columns if column not in shown)
            console.print(f"wider terminals show more: {more}", style="dim", highlight=False)

    def _fitting(self, rows: Sequence[Mapping[str, Any]], width: int) -> Sequence[str]:
        """As many of the columns as fit in full."""
        shown = list(self._columns)
        while sum(_room(column, rows) for column in shown) >= width:
            last = next((column for column in reversed(shown) if column not in self._always), None)
            if last is None:
                break
            shown.remove(last)
        return shown


_SENTENCES = frozenset({"what", "reason", "note"})
"""Columns of words, which may take several lines; a name that is cut can neither be read nor copied."""
_NARROWEST_SENTENCE = 16
_BESIDE_A_CELL = 3


def _room(column: str, rows: Sequence[Mapping[str, Any]]) -> int:
    needed = max(len(text) for text in (_head(column), *(_cell(row.get(column)) for row in rows)))
    return _BESIDE_A_CELL + (min(needed, _NARROWEST_SENTENCE) if column in _SENTENCES else needed)


def _head(column: str) -> str:
    return column.replace("_", " ")


def _plain(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [list(columns), *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
