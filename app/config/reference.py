"""The page `docs/configuration.md`, made from the model: `python -m app.config.reference > docs/configuration.md`."""

import json
import sys
from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Literal, TypeGuard, Union, get_args, get_origin

from pydantic import SecretStr, TypeAdapter
from pydantic.fields import FieldInfo

from app.config import schema
from app.config.draft import path_text
from app.config.environment import ENVIRONMENT, SECRET_FILES
from app.config.fields import Named, Section
from app.config.groups import NodeGroup, WebhookGroup
from app.config.model import Config
from app.config.notyet import NOT_YET
from app.config.shape import alternatives

_HEAD = """\
<!-- Made by `python -m app.config.reference`; do not edit. -->

# Configuration

One YAML file, named by `--config`.
`examples/config.yaml` is one to start from, `examples/from-python-provider.yaml` has the older Python provider's form.
Editors complete and check a file that begins with `# yaml-language-server: $schema=` and the path or address of
[configuration.schema.json](configuration.schema.json); `config schema` prints it.

- Unknown keys, keys given twice and wrong values are errors, all told at once with line and remedy.
- A key without a value means its default.
- **duration**: `500ms`, `30s`, `15m`, `1h30m`, `1d`; a number without unit is refused.
- **money per hour**: a decimal number in the catalogue's currency.
- **quantity**: as in Kubernetes, `4`, `500m`, `16Gi`, `100G`.
- **host:port**: an IPv6 host stands in brackets, `[::1]:8086`; port 0 lets the system choose.
- **path**: relative to the directory in which the process was started.
- `${NAME}` in any text is replaced by the environment variable, `$${` stands for a literal `${`.
  A variable that is not set is an error.
- `.env` beside the file is read as well; variables of the process win over it.
- The flags `--port`, `--http-port`, `--database` and `--log-level` win over the file.
"""

_DEFAULTS = (
    "| `defaults` | section |  | Any keys of a node group, for all groups. "
    "A group's own key wins as a whole, also where it is a list or a mapping. |"
)


def page() -> str:
    """The whole page."""
    parts = (
        _HEAD,
        _environment(),
        _table("The service", [*_rows(Config, ""), _DEFAULTS]),
        _table("Node groups", _rows(NodeGroup, "node_groups.<name>")),
        _table("Node groups of machines of your own", _rows(WebhookGroup, "node_groups.<name>")),
    )
    return "\n".join(parts)


def _environment() -> str:
    lines = [
        "## From the environment",
        "",
        "| key, where the file does not set it | variables, of which the first that is set counts |",
        "|---|---|",
        *(f"| `{path_text(key)}` | {', '.join(f'`{name}`' for name in names)} |" for key, names in ENVIRONMENT.items()),
        "",
        *(
            f"`{path_text(twin)}` names a file that holds `{path_text(secret)}`; newlines at its end are dropped."
            for secret, twin in SECRET_FILES.items()
        ),
        "",
    ]
    return "\n".join(lines)


def _table(title: str, rows: Iterable[str]) -> str:
    return "\n".join((f"## {title}", "", "| key | type | default | meaning |", "|---|---|---|---|", *rows, ""))


def _rows(section: type[Section], prefix: str) -> Iterator[str]:
    """The keys of a section, each followed by those inside it."""
    for name, field in section.model_fields.items():
        path = f"{prefix}.{name}" if prefix else name
        inner = [kind for kind in alternatives(field.annotation) if _is_section(kind)]
        listed = [kind for kind in _items(field.annotation) if _is_section(kind)]
        yield _row(path, field)
        for kind in inner:
            yield from _rows(kind, path)
        for kind in listed:
            yield from _rows(kind, f"{path}[]")


def _row(path: str, field: FieldInfo) -> str:
    meaning = field.description or ""
    instead = NOT_YET.get(path.replace("<name>", "*"))
    if instead is not None:
        what = "Not" if field.is_required() or not field.get_default(call_default_factory=True) else "Only the default"
        meaning += f" **{what} in this version:** {instead}."
    cells = (f"`{path}`", _type(field.annotation, field.metadata), _default(field), meaning)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _is_section(kind: object) -> TypeGuard[type[Section]]:
    return isinstance(kind, type) and issubclass(kind, Section)


def _items(annotation: object) -> Iterator[object]:
    for kind in alternatives(annotation):
        if get_origin(kind) is tuple:
            yield from alternatives(get_args(kind)[0])


def _type(annotation: object, metadata: Iterable[object] = ()) -> str:
    """What a type is called on the page."""
    named = [one.name for one in metadata if isinstance(one, Named)]
    if named:
        return named[0]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type(arguments[0], arguments[1:])
    if origin in {Union, UnionType}:
        return _type(next(one for one in arguments if one is not NoneType))
    if origin is Literal:
        return _words(arguments)
    if origin is tuple:
        return f"list of {_type(arguments[0])}s"
    if annotation is SecretStr:
        return "secret"
    if isinstance(annotation, type) and issubclass(annotation, StrEnum):
        return _words(tuple(annotation))
    return "mapping" if origin is dict else "section"


def _words(words: tuple[str, ...]) -> str:
    *others, last = (f"`{word}`" for word in words)
    return f"{', '.join(others)} or {last}" if others else last


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "**required**"
    default: object = field.get_default(call_default_factory=True)
    if default is None or isinstance(default, Section):
        return ""
    written = TypeAdapter(field.rebuild_annotation()).dump_python(default, mode="json")
    return f"`{written}`" if isinstance(written, str) and written else f"`{json.dumps(written)}`"


def _write_schema_beside() -> None:
    """In a checkout, so that nobody publishes the one without the other."""
    published = Path("docs/configuration.schema.json")
    if published.exists() and published.read_text(encoding="utf-8") != schema.page():
        published.write_text(schema.page(), encoding="utf-8")


if __name__ == "__main__":
    _write_schema_beside()
    sys.stdout.write(page())
