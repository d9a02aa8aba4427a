"""What happened and why: `events`, `history`, `explain`."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.asked import instance_of, require_group, require_order
from app.cli.options import (
    DATABASE,
    DatabaseOption,
    GroupOption,
    OutputOption,
    SinceOption,
    UntilOption,
    WatchOption,
    instance_names,
    known_names,
)
from app.cli.render import Output, Table, show
from app.cli.watch import interrupted, shown
from app.store import queries
from app.store.reading import asking

_FOLLOW_S = 1.0
_MANY = 1_000_000

InstanceArgument = Annotated[
    str, typer.Argument(help="Name, Verda's instance id or provider id.", autocompletion=instance_names)
]
NameArgument = Annotated[
    str,
    typer.Argument(metavar="INSTANCE|GROUP", help="An instance or a node group.", autocompletion=known_names),
]


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("events")(events)
    cli.command("history")(history)
    cli.command("explain")(explain)


def events(
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="How many, the newest.")] = 50,
    node_group: GroupOption = None,
    instance: Annotated[
        str | None, typer.Option("--instance", "-i", help="Only this instance.", autocompletion=instance_names)
    ] = None,
    event_type: Annotated[
        str | None, typer.Option("--type", "-t", help="Only types that begin so: instance.create, cloud …")
    ] = None,
    actor: Annotated[str | None, typer.Option(help="Only of this actor, such as cluster-autoscaler.")] = None,
    correlation_id: Annotated[str | None, typer.Option(help="Only of this call or job run.")] = None,
    since: SinceOption = None,
    until: UntilOption = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on with new ones until Ctrl-C.")] = False,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """The log in words, oldest first."""
    require_order(since, until)
    with asking(database) as moment:
        require_group(moment, node_group)
        wanted = queries.Wanted(
            node_group=node_group,
            instance=None if instance is None else instance_of(moment, instance, "--instance"),
            type=_beginning(event_type),
            actor=actor,
            correlation_id=correlation_id,
            since=_stored(since),
            until=_stored(until),
        )
        rows = queries.events(moment, wanted, limit=limit)
    if follow:
        _follow(database, wanted, rows, output)
    else:
        _print_events(rows, output)


def _beginning(event_type: str | None) -> str | None:
    """The beginning of a type, if there are such types."""
    from app.domain.registry import EVENT_TYPES  # noqa: PLC0415 - the domain is loaded for this option alone

    if event_type is None or any(name.startswith(event_type) for name in EVENT_TYPES):
        return event_type
    category = event_type.partition(".")[0]
    near = [name for name in EVENT_TYPES if name.startswith(f"{category}.")]
    shown = sorted(near) or sorted({f"{name.partition('.')[0]}." for name in EVENT_TYPES})
    message = f"no type of event begins with {event_type!r}: there are {', '.join(shown)}"
    raise typer.BadParameter(message, param_hint="--type")


def _stored(at: datetime | None) -> str | None:
    """A time as the log has it, so that text order is time order."""
    return None if at is None else at.isoformat(timespec="microseconds").replace("+00:00", "Z")


def _print_events(rows: Sequence[dict[str, Any]], output: Output) -> None:
    if output is Output.TABLE:
        Table("position", "recorded_at", "actor", "what", always=("what",)).print(rows)
    else:
        show(output, list(rows))


def _follow(database: Path, wanted: queries.Wanted, rows: Sequence[dict[str, Any]], output: Output) -> None:
    """A line an event, so that the next one can be added."""
    stop, after = interrupted(), 0
    while not stop.is_set():
        for row in rows:
            line = f"{row['position']}  {row['recorded_at']}  {row['actor']}  {row['what']}"
            typer.echo(line if output is Output.TABLE else json.dumps(row))
            after = row["position"]
        stop.wait(_FOLLOW_S)
        with asking(database) as moment:
            rows = queries.events(moment, wanted, limit=_MANY, after=after)


def history(
    instance: InstanceArgument,
    *,
    watch: WatchOption = False,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Every event of one instance, with the time since the one before."""

    def draw() -> None:
        with asking(database) as moment:
            rows = queries.events(moment, queries.Wanted(instance=instance_of(moment, instance)), limit=_MANY)
        if output is Output.TABLE:
            _print_history(rows)
        else:
            show(output, list(rows))

    shown(draw, again=watch)


def _print_history(rows: Sequence[dict[str, Any]]) -> None:
    before: datetime | None = None
    lines = []
    for row in rows:
        at = datetime.fromisoformat(row["recorded_at"])
        passed = "" if before is None else f"+{(at - before).total_seconds():.1f}s"
        lines.append({**row, "after": passed})
        before = at
    Table("recorded_at", "after", "actor", "what", always=("what",)).print(lines)


def explain(
    name: NameArgument,
    *,
    watch: WatchOption = False,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """One page in plain words: an instance's life and cost, or why a node group does or does not grow."""
    from app.cli.explanation import explained  # noqa: PLC0415 - the domain is loaded for this command alone

    def draw() -> None:
        page = explained(database, name)
        if page is None:
            message = f"there is no instance and no node group {name!r}: `groups` and `instances --all` list them"
            raise typer.BadParameter(message, param_hint="INSTANCE|GROUP")
        if output is not Output.TABLE:
            show(output, asdict(page))
            return
        for line in page.lines:
            typer.echo(line)

    shown(draw, again=watch)
