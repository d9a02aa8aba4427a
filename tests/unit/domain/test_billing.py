from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

from app.domain.billing import Period, cost_of, rounded, totals
from app.domain.instance.commands import ConfirmEnded
from app.domain.instance.lifecycle import InstanceState

from .facts import A_ID, A, attempted, created, delete_requested, gone, h100, observed, wanted
from .scenario import NOON

HOUR = timedelta(hours=1)


def period(since: str, until: str, price: str = "0.60", currency: str = "usd", instance: str = A) -> Period:
    """Of June 2026: `1 12:00`."""
    return Period(
        instance=instance,
        node_group="h100",
        contract="spot",
        since=datetime.strptime(f"2026-06-{since}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC),
        until=datetime.strptime(f"2026-06-{until}", "%Y-%m-%d %H:%M").replace(tzinfo=UTC),
        price_per_hour=Decimal(price),
        currency=currency,
    )


def test_a_cost_is_exact_to_the_microsecond() -> None:
    """36 dollars an hour are a cent a second and a hundred-millionth of a dollar a microsecond."""
    assert cost_of(Decimal(36), timedelta(seconds=1)) == Decimal("0.01")
    assert cost_of(Decimal(36), timedelta(microseconds=1)) == Decimal("0.00000001")
    assert cost_of(Decimal("0.10"), timedelta(days=365)) == Decimal(876)
    assert cost_of(Decimal(36), timedelta(seconds=-1)) == 0
    assert rounded(Decimal("0.0000005")) == Decimal("0.000000")  # half to even
    assert rounded(Decimal("0.0000015")) == Decimal("0.000002")


def test_a_new_price_holds_from_when_it_was_seen() -> None:
    """Two hours at 2.29 and one at 3.00 make 7.58, not three at the last price."""
    story = h100.given(wanted(), attempted(price="2.29"), created(), observed(InstanceState.RUNNING, price="2.29"))
    story = story.given(2 * HOUR, observed(InstanceState.RUNNING, price="3.00"))
    assert story.instance(A).cost_until(story.now) == Decimal("4.580000")
    story = story.given(HOUR, delete_requested())
    ended = story.when(ConfirmEnded(instance=A, instance_id=A_ID, known_by_id=True)).then(gone(cost="7.580000"))
    assert ended.instance(A).cost == Decimal("7.580000")


def test_the_first_price_that_the_cloud_shows_holds_from_the_beginning() -> None:
    """The order went by the catalogue's, which may have been out of date."""
    story = h100.given(
        wanted(), attempted(price="2.29"), created(), HOUR, observed(InstanceState.RUNNING, price="2.00")
    )
    assert story.instance(A).cost_until(NOON + HOUR) == Decimal("2.000000")


def test_a_price_that_is_not_shown_is_no_change() -> None:
    """Some listings leave it out."""
    story = h100.given(wanted(), attempted(price="2.29"), created(), observed(InstanceState.RUNNING, price="2.29"))
    story = story.given(HOUR, observed(InstanceState.STOPPED, price=None))
    assert story.instance(A).cost_until(NOON + 2 * HOUR) == Decimal("4.580000")


def test_a_period_is_split_at_midnight_and_cut_at_will() -> None:
    """Nothing is lost at midnight, and what is outside is not there."""
    night = period("1 22:30", "3 01:30")
    assert [(part.day, part.hours) for part in night.by_day()] == [
        (date(2026, 6, 1), Decimal("1.5")),
        (date(2026, 6, 2), Decimal(24)),
        (date(2026, 6, 3), Decimal("1.5")),
    ]
    assert sum(part.cost for part in night.by_day()) == night.cost == Decimal("16.2")
    part = night.within(datetime(2026, 6, 3, tzinfo=UTC), None)
    assert part is not None
    assert part.cost == Decimal("0.9")
    assert night.within(datetime(2026, 6, 4, tzinfo=UTC), None) is None
    assert [one.hours for one in period("1 00:00", "2 00:00").by_day()] == [Decimal(24)]


def test_currencies_are_never_added_up() -> None:
    """A dollar is not a euro."""
    added = totals(
        [period("1 12:00", "1 13:00"), period("1 12:00", "1 13:00", currency="eur"), period("1 13:00", "1 15:00")],
        key=lambda one: one.node_group,
    )
    assert [(total.instances, total.hours, total.cost, total.currency) for total in added["h100"]] == [
        (1, Decimal(3), Decimal("1.800000"), "usd"),
        (1, Decimal(1), Decimal("0.600000"), "eur"),
    ]
