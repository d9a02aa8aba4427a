"""The log itself: `state` at any time, `export` of everything."""

import csv
import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, TextIO

import typer

from app.cli.options import DATABASE, DatabaseOption, OutputOption, moment
from app.cli.render import Output, Table, show
from app.clock import SystemClock
from app.domain.books import Books
from app.errors import ProviderError
from app.store import queries
from app.store.past import books_at, recorded_at
from app.store.reading import asking

Exported = StrEnum("Exported", [(name.upper(), name.replace("_", "-")) for name in queries.EXPORTED])  # type: ignore[misc] # mypy wants a literal


class Format(StrEnum):
    """Forms of an export."""

    JSONL = "jsonl"
    CSV = "csv"


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("state")(state)
    cli.command("export")(export)


def state(
    *,
    at: Annotated[
        datetime | None, typer.Option(parser=moment, metavar="TIME", help="As it was then, in UTC unless it says so.")
    ] = None,
    position: Annotated[int | None, typer.Option(min=0, help="As it was after this position of the log.")] = None,
    all_: Annotated[bool, typer.Option("--all", "-a", help="Also instances that had ended by then.")] = False,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """Node groups and instances as they were at some time, folded from the log.

    Costs are those up to then.
    """
    if at is not None and position is not None:
        raise typer.BadParameter("give a time or a position, not both", param_hint="--position")
    with asking(database) as look:
        books = books_at(look, at, position)
        recorded = None if position is None else recorded_at(look, position)
    if position is not None and position > books.position:
        raise typer.BadParameter(f"the log ends at position {books.position}", param_hint="--position")
    now = SystemClock().now()
    then = recorded or min(at or now, now)
    groups, instances = _groups(books), list(_instances(books, then, ended=all_))
    if output is not Output.TABLE:
        show(output, {"position": books.position, "node_groups": groups, "instances": instances})
        return
    typer.echo(f"after position {books.position} of the log")
    Table("node_group", "target_size", "min_size", "max_size", "instance_type", "retired").print(groups)
    Table("instance", "state", "instance_id", "instance_type", "contract", "location", "cost", "currency").print(
        instances
    )


def _groups(books: Books) -> list[dict[str, Any]]:
    return [
        {
            "node_group": name,
            "instance_type": group.spec.instance_type,
            "target_size": books.target_size(name),
            "min_size": books.size_limits(group)[0],
            "max_size": books.size_limits(group)[1],
            "retired": group.retired,
        }
        for name in books.group_order
        for group in (books.groups[name],)
    ]


def _instances(books: Books, at: datetime, *, ended: bool) -> Iterator[dict[str, Any]]:
    for instance in sorted(books.instances.values(), key=lambda one: one.ordinal):
        if ended or not instance.state.is_ended:
            yield {
                "instance": instance.name,
                "node_group": instance.node_group,
                "state": str(instance.state),
                "instance_id": instance.instance_id,
                "instance_type": instance.instance_type,
                "contract": instance.contract and str(instance.contract),
                "location": instance.location,
                "created_at": instance.created_at and instance.created_at.isoformat(),
                "cost": instance.cost if instance.cost is not None else instance.cost_until(at),
                "currency": instance.currency,
            }


def export(
    what: Annotated[Exported, typer.Argument(help="The log itself, or one of the audit views.")] = Exported["EVENTS"],
    *,
    form: Annotated[Format, typer.Option("--format", "-f", help="jsonl (a JSON object a line) or csv.")] = Format.JSONL,
    to: Annotated[Path | None, typer.Option(help="A new file, in place of the standard output.")] = None,
    database: DatabaseOption = DATABASE,
) -> None:
    """Take out the whole log, or an audit view, as JSON lines or CSV."""
    with asking(database) as look, _target(to) as target:
        rows = queries.exported(look, str(what).replace("-", "_"))
        (_write_jsonl if form is Format.JSONL else _write_csv)(rows, target)


@contextmanager
def _target(to: Path | None) -> Iterator[TextIO]:
    if to is None:
        yield sys.stdout
        return
    try:
        with to.open("x", encoding="utf-8", newline="") as file:
            yield file
    except FileExistsError as error:
        raise typer.BadParameter(f"{to} exists: name a new file", param_hint="--to") from error
    except OSError as error:
        raise ProviderError(f"cannot write {to}: {error.strerror}") from error


def _write_jsonl(rows: Iterable[dict[str, Any]], target: TextIO) -> None:
    for row in rows:
        values = {**row, "data": json.loads(row["data"])} if "data" in row else row
        target.write(json.dumps(values, ensure_ascii=False) + "\n")


def _write_csv(rows: Iterable[dict[str, Any]], target: TextIO) -> None:
    writer: csv.DictWriter[str] | None = None
    for row in rows:
        if writer is None:
            writer = csv.DictWriter(target, fieldnames=list(row), lineterminator="\n")
            writer.writeheader()
        writer.writerow(row)
