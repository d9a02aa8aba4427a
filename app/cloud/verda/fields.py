"""Reads single values out of the API's JSON without trusting any of them.

The Verda OpenAPI document asks clients to ignore unknown fields and to tolerate unknown values, and the API has sent
numbers as strings and booleans as strings before. A value that cannot be read is None; whoever asks decides whether the
thing makes sense without it.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation

# Nothing that we read is this big; a larger exponent is an attack on our memory.
MOST_DIGITS = 15


def text(value: object) -> str | None:
    """A non-empty string, with lone surrogates replaced: no database takes them."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and value else None


def texts(value: object) -> tuple[str, ...]:
    """The non-empty strings of an array; anything else counts as an empty one."""
    return tuple(word for item in value if (word := text(item))) if isinstance(value, list) else ()


def number(value: object) -> Decimal | None:
    """A finite number, also one written as a string."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        return None
    try:
        parsed = Decimal(value)
    except InvalidOperation:
        return None
    return parsed if parsed.is_finite() and abs(parsed.adjusted()) <= MOST_DIGITS else None


def amount(value: object) -> Decimal | None:
    """A number that is not negative: a size or a price."""
    parsed = number(value)
    return parsed if parsed is not None and parsed >= 0 else None


def count(value: object) -> int | None:
    """A whole number that is not negative."""
    parsed = amount(value)
    return int(parsed) if parsed is not None and parsed == parsed.to_integral_value() else None


def truth(value: object) -> bool | None:
    """A boolean, also one written as a string, as older servers do."""
    return {"true": True, "false": False}.get(value.lower()) if isinstance(value, str) else _only_bool(value)


def _only_bool(value: object) -> bool | None:
    return value if isinstance(value, bool) else None


def moment(value: object) -> datetime | None:
    """ISO 8601 in UTC; without a zone it is taken to be UTC, as everything of the API is."""
    try:
        parsed = datetime.fromisoformat(value) if isinstance(value, str) else None
    except ValueError:
        return None
    if parsed is None:
        return None
    return parsed.replace(tzinfo=UTC) if parsed.tzinfo is None else _in_utc(parsed)


def _in_utc(aware: datetime) -> datetime | None:
    try:
        return aware.astimezone(UTC)
    except OverflowError:
        return None


def inner(value: object, key: str) -> object:
    """A field of an object; None if it is missing or there is no object."""
    return value.get(key) if isinstance(value, Mapping) else None
