"""What machines cost: price times time, in decimals."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import TypeVar

_MICROSECOND = timedelta(microseconds=1)
_HOUR = Decimal(3_600_000_000)
_MILLIONTH = Decimal("0.000001")
Key = TypeVar("Key", bound=Hashable)


def cost_of(price_per_hour: Decimal, time: timedelta) -> Decimal:
    """Price times time, not rounded; nothing for a time that is negative."""
    return price_per_hour * max(time // _MICROSECOND, 0) / _HOUR


def rounded(cost: Decimal) -> Decimal:
    """To a millionth, which is how costs are told and kept."""
    return cost.quantize(_MILLIONTH)


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A machine at one price for some time. `until` is not before `since`."""

    instance: str
    node_group: str
    contract: str | None
    since: datetime
    until: datetime
    price_per_hour: Decimal
    currency: str

    @property
    def cost(self) -> Decimal:
        """Not rounded."""
        return cost_of(self.price_per_hour, self.until - self.since)

    @property
    def hours(self) -> Decimal:
        """Not rounded."""
        return cost_of(Decimal(1), self.until - self.since)

    @property
    def day(self) -> date:
        """The day in UTC on which it begins."""
        return self.since.astimezone(UTC).date()

    def within(self, since: datetime | None, until: datetime | None) -> "Period | None":
        """The part of it between two times, None if there is none."""
        begins = max(self.since, since or self.since)
        ends = min(self.until, until or self.until)
        return replace(self, since=begins, until=ends) if begins < ends else None

    def by_day(self) -> Iterator["Period"]:
        """The same in parts of one day in UTC each."""
        rest = self
        while (midnight := _midnight_after(rest.since)) < rest.until:
            yield replace(rest, until=midnight)
            rest = replace(rest, since=midnight)
        yield rest


def _midnight_after(at: datetime) -> datetime:
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day + timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Total:
    """What some periods add up to, in one currency."""

    instances: int
    hours: Decimal
    cost: Decimal
    currency: str


def totals(periods: Iterable[Period], key: Callable[[Period], Key]) -> dict[Key, list[Total]]:
    """Periods added up by a key, in the order of the keys' first periods; one total for each currency."""
    grouped: dict[Key, dict[str, list[Period]]] = {}
    for period in periods:
        grouped.setdefault(key(period), {}).setdefault(period.currency, []).append(period)
    return {
        one: [
            Total(
                instances=len({period.instance for period in some}),
                hours=sum((period.hours for period in some), Decimal(0)),
                cost=rounded(sum((period.cost for period in some), Decimal(0))),
                currency=currency,
            )
            for currency, some in by_currency.items()
        ]
        for one, by_currency in grouped.items()
    }
