"""Turns the API's JSON into our values.

The SDK's own decoding is not used: it gives up a whole catalogue for one odd entry, drops `volume_ids`, and reads a
missing location as `FIN-03` (SDK 1.25).
"""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeVar

from app.cloud.port import Balance, StoredScript
from app.cloud.verda import fields
from app.cloud.verda.outcome import parse_json
from app.cloud.verda.words import printable
from app.domain.machine import Machine, Volume
from app.domain.offering import Contract, InstanceType

Entry = Mapping[str, object]
_Value = TypeVar("_Value")

_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_CONTRACTS: Mapping[str, Contract] = {"PAY_AS_YOU_GO": Contract.ON_DEMAND, "SPOT": Contract.SPOT}


class Unreadable(Exception):
    """The API answered something that we cannot use; says what is wrong with it."""


def new_id(body: bytes) -> str:
    """The id of a new machine out of the answer to the order.

    Documented as a JSON string, sent as plain text, seen as an object; the SDK takes any text for an id. Only what has
    the shape of a UUID is one, else a gateway's page or half an id would pass.

    Raises:
        Unreadable: there is no id in it.
    """
    plain = body.decode("utf-8-sig", "replace").strip()
    try:
        parsed = parse_json(body)
    except ValueError:
        parsed = plain
    found = fields.text(fields.inner(parsed, "id") if isinstance(parsed, Mapping) else parsed) or ""
    if not _UUID.fullmatch(found.strip()):
        raise Unreadable("the answer to the order holds no instance id")
    return found.strip()


def entry(body: bytes) -> Entry:
    """A JSON object.

    Raises:
        Unreadable: it is anything else.
    """
    found = value(body)
    if not isinstance(found, Mapping):
        raise Unreadable("the answer is not a JSON object")
    return found


def value(body: bytes) -> object:
    """Any JSON.

    Raises:
        Unreadable: it is none.
    """
    try:
        return parse_json(body)
    except ValueError:
        raise Unreadable("the answer is not JSON") from None


def readable(body: bytes, decode: Callable[[Entry], _Value]) -> tuple[list[_Value], list[str]]:
    """What could be read of an array, and for each other entry the reason.

    Raises:
        Unreadable: the body is no array, or none of its entries could be read, which must not pass for an empty one.
    """
    found = value(body)
    if not isinstance(found, list):
        raise Unreadable("the answer is not a JSON array")
    values: list[_Value] = []
    problems: list[str] = []
    for item in found:
        try:
            values.append(decode(_required(item if isinstance(item, Mapping) else None, "object")))
        except Unreadable as problem:
            problems.append(str(problem))
    if problems and not values:
        raise Unreadable(f"none of the {len(problems)} entries can be read; the first: {problems[0]}")
    return values, problems


def complete(body: bytes, decode: Callable[[Entry], _Value]) -> list[_Value]:
    """All entries of an array.

    Raises:
        Unreadable: the body is no array, or one entry could not be read: a part must not pass for the whole.
    """
    values, problems = readable(body, decode)
    if problems:
        raise Unreadable(f"{len(problems)} of {len(values) + len(problems)} entries cannot be read: {problems[0]}")
    return values


def _required(found: _Value | None, name: str, of: object = "") -> _Value:
    if found is None:
        raise Unreadable(printable(f"{of or 'an entry'} has no readable {name}"))
    return found


def machine(raw: Entry) -> Machine:
    """One instance. Only id and hostname are needed, all else may be missing while the machine is young.

    Raises:
        Unreadable: without id or hostname nobody can say whose machine this is.
    """
    instance_id = _required(fields.text(raw.get("id")), "id")
    return Machine(
        instance_id=instance_id,
        hostname=_required(fields.text(raw.get("hostname")), "hostname", instance_id),
        status=fields.text(raw.get("status")) or "unknown",
        description=fields.text(raw.get("description")) or "",
        instance_type=fields.text(raw.get("instance_type")),
        image=fields.text(raw.get("image")),
        location=fields.text(raw.get("location")),
        contract=_contract(raw),
        price_per_hour=fields.amount(raw.get("price_per_hour")),
        created_at=fields.moment(raw.get("created_at")),
        ip=fields.text(raw.get("ip")),
        os_volume_id=fields.text(raw.get("os_volume_id")),
        volume_ids=fields.texts(raw.get("volume_ids")),
    )


