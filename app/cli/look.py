"""How things are: `status`, `groups`, `instances`. They look into the database, whether the server runs or not."""

from typing import Annotated, Any

import typer

from app.cli.options import DATABASE, DatabaseOption, GroupOption, OutputOption, WatchOption
from app.cli.render import Output, Table, show
from app.cli.watch import shown
from app.store import queries
from app.store.holder import holder_of
from app.store.reading import asking

_EXIT_UNWELL = 1


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("status")(status)
    cli.command("groups")(groups)
    cli.command("instances")(instances)


def status(
    *, watch: WatchOption = False, database: DatabaseOption = DATABASE, output: OutputOption = Output.TABLE
) -> None:
    """Node groups with their sizes and costs, and how the cloud is doing.

    Exit code 1 if the cloud does not answer or was never reached.
    """
    well = True

    def draw() -> None:
        nonlocal well
        with asking(database) as moment:
            overview, groups = queries.overview(moment), queries.groups(moment)
        overview["served_by"] = holder_of(database)
        well = bool(overview["cloud_reachable"])
        if output is Output.TABLE:
            _print_overview(overview)
            _group_table().print(groups)
        else:
            show(output, {**overview, "node_groups": list(groups)})

    shown(draw, again=watch)
    if not well:
        raise typer.Exit(_EXIT_UNWELL)


def _print_overview(overview: dict[str, Any]) -> None:
    reachable = {1: "reachable", 0: f"NOT reachable: {overview['cloud_trouble']}"}.get(
        overview["cloud_reachable"], "never reached"
    )
    typer.echo(f"cluster {overview['cluster']}, installation {overview['installation']}, epoch {overview['epoch']}")
    typer.echo(f"served by {overview['served_by'] or 'no process that can be seen from here'}")
    typer.echo(f"cloud {overview['backend']} {reachable} since {overview['cloud_since']}")
    typer.echo(f"log at position {overview['position']}, last event {overview['last_event_at']}")
    for key, words in (("surplus", "machines too many being deleted"), ("orphans", "machines that are not ours")):
        if overview[key]:
            typer.echo(f"{overview[key]} {words}")


def _group_table() -> Table:
    return Table("node_group", "instance_type", "target_size", "creating", "running", "failed", "deleting").also(
        "stopped", "min_size", "max_size", "cost_per_hour", "paused"
    )


def groups(
    *, watch: WatchOption = False, database: DatabaseOption = DATABASE, output: OutputOption = Output.TABLE
) -> None:
    """Node groups: target size, instances by state, limits, cost an hour."""

    def draw() -> None:
        with asking(database) as moment:
            rows = queries.groups(moment)
        if output is Output.TABLE:
            _group_table().print(rows)
        else:
            show(output, list(rows))

    shown(draw, again=watch)


def instances(
    *,
    node_group: GroupOption = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    watch: WatchOption = False,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Instances: state, machine, price and what they have cost."""

    def draw() -> None:
        with asking(database) as moment:
            rows = queries.instances(moment, node_group=node_group, ended=all_)
        if output is Output.TABLE:
            Table("instance", "state", "instance_type", "contract", "location", "hours", "cost", "currency").also(
                "instance_id", "reason"
            ).print(rows)
        else:
            show(output, list(rows))

    shown(draw, again=watch)
