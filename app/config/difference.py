"""What two configurations differ in, key by key, without secrets."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta

from pydantic import BaseModel, SecretStr

from app.config.model import Config
from app.config.values import duration_text

_ABSENT = object()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A key, dotted from the top of the file, with both values in words; `not set` where one has none."""

    path: str
    before: str
    after: str

    def __str__(self) -> str:
        return f"{self.path}: {self.before} -> {self.after}"


def differences(before: Config, after: Config) -> tuple[Change, ...]:
    """Every key whose value differs, in the order of the keys. A node group that comes or goes is one change."""
    return tuple(_walk("", _plain(before), _plain(after)))


def model_differences(path: str, before: BaseModel | None, after: BaseModel | None) -> tuple[Change, ...]:
    """Every key below `path` whose value differs; a model that is there only once is one change."""
    return tuple(
        _walk(path, _ABSENT if before is None else _plain(before), _ABSENT if after is None else _plain(after))
    )


def _plain(value: object) -> object:
    """Sections as mappings, everything else as it is: secrets stay wrapped and can be compared."""
    if isinstance(value, BaseModel):
        return {name: _plain(getattr(value, name)) for name in type(value).model_fields}
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    return value


def _walk(path: str, before: object, after: object) -> Iterator[Change]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in (*before, *(key for key in after if key not in before)):
            yield from _walk(f"{path}.{key}" if path else key, before.get(key, _ABSENT), after.get(key, _ABSENT))
    elif before != after:
        yield Change(path=path, before=_words(before), after=_words(after))


def _words(value: object) -> str:
    if value is _ABSENT or value is None:
        return "not set"
    if isinstance(value, SecretStr):
        return "(secret)"
    if isinstance(value, dict):
        return "set"
    if isinstance(value, timedelta):
        return duration_text(value)
    if isinstance(value, BaseModel):
        return " ".join(f"{name}={_words(getattr(value, name))}" for name in type(value).model_fields)
    if isinstance(value, tuple):
        return f"[{', '.join(_words(each) for each in value)}]"
    return str(value)
