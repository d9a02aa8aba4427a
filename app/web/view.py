"""What the dashboard shows, worked out: plain values for the templates, which decide nothing."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import groupby

from app.domain.books import Books
from app.domain.cluster.learning import kind_of
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.domain.pricing import hourly_price_of
from app.web.archive import Archive, DayCost, EventLine, SizeChange
from app.web.charts import Steps, shares, steps

PAGE_SIZE = 100
EVENTS = 50
SIZES_SINCE = timedelta(hours=24)
COST_DAYS = 14
_BAR = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Amount:
    """Money."""

    amount: Decimal
    currency: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRow:
    """A node group: its size, what stands behind it, what it costs now."""

    name: str
    instance_type: str
    target: int
    low: int
    high: int
    states: Sequence[tuple[str, int]]
    price: Amount | None
    cost: Sequence[Amount]
    notes: Sequence[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceRow:
    """A listed instance, with how long it has been wanted and what it has cost."""

    name: str
    node_group: str
    state: str
    machine: str
    location: str
    contract: str
    requested_at: datetime
    age: timedelta
    price: Amount | None
    cost: Amount | None
    trouble: str


@dataclass(frozen=True, slots=True, kw_only=True)
class InstancePage:
    """Some of the instances; `group` and `state` are what was asked for, empty for all."""

    rows: Sequence[InstanceRow]
    total: int
    number: int
    last: int
    group: str
    state: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeChart:
    """The course of a group's target size."""

    node_group: str
    now: int
    chart: Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRow:
    """A day's costs; `bar` is the length of its bar."""

    day: date
    total: Amount
    bar: int
    parts: Sequence[tuple[str, Amount]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """What was read from the audit views."""

    events: Sequence[EventLine]
    sizes: Sequence[SizeChart]
    costs: Sequence[CostRow]


def group_rows(books: Books) -> Sequence[GroupRow]:
    """Every group that is served or waits for its instance type to appear in the catalogue."""
    names = (name for name in books.group_order if _is_shown(books, books.groups[name]))
    return [_group_row(books, books.groups[name]) for name in names]


def _is_shown(books: Books, group: NodeGroup) -> bool:
    return not group.retired or not books.members(group.name).is_empty


def _group_row(books: Books, group: NodeGroup) -> GroupRow:
    members = books.members(group.name)
    low, high = books.size_limits(group)
    counts = Counter(instance.state for instance in members.listed)
    return GroupRow(
        name=group.name,
        instance_type=group.spec.instance_type,
        target=members.target_size,
        low=low,
        high=high,
        states=[(str(state), counts[state]) for state in InstanceState if counts[state]],
        price=_price(books, group),
        cost=_hourly(members.listed),
        notes=_notes(books, group),
    )


def _notes(books: Books, group: NodeGroup) -> Sequence[str]:
    notes: list[str] = []
    if group.retired:
        notes.append("retired: it only shrinks")
    if group.paused_at is not None:
        notes.append(f"paused by {group.paused_by}: {group.pause_reason}")
    if group.spec.instance_type not in books.cloud.catalogue:
        notes.append("not offered: the catalogue has no such instance type")
    learned = books.cluster.learned.get(kind_of(group.spec))
    if learned is not None:
        notes.append(f"its template follows node {learned.node}")
    if not group.retired and group.spec.max_size and books.target_size(group.name) >= group.spec.max_size:
        notes.append("at its maximum")
    return notes


def _price(books: Books, group: NodeGroup) -> Amount | None:
    """Of the next machine, if the first choice is to be had."""
    kind = books.cloud.catalogue.get(group.spec.instance_type)
    price = None if kind is None else hourly_price_of(group.spec, kind, group.spec.contracts[0])
    return None if kind is None or price is None else Amount(amount=price, currency=kind.currency)


def _hourly(instances: Sequence[Instance]) -> Sequence[Amount]:
    paid = [i for i in instances if i.instance_id is not None and i.price_per_hour is not None]
    return _sum([Amount(amount=i.price_per_hour or Decimal(0), currency=i.currency) for i in paid])


def _sum(amounts: Sequence[Amount]) -> Sequence[Amount]:
    """One amount for each currency; almost always one."""
    totals: dict[str, Decimal] = {}
    for amount in amounts:
        totals[amount.currency] = totals.get(amount.currency, Decimal(0)) + amount.amount
    return [Amount(amount=total, currency=currency) for currency, total in totals.items()]


def hourly_total(rows: Sequence[GroupRow]) -> Sequence[Amount]:
    """What everything costs an hour now."""
    return _sum([amount for row in rows for amount in row.cost])


def instance_page(books: Books, now: datetime, *, group: str = "", state: str = "", number: int = 1) -> InstancePage:
    """One page of the listed instances, newest wish first. A page beyond the last is the last."""
    found = [
        instance
        for instance in sorted(books.listed_instances(), key=lambda instance: -instance.ordinal)
        if group in {"", instance.node_group} and state in {"", instance.state}
    ]
    last = max(-(-len(found) // PAGE_SIZE), 1)
    number = min(max(number, 1), last)
    rows = [_instance_row(instance, now) for instance in found[(number - 1) * PAGE_SIZE : number * PAGE_SIZE]]
    return InstancePage(rows=rows, total=len(found), number=number, last=last, group=group, state=state)


def _instance_row(instance: Instance, now: datetime) -> InstanceRow:
    cost = instance.cost_until(now)
    price = instance.price_per_hour
    return InstanceRow(
        name=instance.name,
        node_group=instance.node_group,
        state=str(instance.state),
        machine=instance.instance_type or "",
        location=instance.location or "",
        contract=str(instance.contract or ""),
        requested_at=instance.requested_at,
        age=now - instance.requested_at,
        price=None if price is None else Amount(amount=price, currency=instance.currency),
        cost=None if cost is None else Amount(amount=cost, currency=instance.currency),
        trouble=instance.error_message or "",
    )


def past(archive: Archive, books: Books, now: datetime) -> Past:
    """Events, the course of target sizes, costs by day.

    Raises:
        StoreError: the database cannot be read.
    """
    since = now - SIZES_SINCE
    first_day = (now - timedelta(days=COST_DAYS - 1)).date()
    return Past(
        events=archive.events(EVENTS),
        sizes=_sizes(archive.size_changes(since), books, since, now),
        costs=_costs(archive.costs(first_day)),
    )


def _sizes(changes: Sequence[SizeChange], books: Books, since: datetime, now: datetime) -> Sequence[SizeChart]:
    by_group: dict[str, list[SizeChange]] = {
        name: [] for name in books.group_order if _is_shown(books, books.groups[name])
    }
    for change in changes:
        if change.at >= since:
            by_group.setdefault(change.node_group, []).append(change)
    return [
        SizeChart(
            node_group=name,
            now=books.target_size(name),
            chart=steps(
                [(change.at, change.target_size) for change in found],
                found[0].before if found else books.target_size(name),
                since,
                now,
            ),
        )
        for name, found in by_group.items()
    ]


def _costs(rows: Sequence[DayCost]) -> Sequence[CostRow]:
    """Newest day first; a day in two currencies is two rows."""
    days = [(key, list(found)) for key, found in groupby(sorted(rows, key=_by_day), key=_by_day)]
    totals = [sum((row.cost for row in found), Decimal(0)) for _, found in days]
    bars = shares(totals, _BAR)
    made = [
        CostRow(
            day=key[0],
            total=Amount(amount=total, currency=key[1]),
            bar=bar,
            parts=[(row.node_group, Amount(amount=row.cost, currency=row.currency)) for row in found],
        )
        for (key, found), total, bar in zip(days, totals, bars, strict=True)
    ]
    return made[::-1]


def _by_day(row: DayCost) -> tuple[date, str]:
    return row.day, row.currency
