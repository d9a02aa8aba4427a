"""Reading the API's JSON into the port's value types, as tolerantly as the API's compatibility promise asks for."""

import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation

from pydantic import JsonValue

from app.domain.machine import Machine, Volume
from app.domain.offering import Contract, InstanceType
from app.simulator.wire import Response

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

Document = Mapping[str, JsonValue]


class Unreadable(Exception):
    """An answer that misses what nothing can be done without."""


def parse_new_id(response: Response) -> str:
    """The id a create answered: bare, as a JSON string, or in an object. Raises: Unreadable if it is no UUID."""
    text = response.body().decode("utf-8", "replace").strip().lstrip("\ufeff")
    try:
        parsed = json.loads(text)
    except ValueError:
        parsed = text
    value = parsed.get("id") if isinstance(parsed, dict) else parsed
    if not isinstance(value, str) or not _UUID.fullmatch(value):
        raise Unreadable
    return value


def parse_machine(row: Document) -> Machine:
    """One instance. Raises: Unreadable without id, hostname or status."""
    volume_ids = row.get("volume_ids")
    return Machine(
        instance_id=text_of(row, "id"),
        hostname=text_of(row, "hostname"),
        status=text_of(row, "status"),
        description=_text(row, "description") or "",
        instance_type=_text(row, "instance_type"),
        image=_text(row, "image"),
        location=_text(row, "location"),
        contract=_contract(row),
        price_per_hour=_decimal(row.get("price_per_hour")),
        created_at=_time(row.get("created_at")),
        ip=_text(row, "ip"),
        os_volume_id=_text(row, "os_volume_id"),
        volume_ids=tuple(str(item) for item in volume_ids) if isinstance(volume_ids, list) else (),
    )


def parse_volume(row: Document) -> Volume:
    """One volume. Raises: Unreadable without id, name or status."""
    size = row.get("size")
    return Volume(
        volume_id=text_of(row, "id"),
        name=text_of(row, "name"),
        status=text_of(row, "status"),
        size_gb=size if isinstance(size, int) else 0,
        is_os_volume=row.get("is_os_volume") is True,
        instance_id=_text(row, "instance_id"),
        location=_text(row, "location"),
        created_at=_time(row.get("created_at")),
    )


def parse_instance_type(row: JsonValue) -> InstanceType | None:
    """One entry of the catalogue, None if it makes no sense: one odd entry must not hide the others."""
    if not isinstance(row, dict):
        return None
    supported = row.get("supported_os")
    try:
        return InstanceType(
            name=text_of(row, "instance_type"),
            cpus=int(_part(row, "cpu", "number_of_cores")),
            memory_gb=_part(row, "memory", "size_in_gigabytes"),
            gpus=int(_part(row, "gpu", "number_of_gpus")),
            gpu_memory_gb=_part(row, "gpu_memory", "size_in_gigabytes"),
            gpu_name=_text(row, "name") or "",
            model=_text(row, "model") or "",
            manufacturer=_text(row, "manufacturer") or "",
            storage_gb=_storage(row),
            on_demand_price=_decimal(row.get("price_per_hour")),
            spot_price=_decimal(row.get("spot_price")),
            currency=_text(row, "currency") or "usd",
            supported_images=tuple(str(item) for item in supported) if isinstance(supported, list) else (),
        )
    except (Unreadable, KeyError, TypeError):
        return None


def parse_availability(row: Document) -> tuple[str, frozenset[str]]:
    """A location and the types said to be in stock there. Raises: Unreadable."""
    names = row.get("availabilities")
    if not isinstance(names, list):
        raise Unreadable
    return text_of(row, "location_code"), frozenset(str(name) for name in names)


def text_of(row: Document, key: str) -> str:
    """A text that must be there. Raises: Unreadable."""
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise Unreadable
    return value


def _text(row: Document, key: str) -> str | None:
    value = row.get(key)
    return value if isinstance(value, str) else None


def _decimal(value: JsonValue) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        return Decimal(str(value))
    except InvalidOperation:
        return None


def _part(row: Document, outer: str, inner: str) -> Decimal:
    part = row[outer]
    value = _decimal(part.get(inner)) if isinstance(part, dict) else None
    if value is None:
        raise Unreadable
    return value


def _storage(row: Document) -> Decimal | None:
    storage = row.get("storage")
    return _decimal(storage.get("size_in_gigabytes")) if isinstance(storage, dict) else None


def _time(value: JsonValue) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def _contract(row: Document) -> Contract | None:
    if row.get("contract") == "SPOT" or row.get("is_spot") is True:
        return Contract.SPOT
    return Contract.ON_DEMAND if row.get("contract") == "PAY_AS_YOU_GO" or row.get("is_spot") is False else None
