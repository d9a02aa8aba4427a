"""Spans, money and charts against values worked out by hand."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from app.web.charts import shares, steps
from app.web.words import clock_time, machine_time, money, span

MIDNIGHT = datetime(2026, 1, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (timedelta(seconds=-5), "0 s"),
        (timedelta(0), "0 s"),
        (timedelta(seconds=59.9), "59 s"),
        (timedelta(seconds=60), "1 min"),
        (timedelta(minutes=3, seconds=59), "3 min"),
        (timedelta(hours=1, seconds=1), "1 h"),
        (timedelta(hours=2, minutes=5), "2 h 5 min"),
        (timedelta(days=1, minutes=5), "1 d"),
        (timedelta(days=3, hours=7, minutes=59), "3 d 7 h"),
    ],
)
def test_spans(length: timedelta, words: str) -> None:
    """Two units at most, and none that is smaller than what was left out."""
    assert span(length) == words


@pytest.mark.parametrize(
    ("amount", "currency", "words"),
    [
        ("4.58", "usd", "$4.58"),
        ("1234.5", "USD", "$1,234.50"),
        ("0", "eur", "€0.00"),
        ("0.0045", "usd", "$0.0045"),
        ("0.1", "usd", "$0.10"),
        ("2.29", "sek", "2.29 sek"),
    ],
)
def test_money(amount: str, currency: str, words: str) -> None:
    """Less than ten cents has four decimals, so that nothing looks free."""
    assert money(Decimal(amount), currency) == words


def test_times() -> None:
    """For people and for machines."""
    assert clock_time(MIDNIGHT) == "2026-01-05 00:00:00"
    assert machine_time(MIDNIGHT) == "2026-01-05T00:00:00Z"


def test_steps() -> None:
    """From 1 to 2 in the middle of a day and to 0 at its end, in a box of 600 by 56: top 4, ground 55, half 29.5."""
    changes = [(MIDNIGHT + timedelta(hours=12), 2), (MIDNIGHT + timedelta(hours=24), 0)]
    drawn = steps(changes, 1, MIDNIGHT, MIDNIGHT + timedelta(days=1))
    assert drawn.path == "M0 29.5H300.0V4.0H600.0V55.0H600"
    assert drawn.area == "M0 29.5H300.0V4.0H600.0V55.0H600V56H0Z"
    assert (drawn.lowest, drawn.highest) == (0, 2)


def test_steps_of_nothing() -> None:
    """A group that was empty all day lies on the ground; no time at all is no division by zero."""
    assert steps([], 0, MIDNIGHT, MIDNIGHT + timedelta(days=1)).path == "M0 55.0H600"
    assert steps([(MIDNIGHT, 1)], 0, MIDNIGHT, MIDNIGHT).path == "M0 55.0H0.0V4.0H600"


def test_shares() -> None:
    """The largest fills the width, the smallest is still to be seen, nothing is nothing."""
    amounts = [Decimal("0.001"), Decimal(0), Decimal(50), Decimal(100)]
    assert shares(amounts, 200) == [1, 0, 100, 200]
    assert shares([], 200) == []
    assert shares([Decimal(0)], 200) == [0]
