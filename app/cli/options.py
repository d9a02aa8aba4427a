"""Options that several commands share, so that they mean the same everywhere."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.render import Output

DatabaseOption = Annotated[Path, typer.Option(help="The database file.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, json or yaml.")]
GroupOption = Annotated[str | None, typer.Option("--node-group", "-g", help="Only this node group.")]
DATABASE = Path("var/provider.db")