def _contract(raw: Entry) -> Contract | None:
    """Spot if either field says so; None for long-term contracts, which are not ours to handle."""
    if fields.truth(raw.get("is_spot")):
        return Contract.SPOT
    word = fields.text(raw.get("contract"))
    if word is None:
        return Contract.ON_DEMAND if fields.truth(raw.get("is_spot")) is False else None
    return _CONTRACTS.get(word)


def instance_type(raw: Entry) -> InstanceType:
    """One entry of the catalogue; a wrong guess at a size would become a wrong node, so none is made.

    Raises:
        Unreadable: no name or no sizes.
    """
    name = _required(fields.text(raw.get("instance_type")), "instance_type")
    gpus = _required(fields.count(fields.inner(raw.get("gpu"), "number_of_gpus")), "number of GPUs", name)
    gpu_memory = _gigabytes(raw, "gpu_memory") if gpus else Decimal(0)
    return InstanceType(
        name=name,
        cpus=_required(fields.count(fields.inner(raw.get("cpu"), "number_of_cores")), "number of cores", name),
        memory_gb=_required(_gigabytes(raw, "memory"), "memory size", name),
        gpus=gpus,
        gpu_memory_gb=_required(gpu_memory, "GPU memory size", name),
        gpu_name=fields.text(raw.get("name")) or "",
        model=fields.text(raw.get("model")) or "",
        manufacturer=fields.text(raw.get("manufacturer")) or "",
        storage_gb=_gigabytes(raw, "storage"),
        on_demand_price=fields.amount(raw.get("price_per_hour")),
        spot_price=fields.amount(raw.get("spot_price")),
        currency=fields.text(raw.get("currency")) or "usd",
        supported_images=fields.texts(raw.get("supported_os")),
    )


def _gigabytes(raw: Entry, part: str) -> Decimal | None:
    return fields.amount(fields.inner(raw.get(part), "size_in_gigabytes"))


def stock(raw: Entry) -> tuple[str, frozenset[str]]:
    """A location with the types said to be available there.

    Raises:
        Unreadable: either is missing.
    """
    location = _required(fields.text(raw.get("location_code")), "location code")
    types = raw.get("availabilities")
    return location, frozenset(fields.texts(_required(types if isinstance(types, list) else None, "types", location)))


def location_code(raw: Entry) -> str:
    """The code of a location.

    Raises:
        Unreadable: it has none.
    """
    return _required(fields.text(raw.get("code")), "code")


def identity(raw: Entry) -> str:
    """The id of something.

    Raises:
        Unreadable: it has none.
    """
    return _required(fields.text(raw.get("id")), "id")


def image_name(raw: Entry) -> str:
    """The name by which an image is ordered.

    Raises:
        Unreadable: it has none.
    """
    return _required(fields.text(raw.get("image_type")), "image_type")


def stored_script(raw: Entry) -> StoredScript:
    """One startup script without its text, which may hold secrets.

    Raises:
        Unreadable: no id.
    """
    return StoredScript(script_id=_required(fields.text(raw.get("id")), "id"), name=fields.text(raw.get("name")) or "")


def volume(raw: Entry) -> Volume:
    """One volume. A shared one counts as attached while any machine uses it.

    Raises:
        Unreadable: no id, or used by machines that cannot be named.
    """
    volume_id = _required(fields.text(raw.get("id")), "id")
    return Volume(
        volume_id=volume_id,
        name=fields.text(raw.get("name")) or "",
        status=fields.text(raw.get("status")) or "unknown",
        size_gb=_required(fields.count(raw.get("size")), "size", volume_id),
        is_os_volume=fields.truth(raw.get("is_os_volume")) or False,
        instance_id=_user_of(raw, volume_id),
        location=fields.text(raw.get("location")),
        created_at=fields.moment(raw.get("created_at")),
    )


def _user_of(raw: Entry, volume_id: str) -> str | None:
    single = fields.text(raw.get("instance_id"))
    users = raw.get("instances")
    if single or not users:
        return single
    first = users[0] if isinstance(users, list) else users
    named = (
        fields.text(candidate) for candidate in (first, fields.inner(first, "id"), fields.inner(first, "instance_id"))
    )
    return _required(next(filter(None, named), None), "instance", volume_id)


def balance(raw: Entry) -> Balance:
    """What is left on the account; may be below zero.

    Raises:
        Unreadable: no amount.
    """
    left = _required(fields.number(raw.get("amount")), "amount", "the balance")
    return Balance(amount=left, currency=fields.text(raw.get("currency")) or "usd")
