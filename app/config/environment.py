"""What the environment adds: `.env`, `${NAME}` in values, credentials, and the files that hold secrets."""

import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path as FilePath

from dotenv.parser import parse_stream

from app.config.draft import Draft, Path, Place, Value
from app.config.source import Unreadable, read_bytes
from app.errors import Problem

_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[A-Za-z_][A-Za-z0-9_]*)\}|\$\{(?P<wrong>)")
_LARGEST_SECRET = 64 * 1024

# A startup script is a shell's: `${HOME}` in it means the machine's, not ours.
_VERBATIM = frozenset({"startup_script"})

ENVIRONMENT: Mapping[Path, tuple[str, ...]] = {
    ("verda", "base_url"): ("VERDA_BASE_URL",),
    ("verda", "client_id"): ("VERDA_CLIENT_ID", "DATACRUNCH_CLIENT_ID"),
    ("verda", "client_secret"): ("VERDA_CLIENT_SECRET", "DATACRUNCH_CLIENT_SECRET"),
}
"""Variables that stand in for keys the file does not set, in order of preference."""

SECRET_FILES: Mapping[Path, Path] = {("verda", "client_secret"): ("verda", "client_secret_file")}
"""Secrets that may come from a file, and the key that names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Variables, those of the process before those of `.env`, and where each one of `.env` stands."""

    values: Mapping[str, str]
    places: Mapping[str, Place]

    def place(self, name: str) -> Place:
        """Where a variable was set."""
        return self.places.get(name, Place(source="environment", line=None, path=name))


def gather(environ: Mapping[str, str], dotenv: FilePath | None, draft: Draft) -> Environment:
    """The process's environment, and under it the `.env` file if there is one."""
    values: dict[str, str] = {}
    places: dict[str, Place] = {}
    for name, value, line in _read_dotenv(dotenv, draft) if dotenv is not None else ():
        values[name] = value
        places[name] = Place(source=str(dotenv), line=line, path=name)
    for name, value in environ.items():
        values[name] = value
        places.pop(name, None)
    return Environment(values=values, places=places)


def _read_dotenv(path: FilePath, draft: Draft) -> list[tuple[str, str, int]]:
    if not path.exists():
        return []
    try:
        text = read_bytes(path, _LARGEST_SECRET).decode("utf-8-sig")
    except UnicodeDecodeError:
        draft.problems.append(Problem(source=str(path), line=None, path="", message="is not UTF-8: save it as UTF-8"))
        return []
    except Unreadable as reason:
        draft.problems.append(Problem(source=str(path), line=None, path="", message=reason.message))
        return []
    found = []
    for binding in parse_stream(io.StringIO(text)):
        # A binding begins with the blank lines before it.
        blank = len(binding.original.string) - len(binding.original.string.lstrip())
        line = binding.original.line + binding.original.string.count("\n", 0, blank)
        if binding.error:
            draft.problems.append(
                Problem(source=str(path), line=line, path="", message="is not of the form NAME=value")
            )
        elif binding.key is not None and binding.value is not None:
            found.append((binding.key, binding.value, line))
    return found


def substitute(draft: Draft, environment: Environment) -> None:
    """Replace `${NAME}` in every text of the draft; `$${` stands for a literal `${`."""
    _Substitution(draft, environment.values).mapping(draft.data, ())


@dataclass(frozen=True, slots=True)
class _Substitution:
    draft: Draft
    variables: Mapping[str, str]

    def mapping(self, values: dict[str, Value], path: Path) -> None:
        for key, value in values.items():
            if key not in _VERBATIM:
                values[key] = self._value(value, (*path, key))

    def _value(self, value: Value, path: Path) -> Value:
        if isinstance(value, str):
            return self._text(value, path)
        if isinstance(value, dict):
            self.mapping(value, path)
        elif isinstance(value, list):
            value[:] = [self._value(item, (*path, index)) for index, item in enumerate(value)]
        return value

    def _text(self, text: str, path: Path) -> str:
        if "${" not in text:
            return text
        found = list(_REFERENCE.finditer(text))
        if any(reference["wrong"] is not None for reference in found):
            self.draft.refuse(path, "holds a ${ that begins no ${NAME}: write $${ if you mean the two characters")
            return text
        names = dict.fromkeys(reference["name"] for reference in found if reference["name"] is not None)
        missing = [name for name in names if name not in self.variables]
        if missing:
            self.draft.refuse(path, _not_set(missing))
            return text
        if names:
            self.draft.foreign.add(path)
        return _replaced(text, self.variables)


def _replaced(text: str, variables: Mapping[str, str]) -> str:
    return _REFERENCE.sub(lambda one: variables[one["name"]] if one["name"] else "${", text)


def substituted(text: str, environment: Environment) -> str:
    """What a text of the file means, all of whose variables are set."""
    return _replaced(text, environment.values)


def literal(text: str, path: Path) -> str:
    """The text that stands in a file for itself, whatever it holds."""
    return text if _VERBATIM.intersection(path) else text.replace("${", "$${")


def _not_set(names: list[str]) -> str:
    verb = "is" if len(names) == 1 else "are"
    return f"{' and '.join(names)} {verb} not set in the environment: set it, or write $${{ for a literal ${{"


def credentials(draft: Draft, environment: Environment) -> None:
    """Read secrets from their files, then fill what the file does not set from the environment."""
    for secret, twin in SECRET_FILES.items():
        _from_file(draft, secret, twin)
    for path, names in ENVIRONMENT.items():
        section = draft.section(str(path[0]))
        name = next((name for name in names if environment.values.get(name)), None)
        twin_set = path in SECRET_FILES and section is not None and section.get(str(SECRET_FILES[path][1])) is not None
        if section is None or name is None or section.get(str(path[1])) is not None or twin_set:
            continue
        section[str(path[1])] = environment.values[name]
        draft.places[path] = environment.place(name)
        draft.foreign.add(path)


def _from_file(draft: Draft, secret: Path, twin: Path) -> None:
    section = draft.section(str(secret[0]))
    if section is None:
        return
    file_name = section.get(str(twin[1]))
    if not isinstance(file_name, str) or not file_name.strip() or draft.is_spoiled(twin):
        return
    if section.get(str(secret[1])) is not None:
        draft.refuse(twin, f"{secret[1]} and {twin[1]} are both given: keep one of them")
        return
    try:
        content = read_bytes(FilePath(file_name), _LARGEST_SECRET).decode("utf-8").rstrip("\r\n")
    except UnicodeDecodeError:
        draft.refuse(twin, "the file of the secret is not UTF-8 text: is it the right file?")
        return
    except Unreadable as reason:
        # Without the name: the secret itself, pasted in place of a path, is a common mistake.
        draft.refuse(twin, f"the file of the secret cannot be used: {reason.message}")
        return
    if not content.strip():
        draft.refuse(twin, "the file of the secret is empty")
        return
    section[str(secret[1])] = content
