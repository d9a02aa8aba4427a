"""Between the fields of an aggregate and the columns of its table: lists and settings are canonical JSON."""

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from operator import attrgetter
from typing import Any

from pydantic import TypeAdapter
from sqlalchemy import RowMapping

from app.domain.cluster.node import Figures
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.nodegroup.state import Joining, Rest
from app.domain.offering import Offering
from app.domain.service import Claim

Values = dict[str, Any]

_TEXTS = TypeAdapter(tuple[str, ...])
_JSON_COLUMNS: Mapping[str, TypeAdapter[Any]] = {
    "spec": TypeAdapter(NodeGroupSpec),
    "rests": TypeAdapter(tuple[Rest, ...]),
    "closed_rungs": TypeAdapter(tuple[Offering, ...]),
    "volume_ids": _TEXTS,
    "earlier_ids": _TEXTS,
    "node_preparing": _TEXTS,
    "node_prepared": _TEXTS,
    "supported_images": _TEXTS,
    "claims": TypeAdapter(tuple[Claim, ...]),
    "joining": TypeAdapter(Joining),
    "figures": TypeAdapter(Figures),
}
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)
_STORED_AS_THEY_ARE = frozenset({str, int})


def canonical(value: object) -> str:
    """JSON with sorted keys and no spaces."""
    return _ENCODER.encode(value)


def iso(at: datetime) -> str:
    """A UTC time as stored: ISO 8601 with microseconds and `Z`, so that text order is time order."""
    return at.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


class Columns:
    """The fields of a class as the columns of its table. By hand, because this is a good part of every commit."""

    def __init__(self, names: Iterable[str]) -> None:
        names = tuple(names)
        self._names = tuple(name for name in names if name not in _JSON_COLUMNS)
        self._values = attrgetter(*self._names)
        self._json = tuple(name for name in names if name in _JSON_COLUMNS)
        self._last: dict[str, tuple[object, str]] = {}

    def row(self, value: object, **more: int | str) -> Values:
        """The row that shows this value, with the columns that are none of its fields."""
        row: Values = {
            name: item if item is None or type(item) in _STORED_AS_THEY_ARE else _stored(item)
            for name, item in zip(self._names, self._values(value), strict=True)
        }
        for name in self._json:
            item = getattr(value, name)
            row[name] = self._text(name, item) if item else "[]"
        row.update(more)
        return row

    def _text(self, name: str, item: object) -> str:
        """JSON of something immutable, which the next version of an aggregate most often shares with the last one."""
        known, text = self._last.get(name, (None, ""))
        if known is not item:
            text = canonical(_JSON_COLUMNS[name].dump_python(item, mode="json"))
            self._last[name] = (item, text)
        return text


def _stored(value: Any) -> str | int:
    if isinstance(value, datetime):
        return iso(value)
    return int(value) if isinstance(value, int) else str(value)  # flags and IntEnum, StrEnum and Decimal


def value_of(adapter: TypeAdapter[Any], row: RowMapping, *without: str) -> Any:
    """The aggregate behind a row, some columns of which are none of its fields.

    Raises:
        ValueError: the row cannot be read.
    """
    return adapter.validate_python(
        {name: json.loads(item) if name in _JSON_COLUMNS else item for name, item in row.items() if name not in without}
    )
