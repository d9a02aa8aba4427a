"""What it costs: `costs`."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any

import typer

from app.cli.asked import require_group, require_order
from app.cli.options import DATABASE, DatabaseOption, GroupOption, OutputOption, SinceOption, UntilOption, WatchOption
from app.cli.render import Output, Table, show
from app.cli.watch import shown
from app.domain.billing import Period, totals
from app.store import queries
from app.store.reading import asking

_TENTH_OF_A_SECOND = Decimal("0.0001")  # of an hour, nearly


class By(StrEnum):
    """What costs are added up by."""

    GROUP = "group"
    DAY = "day"
    CONTRACT = "contract"
    INSTANCE = "instance"


_KEYS: Mapping[By, tuple[str, Callable[[Period], str | None]]] = {
    By.GROUP: ("node_group", lambda period: period.node_group),
    By.DAY: ("day", lambda period: period.day.isoformat()),
    By.CONTRACT: ("contract", lambda period: period.contract),
    By.INSTANCE: ("instance", lambda period: period.instance),
}


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("costs")(costs)


def costs(
    *,
    by: Annotated[By, typer.Option(help="group, day, contract or instance.")] = By.GROUP,
    node_group: GroupOption = None,
    since: SinceOption = None,
    until: UntilOption = None,
    watch: WatchOption = False,
    database: DatabaseOption = DATABASE,
    output: OutputOption = Output.TABLE,
) -> None:
    """What the machines have cost: price times time, and separately what of it was of no use."""
    require_order(since, until)

    def draw() -> None:
        with asking(database) as moment:
            require_group(moment, node_group)
            billed, wasted = queries.billing(moment), queries.waste(moment)
        column, key = _KEYS[by]
        asked = Asked(node_group=node_group, since=since, until=until, by_day=by is By.DAY)
        rows = _rows(column, asked.within(billed), key)
        total = _rows(column, asked.within(billed), _always("total"))
        waste = _waste(wasted, asked)
        if output is Output.TABLE:
            _print_costs(column, [*rows, *total], waste)
        else:
            show(output, {"by": by, "costs": rows, "total": total, "waste": waste})

    shown(draw, again=watch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Whose costs, of what time, and whether each day by itself."""

    node_group: str | None
    since: datetime | None
    until: datetime | None
    by_day: bool

    def within(self, rows: Iterable[Mapping[str, Any]]) -> Iterator[Period]:
        """The parts of these periods that are asked for."""
        for period in map(_period, rows):
            part = period.within(self.since, self.until)
            if part is not None and self.node_group in {None, part.node_group}:
                yield from part.by_day() if self.by_day else (part,)


def _waste(wasted: queries.Rows, asked: Asked) -> list[dict[str, Any]]:
    kinds = dict.fromkeys(row["kind"] for row in wasted)
    return [
        line
        for kind in kinds
        for line in _rows("waste", asked.within(row for row in wasted if row["kind"] == kind), _always(kind))
    ]


def _print_costs(column: str, rows: Sequence[dict[str, Any]], waste: Sequence[dict[str, Any]]) -> None:
    Table(column, "instances", "hours", "cost", "currency").print(rows)
    if waste:
        typer.echo("\nof no use (a ghost, a machine too many, is on top of the costs above; the rest is in them):")
        Table("waste", "instances", "hours", "cost", "currency").print(waste)


def _always(value: str) -> Callable[[Period], str]:
    return lambda _: value


def _period(row: Mapping[str, Any]) -> Period:
    return Period(
        instance=row["instance"],
        node_group=row["node_group"],
        contract=row["contract"],
        since=datetime.fromisoformat(row["since"]),
        until=datetime.fromisoformat(row["until"]),
        price_per_hour=Decimal(row["price_per_hour"]),
        currency=row["currency"],
    )


def _rows(column: str, periods: Iterable[Period], key: Callable[[Period], str | None]) -> list[dict[str, Any]]:
    return [
        {
            column: value,
            "instances": total.instances,
            "hours": str(total.hours.quantize(_TENTH_OF_A_SECOND)),
            "cost": str(total.cost),
            "currency": total.currency,
        }
        for value, in_currencies in totals(periods, key).items()
        for total in in_currencies
    ]
