"""Times, spans and money as people read them."""

from datetime import datetime, timedelta
from decimal import Decimal

_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))
_SYMBOLS = {"usd": "$", "eur": "€"}


def span(length: timedelta) -> str:
    """The two largest units of a span, seconds only by themselves: `3 d 4 h`, `12 min`, `40 s`. Below zero is `0 s`."""
    left = max(int(length.total_seconds()), 0)
    if left < _UNITS[-2][0]:
        return f"{left} s"
    largest = next(place for place, (size, _) in enumerate(_UNITS) if left >= size)
    parts: list[str] = []
    for size, name in _UNITS[largest:-1][:2]:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}")
    return " ".join(parts)


def clock_time(at: datetime) -> str:
    """`2026-01-05 12:00:03`; the page says once that times are UTC."""
    return f"{at:%Y-%m-%d %H:%M:%S}"


def machine_time(at: datetime) -> str:
    """For the `datetime` attribute: `2026-01-05T12:00:03Z`."""
    return f"{at:%Y-%m-%dT%H:%M:%SZ}"


def money(amount: Decimal, currency: str) -> str:
    """`$4.58`, `0.33 sek`: two decimals, more for less than ten cents so that nothing looks free."""
    digits = 4 if 0 < abs(amount) < Decimal("0.1") else 2
    symbol = _SYMBOLS.get(currency.lower())
    number = f"{amount:,.{digits}f}"
    return f"{symbol}{number}" if symbol else f"{number} {currency}"
