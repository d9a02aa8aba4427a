"""How things are: `status`, `instances`. They look into the database, whether the server runs or not."""

from typing import Annotated

import typer

from app.cli.options import DATABASE, DatabaseOption, GroupOption, OutputOption
from app.cli.render import Output, Table, show
from app.store import queries


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("status")(status)
    cli.command("instances")(instances)


def status(*, database: DatabaseOption = DATABASE, output: OutputOption = Output.TABLE) -> None:
    """Node groups with their sizes and costs, and how the cloud is doing."""
    overview = queries.overview(database)
    groups = queries.groups(database)
    if output is not Output.TABLE:
        show(output, {**overview, "node_groups": list(groups)})
        return
    reachable = {1: "reachable", 0: f"NOT reachable: {overview['cloud_trouble']}"}.get(
        overview["cloud_reachable"], "never reached"
    )
    typer.echo(f"cluster {overview['cluster']}, installation {overview['installation']}, epoch {overview['epoch']}")
    typer.echo(f"cloud {overview['backend']} {reachable} since {overview['cloud_since']}")
    typer.echo(f"log at position {overview['position']}, last event {overview['last_event_at']}")
    for key, words in (("surplus", "machines too many being deleted"), ("orphans", "machines that are not ours")):
        if overview[key]:
            typer.echo(f"{overview[key]} {words}")
    Table("node_group", "instance_type", "target_size", "creating", "running", "failed", "deleting").also(
        "min_size", "max_size", "cost_per_hour"
    ).print(groups)


def instances(
    *,
    node_group: GroupOption = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also those that have ended.")] = False,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Instances: state, machine, price and what they have cost."""
    rows = queries.instances(database, node_group=node_group, ended=all_)
    if output is not Output.TABLE:
        show(output, list(rows))
        return
    Table("instance", "state", "instance_type", "contract", "location", "hours", "cost", "currency").also(
        "instance_id", "reason"
    ).print(rows)
