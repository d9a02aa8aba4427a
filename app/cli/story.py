"""What happened: `events`."""

from typing import Annotated

import typer

from app.cli.options import DATABASE, DatabaseOption, GroupOption, OutputOption
from app.cli.render import Output, Table, show
from app.store import queries


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("events")(events)


def events(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, the newest.")] = 50,
    node_group: GroupOption = None,
    instance: Annotated[str | None, typer.Option("--instance", "-i", help="Only this instance.")] = None,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """The log in words, oldest first."""
    rows = queries.events(database, limit=limit, node_group=node_group, instance=instance)
    if output is not Output.TABLE:
        show(output, list(rows))
        return
    Table("position", "recorded_at", "actor", "what").print(rows)
