"""How things are: `status`, `groups`, `instances`. They look into the database, whether the server runs or not."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated, Any

import typer

from app.cli.asked import require_group
from app.cli.options import DATABASE, DatabaseOption, GroupOption, OutputOption, WatchOption
from app.cli.render import Output, Table, show
from app.cli.watch import shown
from app.clock import SystemClock
from app.domain.words import at, span
from app.store import queries
from app.store.holder import holder_of
from app.store.reading import asking

if TYPE_CHECKING:
    from app.cli.condition import Condition

_EXIT_UNWELL = 1
_A_SECOND = timedelta(seconds=1)


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("status")(status)
    cli.command("groups")(groups)
    cli.command("instances")(instances)


def status(
    *, watch: WatchOption = False, database: DatabaseOption = DATABASE, output: OutputOption = Output.TABLE
) -> None:
    """Node groups with their sizes and costs, and how the cloud is doing.

    With what keeps the server from being ready, and what is worth a look. Exit code 1 if it cannot be ready, or the
    cloud does not answer.
    """
    from app.cli.condition import condition_of  # noqa: PLC0415 - the domain is loaded for this command alone
    from app.store.past import books_open  # noqa: PLC0415 - likewise

    well = True

    def draw() -> None:
        nonlocal well
        with asking(database) as moment:
            overview, groups = queries.overview(moment), queries.groups(moment)
            condition = condition_of(books_open(moment))
        overview["served_by"] = holder_of(database)
        well = bool(overview["cloud_reachable"]) and not condition.obstacles
        if output is Output.TABLE:
            _print_overview(overview, condition)
            _group_table().print([_noted(group) for group in groups])
        else:
            show(output, {**overview, **asdict(condition), "node_groups": list(groups)})

    shown(draw, again=watch)
    if not well:
        raise typer.Exit(_EXIT_UNWELL)


def _print_overview(overview: dict[str, Any], condition: "Condition") -> None:
    reachable = {1: "reachable", 0: f"NOT reachable: {overview['cloud_trouble']},"}.get(
        overview["cloud_reachable"], "never reached, as"
    )
    typer.echo(f"cluster {overview['cluster']}, installation {overview['installation']}, epoch {overview['epoch']}")
    if overview["served_by"] is None:
        typer.echo("served by no process that can be seen from here: what follows is as the last event left it")
    else:
        typer.echo(f"served by {overview['served_by']}")
    typer.echo(f"cloud {overview['backend']} {reachable} since {_ago(overview['cloud_since'])}")
    typer.echo(f"log at position {overview['position']}, last event {_ago(overview['last_event_at'])}")
    for key, words in (("surplus", "machines too many being deleted"), ("orphans", "machines that are not ours")):
        if overview[key]:
            typer.echo(f"{overview[key]} {words}")
    for reason in condition.obstacles:
        typer.echo(f"NOT READY, {reason.code}: {reason.message}")
    for reason in condition.remarks:
        typer.echo(f"worth a look, {reason.code}: {reason.message}")


def _ago(stored: str | None) -> str:
    if stored is None:
        return "its beginning"
    time = datetime.fromisoformat(stored)
    passed = SystemClock().now() - time
    return f"{at(time)} ({span(passed)} ago)" if passed >= _A_SECOND else f"{at(time)} (just now)"


def _group_table() -> Table:
    return Table(
        *("node_group", "target_size", "running", "creating", "failed", "deleting", "note", "stopped"),
        *("min_size", "max_size", "cost_per_hour", "instance_type", "template_from"),
        always=("target_size", "running", "note"),
    )


def _noted(group: dict[str, Any]) -> dict[str, Any]:
    """With what an operator must not overlook, in a word or two."""
    note = "retired" if group["retired"] else None
    return {**group, "note": f"paused: {group['paused']}" if group["paused"] is not None else note}


def groups(
    *, watch: WatchOption = False, database: DatabaseOption = DATABASE, output: OutputOption = Output.TABLE
) -> None:
    """Node groups: target size, instances by state, limits, cost an hour, the node that corrected the template."""

    def draw() -> None:
        with asking(database) as moment:
            rows = queries.groups(moment)
        if output is Output.TABLE:
            _group_table().print([_noted(group) for group in rows])
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
            require_group(moment, node_group)
            rows = queries.instances(moment, node_group=node_group, ended=all_)
        if output is Output.TABLE:
            Table(
                *("instance", "state", "contract", "cost", "currency", "instance_type", "hours", "location"),
                *("instance_id", "reason"),
                always=("state",),
            ).print(rows)
        else:
            show(output, list(rows))

    shown(draw, again=watch)
