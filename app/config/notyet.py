"""Keys that are part of the configuration and that this version cannot serve yet: refused, never ignored."""

from collections.abc import Iterator, Mapping

from pydantic import TypeAdapter, ValidationError

from app.config import shape
from app.config.draft import Draft, Path, Value

NOT_YET: Mapping[str, str] = {
    "node_groups.*.replace_lost": "the autoscaler replaces lost nodes from its pending pods",
}
"""Path and what to do instead. To serve a key, delete its line."""


def refuse_not_yet(draft: Draft) -> None:
    """Refuse every such key that says something else than its default."""
    for pattern, instead in NOT_YET.items():
        for path, value in _matches(draft.data, tuple(pattern.split("."))):
            if not _is_default(path, value) and not draft.is_spoiled(path):
                draft.blame(path, f"cannot be used in this version: {instead}")


def _matches(data: dict[str, Value], pattern: tuple[str, ...]) -> Iterator[tuple[Path, Value]]:
    yield from _walk(data, pattern, ())
    if pattern[0] == shape.GROUPS:
        yield from _walk(data, (shape.DEFAULTS, *pattern[2:]), ())


def _walk(value: Value, pattern: tuple[str, ...], path: Path) -> Iterator[tuple[Path, Value]]:
    if not pattern:
        yield path, value
    elif isinstance(value, dict):
        for key in value if pattern[0] == "*" else value.keys() & {pattern[0]}:
            yield from _walk(value[key], pattern[1:], (*path, key))


def _is_default(path: Path, value: Value) -> bool:
    field = shape.field_at(path)
    words = shape.words(path)
    if value is None or field is None or (words and value not in words):
        return True  # nothing said, or something that the model refuses with better words
    default: object = field.get_default(call_default_factory=True)
    try:
        read: object = TypeAdapter(field.rebuild_annotation()).validate_python(value)
    except ValidationError:
        return False
    return read == default
