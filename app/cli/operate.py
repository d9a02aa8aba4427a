"""What an operator does to a node group by hand: `pause`, `resume`, `drain`, `adopt`. Recorded with the reason."""

from decimal import Decimal
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.admin.client import ask
from app.admin.protocol import Request, socket_of
from app.cli.asked import require_group
from app.cli.options import DATABASE, group_names
from app.cli.render import Table
from app.cli.watch import interrupted
from app.store import queries
from app.store.reading import asking

_EXIT_NOT_YET = 1
_LOOK_AGAIN_S = 1.0

GroupArgument = Annotated[str, typer.Argument(metavar="GROUP", help="The node group.", autocompletion=group_names)]
ReasonOption = Annotated[str, typer.Option("--reason", "-r", help="Why; those who look later will ask.")]
ServersDatabaseOption = Annotated[
    Path, typer.Option("--database", help="The running server's; its socket is beside it.")
]


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("pause")(pause)
    cli.command("resume")(resume)
    cli.command("drain")(drain)
    cli.command("adopt")(adopt)


def pause(node_group: GroupArgument, *, reason: ReasonOption, database: ServersDatabaseOption = DATABASE) -> None:
    """Let a node group grow no more until `resume`; it may still shrink, and what was granted goes on."""
    _do("pause", node_group, reason, database)


def resume(node_group: GroupArgument, *, reason: ReasonOption, database: ServersDatabaseOption = DATABASE) -> None:
    """Let a paused node group grow again."""
    _do("resume", node_group, reason, database)


def drain(
    node_group: GroupArgument,
    *,
    reason: ReasonOption,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    wait: Annotated[
        bool, typer.Option(help="Wait until each machine is proven gone; Ctrl-C only ends the wait.")
    ] = True,
    database: ServersDatabaseOption = DATABASE,
) -> None:
    """Pause a node group and delete all its machines now.

    Shows them with what they cost before it asks. Kubernetes is not asked: what runs on the machines ends with them.
    Move it away first with `kubectl drain`. Exit code 1 if the wait was ended before they were gone.
    """
    if not yes:
        _print_doomed(node_group, database)
        typer.confirm(f"Delete all machines of {node_group}, with whatever runs on them?", abort=True)
    _do("drain", node_group, reason, database)
    if wait and not _seen_gone(node_group, database):
        typer.echo("they are still being deleted, which goes on without this: `instances` shows how far it is")
        raise typer.Exit(_EXIT_NOT_YET)


def _machines_of(node_group: str, database: Path) -> queries.Rows:
    with asking(database) as moment:
        require_group(moment, node_group, "GROUP")
        return queries.instances(moment, node_group=node_group, ended=False)


def _print_doomed(node_group: str, database: Path) -> None:
    machines = _machines_of(node_group, database)
    if not machines:
        return
    Table("instance", "state", "instance_type", "price_per_hour", "currency").print(machines)
    prices = [Decimal(row["price_per_hour"]) for row in machines if row["instance_id"] and row["price_per_hour"]]
    typer.echo(f"{len(machines)} instances, {sum(prices, Decimal(0))} an hour")


def _seen_gone(node_group: str, database: Path) -> bool:
    """Tell of each machine when it is proven gone; False if somebody does not want to wait for the last one."""
    stop, left = interrupted(), {row["instance"] for row in _machines_of(node_group, database)}
    while left:
        if stop.wait(_LOOK_AGAIN_S):
            return False
        known, left = left, {row["instance"] for row in _machines_of(node_group, database)}
        for name in sorted(known - left):
            typer.echo(f"{name} is proven gone")
    return True


def adopt(
    *,
    hostname_prefix: Annotated[str, typer.Option(help="What the machines' host names begin with, exactly.")],
    group: Annotated[str, typer.Option(help="The node group that takes them in.")],
    reason: Annotated[str, typer.Option("--reason", "-r", help="Why.")] = "made by another tool",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do it; without this it is only told.")] = False,
    database: ServersDatabaseOption = DATABASE,
) -> None:
    """Take over machines that another tool made. Without --yes nothing happens but a list of what would.

    Adopted machines are like our own from then on: Cluster Autoscaler may delete them. Stop the other tool first.
    """
    request = Request(
        command="adopt", node_group=group, reason=reason, hostname_prefix=hostname_prefix, dry_run=not yes
    )
    for sentence in ask(socket_of(database), request):
        typer.echo(sentence)
    if not yes:
        typer.echo("nothing was changed: say --yes to do it")


def _do(command: Literal["pause", "resume", "drain"], node_group: str, reason: str, database: Path) -> None:
    for sentence in ask(socket_of(database), Request(command=command, node_group=node_group, reason=reason)):
        typer.echo(sentence)
