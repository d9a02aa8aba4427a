"""The configuration while it is being read: plain values, where each one stands, what is wrong so far."""

import json
import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TypeAlias

from app.errors import Problem

Value: TypeAlias = "bool | int | Decimal | str | list[Value] | dict[str, Value] | None"
Path: TypeAlias = tuple[str | int, ...]

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_KEY_WITH_VALUE = re.compile(r"([^:=]{1,60}[:=]).+", re.DOTALL)
_SECRET_LIKE = re.compile(r"secret|token|passw|private key|://[^/]*@", re.IGNORECASE)
_SHOWN = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value was written: a line of a file, a variable, a flag. `written` is a scalar's own text."""

    source: str
    line: int | None
    path: str
    written: str | None = None


@dataclass(slots=True, kw_only=True)
class Draft:
    """A configuration between the file and the model; every stage of the loader works on it.

    `moved` maps a path to the one its value came from (`defaults`, older names), so that a problem is told where the
    operator wrote the value. `spoiled` are paths with a problem already, `foreign` are values that came out of an
    environment variable: those are told as written, `${NAME}`, never as their content.
    """

    source: str
    data: dict[str, Value]
    places: dict[Path, Place] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[Problem] = field(default_factory=list)
    moved: dict[Path, Path] = field(default_factory=dict)
    spoiled: set[Path] = field(default_factory=set)
    foreign: set[Path] = field(default_factory=set)

    def origin(self, path: Path) -> Path:
        """The path under which the operator wrote what now stands at `path`."""
        for length in range(len(path), 0, -1):
            source = self.moved.get(path[:length])
            if source is not None:
                return self.origin(source + path[length:])
        return path

    def locate(self, path: Path) -> Place:
        """Where the value stands; for one that was not written, the line of the nearest section around it."""
        written = self.origin(path)
        found = self.places.get(written)
        if found is not None:
            return found
        for length in range(len(written) - 1, 0, -1):
            around = self.places.get(written[:length])
            if around is not None:
                return Place(source=around.source, line=around.line, path=path_text(written))
        return Place(source=self.source, line=None, path=path_text(written))

    def is_written(self, path: Path) -> bool:
        """True if the operator wrote this value, here or where it was moved from."""
        return self.origin(path) in self.places

    def blame(self, path: Path, message: str) -> None:
        """Note a problem."""
        self.problems.append(self._told(path, message))

    def refuse(self, path: Path, message: str) -> None:
        """Note a problem that makes any further ones of the value, or of what is in it, pointless."""
        self.blame(path, message)
        self.spoiled.add(self.origin(path))

    def warn(self, path: Path, message: str) -> None:
        """Note something that works and is probably not what was meant."""
        self.warnings.append(self._told(path, message))

    def is_spoiled(self, path: Path) -> bool:
        """True if the value or a section around it has had its problem told."""
        written = self.origin(path)
        return any(written[:length] in self.spoiled for length in range(len(written) + 1))

    def section(self, *path: str) -> dict[str, Value] | None:
        """The mapping at a path, made if nothing is there; None if something else stands in its way."""
        here = self.data
        for key in path:
            inner = here.get(key)
            if inner is None:
                inner = here[key] = {}
            if not isinstance(inner, dict):
                return None
            here = inner
        return here

    def _told(self, path: Path, message: str) -> Problem:
        place = self.locate(path)
        return Problem(source=place.source, line=place.line, path=place.path, message=message)


def value_at(value: Value, path: Path) -> Value:
    """What stands at a path inside a value."""
    for part in path:
        if isinstance(value, dict) and isinstance(part, str):
            value = value.get(part)
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
    return value


def path_text(path: Path) -> str:
    """`node_groups.gpu.taints[1].effect`; keys that hold dots or worse stand in brackets."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{shown_text(shown_key(part))}]"
    return text


def shown_key(key: str) -> str:
    """A key fit for a message: `client_secret:hunter2`, a colon without its space, must not show the secret."""
    return _KEY_WITH_VALUE.sub(r"\1…", key)


def shown_text(text: str) -> str:
    """Text in quotes, shortened, and not at all if it looks like a secret in the wrong place."""
    if _SECRET_LIKE.search(text) and not _PLAIN_KEY.fullmatch(text):
        return "text that is not shown here"
    shortened = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return json.dumps(shortened, ensure_ascii=False)


def shown_value(value: Value, written: str | None) -> str:
    """How a message names an offending value: scalars as they were written, sections by their kind only."""
    match value:
        case None:
            return "null"
        case dict():
            return "a mapping"
        case list():
            return "a list"
        case str():
            return shown_text(value)
        case bool() | int() | Decimal():
            return written if written is not None and len(written) <= _SHOWN else shown_text(str(value))
