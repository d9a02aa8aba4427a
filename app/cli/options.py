"""Options that several commands share, so that they mean the same everywhere."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from app.cli.render import Output
from app.errors import StoreError

DATABASE = Path("var/provider.db")


def group_names(incomplete: str) -> list[str]:
    """For completion: the node groups of the usual database."""
    return _names("node_groups", incomplete)


def known_names(incomplete: str) -> list[str]:
    """For completion: node groups and instances of the usual database."""
    return [*_names("node_groups", incomplete), *_names("instances", incomplete)]


def instance_names(incomplete: str) -> list[str]:
    """For completion: the instances of the usual database."""
    return _names("instances", incomplete)


def _names(table: str, incomplete: str) -> list[str]:
    from app.store.queries import names  # noqa: PLC0415 - only for whoever presses the tabulator
    from app.store.reading import asking  # noqa: PLC0415 - likewise

    try:
        with asking(DATABASE) as moment:
            return names(moment, table, incomplete)
    except StoreError:
        return []  # nothing to offer, and nobody asked for an error


DatabaseOption = Annotated[Path, typer.Option(help="The database file.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, json or yaml.")]
GroupOption = Annotated[
    str | None, typer.Option("--node-group", "-g", help="Only this group.", autocompletion=group_names)
]
NetworksOption = Annotated[
    list[str] | None,
    typer.Option(
        "--database-network-filesystems",
        metavar="TYPE",
        help="Network file systems, such as nfs4, that the database may lie on, as in the configuration; repeatable.",
    ),
]
WatchOption = Annotated[bool, typer.Option("--watch", "-w", help="Show it again every two seconds until Ctrl-C.")]


def moment(text: str) -> datetime:
    """A time as people type it: ISO 8601, in UTC unless it says otherwise.

    Raises:
        BadParameter: it is no time.
    """
    try:
        read = datetime.fromisoformat(text)
    except ValueError as error:
        message = f"{text!r} is no time such as 2026-01-05, 2026-01-05T14:30 or 2026-01-05T14:30:00+02:00"
        raise typer.BadParameter(message) from error
    return read.replace(tzinfo=UTC) if read.tzinfo is None else read.astimezone(UTC)


SinceOption = Annotated[
    datetime | None, typer.Option(parser=moment, metavar="TIME", help="From this time on, in UTC unless it says so.")
]
UntilOption = Annotated[datetime | None, typer.Option(parser=moment, metavar="TIME", help="Before this time.")]

NodesOption = Annotated[
    list[str] | None,
    typer.Option(
        "--nodes",
        metavar="MIN:MAX:TYPE:REGION:GROUP",
        help="A node group as the in-tree DataCrunch provider has it, with DATACRUNCH_* variables; repeatable.",
    ),
]
