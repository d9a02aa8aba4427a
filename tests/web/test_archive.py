"""The past, read from the audit views."""

from datetime import date, timedelta
from decimal import Decimal

import pytest

from app.archive import KEPT_FOR, StoredPast
from app.errors import StoreUnavailable
from app.web.archive import DayCost
from tests.reconcile.house import House


def test_sizes_with_what_they_were_before(house: House) -> None:
    """Two wishes at once are two steps; what lies before the time asked for is left out."""
    archive = StoredPast(database=house.path, clock=house.clock)
    house.grow(1)
    house.clock.advance(3600)
    since = house.now
    house.grow(2)
    steps = [(change.node_group, change.before, change.target_size) for change in archive.size_changes(since)]
    assert steps == [("h100", 1, 2), ("h100", 2, 3)]


def test_costs_of_ended_machines_by_day(house: House) -> None:
    """From 23:00 to 01:00 at 2.29: an hour on each day."""
    house.clock.advance(timedelta(hours=23))
    (name,) = house.running(1)
    house.clock.advance(timedelta(hours=2) - timedelta(seconds=20))
    house.delete(name)
    house.ticks(4)
    found = StoredPast(database=house.path, clock=house.clock).costs(date(2026, 1, 5))
    assert found == [
        DayCost(day=date(2026, 1, 5), node_group="h100", cost=Decimal("2.290000"), currency="usd"),
        DayCost(day=date(2026, 1, 6), node_group="h100", cost=Decimal("2.290000"), currency="usd"),
    ]


def test_views_are_read_at_most_every_half_minute(house: House) -> None:
    """They look at the whole log; events are always fresh."""
    archive = StoredPast(database=house.path, clock=house.clock)
    since = house.now
    assert archive.size_changes(since) == []
    house.grow(1)
    assert archive.size_changes(since) == []
    assert archive.events(1)[0].what.endswith("wanted")
    house.clock.advance(KEPT_FOR)
    assert len(archive.size_changes(since)) == 1


def test_a_database_that_is_gone_says_so(house: House) -> None:
    """And is asked again the next time."""
    gone = house.path.with_name("no-such.db")
    with pytest.raises(StoreUnavailable, match="there is no database"):
        StoredPast(database=gone, clock=house.clock).costs(date(2026, 1, 5))
