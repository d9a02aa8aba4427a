"""The JSON Schema of the configuration file, for editors and continuous integration.

`python -m app.config.schema > docs/configuration.schema.json` makes the published copy.
It says less than the loader checks, and never refuses what the loader takes.
"""

import json
import sys
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter

from app.config.group_parts import ScriptValue, StartupTaint, Taint
from app.config.groups import NodeGroup
from app.config.model import Config
from app.config.values import duration_text

_REFERENCE = {"type": "string", "pattern": r"\$\{\w+\}"}
"""What may stand for any value: it comes from the environment."""


def schema() -> dict[str, Any]:
    """The schema as a document of draft 2020-12."""
    made = Config.model_json_schema()
    parts: dict[str, Any] = made.pop("$defs")
    made = _relaxed(made)
    definitions = {name: _relaxed(part) for name, part in parts.items()}
    # What a group lacks may stand in `defaults`; a taint may be written as kubectl does, and a value as itself.
    definitions[NodeGroup.__name__]["required"] = []
    for written_as_text in (Taint, StartupTaint, ScriptValue):
        name = written_as_text.__name__
        definitions[name] = {"anyOf": [definitions[name], _unquoted({"type": "string"})]}
    made["properties"]["defaults"] = {
        "description": "Any keys of a node group, for all groups.",
        "anyOf": [{"$ref": f"#/$defs/{NodeGroup.__name__}"}, {"type": "null"}],
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Configuration of verda-cloud-provider",
        **{key: part for key, part in made.items() if key != "title"},
        "$defs": definitions,
    }


def _relaxed(part: dict[str, Any]) -> dict[str, Any]:
    """A section in which any key may be left empty or come from the environment, with defaults as they are written."""
    properties = part.get("properties")
    if properties is None:
        return {key: value for key, value in part.items() if key != "title"}
    relaxed = {name: _key(field) for name, field in properties.items()}
    return {**{key: value for key, value in part.items() if key != "title"}, "properties": relaxed}


def _key(field: dict[str, Any]) -> dict[str, Any]:
    kept: dict[str, Any] = {key: field[key] for key in ("description", "default") if key in field}
    if isinstance(kept.get("default"), str) and "pattern" in field and kept["default"].startswith("P"):
        kept["default"] = duration_text(TypeAdapter(timedelta).validate_python(kept["default"]))
    value = {key: part for key, part in field.items() if key not in {"description", "default", "title"}}
    choices = value.pop("anyOf", None) or [value]
    return {**kept, "anyOf": [*map(_unquoted, choices), _REFERENCE, {"type": "null"}]}


def _unquoted(part: Any) -> Any:
    """Text may look like a number: `cpu: 4`, `size: 0.60`."""
    if isinstance(part, list):
        return [_unquoted(each) for each in part]
    if not isinstance(part, dict):
        return part
    if part.get("type") == "string" and "enum" not in part and "const" not in part:
        return {**part, "type": ["string", "number"]}
    return {key: _unquoted(value) for key, value in part.items()}


def page() -> str:
    """The file's content."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    sys.stdout.write(page())
