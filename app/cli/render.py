"""Rendering answers: tables that become plain text when nobody looks, JSON, YAML."""

import json
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any

import rich.box
import rich.table
import typer
import yaml
from rich.console import Console


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


class Table:
    """Rows under the columns that are named; wide terminals also get the further ones."""

    def __init__(self, *columns: str) -> None:
        self._columns = list(columns)
        self._more: list[str] = []

    def also(self, *columns: str) -> "Table":
        """Columns that are shown where there is room."""
        self._more.extend(columns)
        return self

    def print(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Draw it; in a pipe lines are never cut."""
        console = Console(soft_wrap=True) if _is_piped() else Console()
        wide = _is_piped() or console.width >= _WIDE
        columns = [*self._columns, *(self._more if wide else [])]
        if _is_piped():
            for line in _plain(columns, rows):
                typer.echo(line)
            return
        table = rich.table.Table(box=rich.box.SIMPLE_HEAD)
        for column in columns:
            numeric = bool(rows) and all(isinstance(row.get(column), int | float) for row in rows)
            table.add_column(column.replace("_", " "), justify="right" if numeric else "left", overflow="fold")
        for row in rows:
            table.add_row(*(_cell(row.get(column)) for column in columns))
        console.print(table)


_WIDE = 140


def _is_piped() -> bool:
    return not Console().is_terminal


def _plain(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = [list(columns), *([_cell(row.get(column)) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(columns))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _cell(value: object) -> str:
    return "-" if value is None else str(value)
