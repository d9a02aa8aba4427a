"""Commands that look into the database, whether the server runs or not: `status`, `instances`, `events`."""

from pathlib import Path
from typing import Annotated

import typer

from app.cli.render import Output, Table, show
from app.store import queries

DatabaseOption = Annotated[Path, typer.Option(help="The database file.")]
OutputOption = Annotated[Output, typer.Option("--output", "-o", help="table, json or yaml.")]
GroupOption = Annotated[str | None, typer.Option("--node-group", "-g", help="Only this node group.")]
_DATABASE = Path("var/provider.db")


def status(*, database: DatabaseOption = _DATABASE, output: OutputOption = Output.TABLE) -> None:
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
    database: DatabaseOption = _DATABASE,
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


def events(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, the newest.")] = 50,
    node_group: GroupOption = None,
    instance: Annotated[str | None, typer.Option("--instance", "-i", help="Only this instance.")] = None,
    database: DatabaseOption = _DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """The log in words, oldest first."""
    rows = queries.events(database, limit=limit, node_group=node_group, instance=instance)
    if output is not Output.TABLE:
        show(output, list(rows))
        return
    Table("position", "recorded_at", "actor", "what").print(rows)
