"""Questions about the model by path: which keys a section knows, what a value may be, whether it is a secret."""

from collections.abc import Iterator
from enum import StrEnum
from types import UnionType
from typing import Annotated, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from app.config.draft import Path, Value
from app.config.fields import Section
from app.config.model import Config

DEFAULTS = "defaults"
GROUPS = "node_groups"


def known_keys(path: Path) -> tuple[str, ...]:
    """The keys of the section at a path, empty if there is none."""
    keys = [key for kind in _kinds_at(path) if _is_section(kind) for key in kind.model_fields]
    return (*dict.fromkeys(keys), *([DEFAULTS] if not path else []))


def words(path: Path) -> tuple[str, ...]:
    """The words a value may be, empty if it is not such a value."""
    found: list[str] = []
    for kind in _kinds_at(path):
        if get_origin(kind) is Literal:
            found += get_args(kind)
        elif isinstance(kind, type) and issubclass(kind, StrEnum):
            found += list(kind)
    return tuple(found)


def is_secret(path: Path) -> bool:
    """True if what stands at a path must never be shown."""
    return any(kind is SecretStr for length in range(len(path) + 1) for kind in _kinds_at(path[:length]))


def field_at(path: Path) -> FieldInfo | None:
    """The field that a path names, None if it names none."""
    *around, key = path
    for kind in _kinds_at(tuple(around)):
        if _is_section(kind) and key in kind.model_fields:
            return kind.model_fields[str(key)]
    return None


def _is_section(kind: object) -> TypeGuard[type[Section]]:
    return isinstance(kind, type) and issubclass(kind, Section)


def _kinds_at(path: Path) -> tuple[object, ...]:
    if path and path[0] == DEFAULTS:
        path = (GROUPS, "any", *path[1:])
    kinds: tuple[object, ...] = (Config,)
    for part in path:
        kinds = tuple(inner for kind in kinds for inner in _inside(kind, part))
    return kinds


def _inside(kind: object, part: str | int) -> Iterator[object]:
    if _is_section(kind):
        field = kind.model_fields.get(str(part))
        if field is not None:
            yield from alternatives(field.annotation)
    elif get_origin(kind) is dict and isinstance(part, str):
        yield from alternatives(get_args(kind)[1])
    elif get_origin(kind) is tuple and isinstance(part, int):
        yield from alternatives(get_args(kind)[0])


def alternatives(annotation: object) -> Iterator[object]:
    """The plain types of an annotation: unions and metadata taken apart."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from alternatives(get_args(annotation)[0])
    elif origin in {Union, UnionType}:
        for one in get_args(annotation):
            yield from alternatives(one)
    else:
        yield annotation


def secrets_in(value: Value, kinds: tuple[object, ...] = (Config,)) -> Iterator[str]:
    """Every text that stands where the model expects a secret."""
    if isinstance(value, str) and SecretStr in kinds:
        yield value
    elif isinstance(value, (dict, list)):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for part, inner in items:
            if kinds == (Config,) and part == DEFAULTS:
                yield from secrets_in({"any": inner}, _kinds_at((GROUPS,)))
            else:
                yield from secrets_in(inner, tuple(found for kind in kinds for found in _inside(kind, part)))
