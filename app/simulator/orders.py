"""Reading the body of POST /instances: what must be there, what may be, and in which order it is checked."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.simulator.errors import invalid

_HOSTNAME = re.compile(r"(?!-)(?=.*[A-Za-z])[A-Za-z0-9-]{1,63}(?<!-)")
_POLICIES = frozenset({"keep_detached", "move_to_trash", "delete_permanently"})
_MAX_TAGS = 10
_MAX_TAG_KEY = 63
_MAX_TAG_VALUE = 127
_DEFAULT_OS_GB = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVolume:
    """A volume to create with the instance; `policy` None is not given."""

    name: str
    size_gb: int
    kind: object = "NVMe"
    policy: str | None = None
    tags: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployOrder:
    """A well-formed body of POST /instances; nothing in it has been looked up yet."""

    instance_type: str
    image: str
    hostname: str
    location: str
    description: str = ""
    ssh_key_ids: tuple[str, ...] = ()
    startup_script_id: str | None = None
    is_spot: bool = False
    contract: str | None = None
    pricing: str | None = None
    os_volume: NewVolume | None = None
    volumes: tuple[NewVolume, ...] = ()
    existing_volumes: tuple[str, ...] = ()
    tags: tuple[tuple[str, str], ...] = ()


def read_hostname(value: str) -> str:
    """The console's rule: letters, digits, hyphens, no hyphen at either end, at least one letter, at most 63."""
    if not _HOSTNAME.fullmatch(value):
        raise invalid("hostname is not valid")
    return value


def read_head(body: object) -> tuple[Mapping[str, object], dict[str, str]]:
    """The body as a mapping and its required fields. Raises: 400 naming the first field that is wrong."""
    if not isinstance(body, dict):
        raise invalid("Request body must be a JSON object")
    required = {field: _required(body, field) for field in ("instance_type", "image", "hostname", "location_code")}
    read_hostname(required["hostname"])
    return body, required


def read_order(body: Mapping[str, object], required: Mapping[str, str]) -> DeployOrder:
    """The whole body. Unknown fields are ignored and nulls count as absent. Raises: 400."""
    return DeployOrder(
        instance_type=required["instance_type"],
        image=required["image"],
        hostname=required["hostname"],
        location=required["location_code"],
        ssh_key_ids=read_ids(body, "ssh_key_ids"),
        startup_script_id=_optional(body, "startup_script_id"),
        os_volume=_os_volume(body.get("os_volume")),
        volumes=tuple(_volume(item, "volumes") for item in _objects(body, "volumes")),
        existing_volumes=read_ids(body, "existing_volumes"),
        is_spot=_flag(body, "is_spot"),
        contract=_optional(body, "contract"),
        pricing=_optional(body, "pricing"),
        description=_optional(body, "description") or "",
        tags=read_tags(body.get("tags")),
    )


def check_terms(order: DeployOrder) -> None:
    """Policies, contract and pricing must not contradict each other. Raises: 400."""
    policies = [volume.policy for volume in (*order.volumes, *((order.os_volume,) if order.os_volume else ()))]
    if not order.is_spot and any(policy is not None for policy in policies):
        raise invalid("on_spot_discontinue can only be set for spot instances")
    if any(policy is not None and policy not in _POLICIES for policy in policies):
        raise invalid("on_spot_discontinue must be one of keep_detached, move_to_trash, delete_permanently")
    if order.contract not in {None, "PAY_AS_YOU_GO", "SPOT", "LONG_TERM"}:
        raise invalid("contract must be one of PAY_AS_YOU_GO, SPOT, LONG_TERM")
    if order.contract == "LONG_TERM":
        raise invalid("A long-term contract needs a period")
    if order.contract is not None and (order.contract == "SPOT") != order.is_spot:
        raise invalid("contract and is_spot contradict each other")
    if order.pricing not in {None, "FIXED_PRICE"}:
        raise invalid("Only FIXED_PRICE is supported")


def read_ids(body: Mapping[str, object], field: str) -> tuple[str, ...]:
    """One id or a list of ids. Raises: 400."""
    value = body.get(field)
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    raise invalid(f"{field} must be a string or an array of strings")


def read_tags(value: object) -> tuple[tuple[str, str], ...]:
    """Tags with lower-cased keys. Raises: 400 beyond the documented limits."""
    if value is None:
        return ()
    if not isinstance(value, list):
        raise invalid("tags must be an array")
    if len(value) > _MAX_TAGS:
        raise invalid("A resource can have at most 10 tags")
    return tuple(read_tag(item) for item in value)


def read_tag(item: object) -> tuple[str, str]:
    """One tag as `(key, value)`; a freeform tag has an empty value. Raises: 400."""
    if not isinstance(item, dict):
        raise invalid("tags must be objects with key and value")
    key, value = item.get("key"), item.get("value")
    if not isinstance(key, str) or not 0 < len(key) <= _MAX_TAG_KEY:
        raise invalid("a tag key has 1 to 63 characters")
    if value is not None and (not isinstance(value, str) or len(value) > _MAX_TAG_VALUE):
        raise invalid("a tag value has at most 127 characters")
    return key.lower(), value or ""


def _required(body: Mapping[str, object], field: str) -> str:
    value = body.get(field)
    if value is None or value == "":
        raise invalid(f"{field} is required")
    if not isinstance(value, str):
        raise invalid(f"{field} must be a string")
    return value


def _optional(body: Mapping[str, object], field: str) -> str | None:
    value = body.get(field)
    if value is not None and not isinstance(value, str):
        raise invalid(f"{field} must be a string")
    return value


def _flag(body: Mapping[str, object], field: str) -> bool:
    value = body.get(field)
    if value is not None and not isinstance(value, bool):
        raise invalid(f"{field} must be a boolean")
    return value is True


def _objects(body: Mapping[str, object], field: str) -> Sequence[object]:
    value = body.get(field)
    if value is None:
        return ()
    if not isinstance(value, list):
        raise invalid(f"{field} must be an array")
    return value


def _os_volume(value: object) -> NewVolume | None:
    return None if value is None else _volume(value, "os_volume")


def _volume(value: object, field: str) -> NewVolume:
    if not isinstance(value, dict):
        raise invalid(f"{field} must be an object")
    size = value.get("size", _DEFAULT_OS_GB if field == "os_volume" else None)
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise invalid(f"{field}.size must be a positive integer")
    return NewVolume(
        name=_required(value, "name"),
        size_gb=size,
        kind=value.get("type", "NVMe"),
        policy=_optional(value, "on_spot_discontinue"),
        tags=read_tags(value.get("tags")),
    )
