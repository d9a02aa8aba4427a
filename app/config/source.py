"""From the bytes of a YAML file to plain values, with the line of each one. Safe against files that mean harm."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path as FilePath

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from app.config.draft import Draft, Path, Place, Value, path_text
from app.errors import ConfigurationError, Problem

_LARGEST_FILE = 1024 * 1024  # a ConfigMap cannot hold more
_DEEPEST = 32
_MOST_VALUES = 100_000  # aliases multiply: ten lines of YAML can stand for billions of values

_NULL, _BOOL, _STR = "tag:yaml.org,2002:null", "tag:yaml.org,2002:bool", "tag:yaml.org,2002:str"
_INT, _FLOAT, _TIME = "tag:yaml.org,2002:int", "tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp"
_MERGE, _MAP, _SEQ = "tag:yaml.org,2002:merge", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"
_TRUE = frozenset({"true", "yes", "on"})
_PLAIN_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]{0,14})")
_PLAIN_DECIMAL = re.compile(r"[-+]?[0-9]{0,15}\.[0-9]{0,15}")
_QUOTED = re.compile(r"'([^']*)'|\"([^\"]*)\"")


class Unreadable(Exception):
    """The file as a whole cannot be read; `line` where known."""

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line


def read(path: FilePath) -> tuple[Draft, str]:
    """Read a configuration file: its values, and the SHA-256 of its bytes.

    Raises:
        ConfigurationError: there is no such file, or it is not a YAML mapping.
    """
    problem: Problem | None = None
    try:
        content = read_bytes(path)
        return parse(_decode(content), str(path)), hashlib.sha256(content).hexdigest()
    except Unreadable as reason:
        problem = Problem(source=str(path), line=reason.line, path="", message=reason.message)
    # Outside of `except`, so that no traceback carries lines of the file.
    raise ConfigurationError((problem,))


def read_bytes(path: FilePath, largest: int = _LARGEST_FILE) -> bytes:
    """The content of a file of bounded size, with every refusal of the system in words."""
    try:
        with path.open("rb") as file:
            content = file.read(largest + 1)
    except FileNotFoundError:
        raise Unreadable("there is no such file") from None
    except IsADirectoryError:
        raise Unreadable("is a directory, not a file: name the file in it, for example config.yaml") from None
    except PermissionError:
        raise Unreadable("this process may not read it: check the owner and the mode of the file") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "its name is not a file name"
        raise Unreadable(f"cannot be read: {reason}") from None
    if len(content) > largest:
        raise Unreadable(f"is larger than {largest} bytes: is it the right file?")
    return content


def _decode(content: bytes) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"is not UTF-8 (byte 0x{content[error.start]:02x}): save it as UTF-8", line) from None


def parse(text: str, source: str) -> Draft:
    """Values and lines of a YAML text whose top level is a mapping."""
    root = _compose(text)
    if root is None or (isinstance(root, ScalarNode) and root.tag == _NULL):
        raise Unreadable("is empty: it needs at least node_groups")
    if not isinstance(root, MappingNode):
        kind = "a list" if isinstance(root, SequenceNode) else "text"
        raise Unreadable(f"must be a mapping of keys and values at the top level, is {kind}", _line(root))
    draft = Draft(source=source, data={})
    _Reader(draft).fill(root)
    return draft


class _Composer(yaml.SafeLoader):
    """PyYAML's safe loader up to the tree of nodes, with a bound on depth instead of Python's recursion limit."""

    depth = 0

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        if self.depth >= _DEEPEST:
            here = self.peek_event().start_mark  # type: ignore[no-untyped-call]  # the stubs have no signature
            raise Unreadable(f"is nested more than {_DEEPEST} levels deep", here.line + 1)
        self.depth += 1
        node: Node | None = super().compose_node(parent, index)
        self.depth -= 1
        return node


def _compose(text: str) -> Node | None:
    try:
        return _Composer(text).get_single_node()
    except yaml.reader.ReaderError as error:
        raise Unreadable("holds a control character", text.count("\n", 0, error.position) + 1) from None
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise Unreadable(_syntax(error), mark.line + 1 if mark else None) from None
    except (ValueError, OverflowError):
        raise Unreadable(r"holds an escape like \UFFFFFFFF that is no character") from None


def _syntax(error: yaml.MarkedYAMLError) -> str:
    """The parser's own words, without what it quotes of the file: that may be a secret."""
    told, context = _unquoted(error.problem or "cannot be understood"), _unquoted(error.context or "")
    if r"'\t'" in told:
        return "is not YAML: a tab stands where only spaces may; indent with spaces"
    if "expected a single document" in context:
        return "holds more than one YAML document: keep one, without ---"
    if context and error.context_mark:
        context += f" that begins on line {error.context_mark.line + 1}"
    return f"is not YAML: {told} {context}".rstrip()


def _unquoted(words: str) -> str:
    """Keep single characters and the parser's `<names>` of tokens, nothing that was written in the file."""
    return _QUOTED.sub(lambda quote: quote[0] if re.fullmatch(r"<.*>|\\?.", quote[1] or quote[2] or "") else "…", words)


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1


@dataclass(slots=True)
class _Reader:
    """Turns nodes into values, noting lines and every problem on the way."""

    draft: Draft
    values: int = 0
    within: set[int] = field(default_factory=set)

    def fill(self, root: MappingNode) -> None:
        """Read the whole tree into the draft."""
        self.draft.data = self._mapping(root, ())

    def _value(self, node: Node, path: Path) -> Value:
        self._count(node)
        if isinstance(node, ScalarNode):
            return self._scalar(node, path)
        if id(node) in self.within:
            return self._odd(path, "holds itself through an alias")
        self.within.add(id(node))
        try:
            if isinstance(node, SequenceNode):
                return self._sequence(node, path)
            return self._mapping(node, path)
        finally:
            self.within.discard(id(node))

    def _scalar(self, node: ScalarNode, path: Path) -> Value:
        text: str = node.value
        if any(mark == "\0" or "\ud800" <= mark <= "\udfff" for mark in text):
            return self._odd(path, "holds a character that is none: a NUL or half of a surrogate pair")
        match node.tag:
            case t if t == _NULL:
                return None
            case t if t == _BOOL:
                return text.lower() in _TRUE
            case t if t == _INT and _PLAIN_INTEGER.fullmatch(text):
                return int(text)
            case t if t == _FLOAT and _PLAIN_DECIMAL.fullmatch(text):
                return Decimal(text)
            # Octal, hexadecimal, sexagesimal, infinite: text, and for the type of the key to refuse.
            case t if t in {_STR, _INT, _FLOAT, _TIME}:
                return text
            case _:
                return self._odd(path, "has a YAML tag (!…) that is not used here: remove it")

    def _sequence(self, node: SequenceNode, path: Path) -> Value:
        if node.tag != _SEQ:
            return self._odd(path, "has a YAML tag (!…) that is not used here: remove it")
        items: list[Value] = []
        for index, item in enumerate(node.value):
            self._stands(item, item, (*path, index))
            items.append(self._value(item, (*path, index)))
        return items

    def _mapping(self, node: Node, path: Path) -> dict[str, Value]:
        values: dict[str, Value] = {}
        if node.tag != _MAP:
            self._odd(path, "has a YAML tag (!…) that is not used here: remove it")
            return values
        for key, item in self._pairs(node, path):
            name: str = key.value
            here = (*path, name)
            if name in values:
                first = self.draft.places[here].line
                again = f"is given twice, first on line {first}: keep one of them"
                self.draft.problems.append(
                    Problem(source=self.draft.source, line=_line(key), path=path_text(here), message=again)
                )
                continue
            self._stands(key, item, here)
            values[name] = self._value(item, here)
        return values

    def _pairs(self, node: Node, path: Path) -> Iterator[tuple[ScalarNode, Node]]:
        """A mapping's own keys, then those merged in with `<<` that it does not have itself."""
        merged: list[tuple[Node, Node]] = []
        own: set[str] = set()
        for key, item in node.value:
            if key.tag == _MERGE:
                merged += [(key, one) for one in (item.value if isinstance(item, SequenceNode) else [item])]
            elif not isinstance(key, ScalarNode):
                self._stands(key, item, (*path, "?"))
                self._odd((*path, "?"), "a key must be plain text")
            else:
                own.add(key.value)
                yield key, item
        for key, other in merged:
            for merged_key, item in self._merged(key, other, path):
                if merged_key.value not in own:
                    own.add(merged_key.value)
                    yield merged_key, item

    def _merged(self, key: Node, other: Node, path: Path) -> Iterator[tuple[ScalarNode, Node]]:
        self._count(other)
        if not isinstance(other, MappingNode) or id(other) in self.within:
            self._stands(key, other, (*path, "<<"))
            self._odd((*path, "<<"), "can only merge in other mappings")
            return
        self.within.add(id(other))
        yield from self._pairs(other, path)
        self.within.discard(id(other))

    def _count(self, node: Node) -> None:
        self.values += 1
        if self.values > _MOST_VALUES:
            raise Unreadable(f"stands for more than {_MOST_VALUES} values: are its aliases multiplying?", _line(node))

    def _stands(self, key: Node, item: Node, path: Path) -> None:
        written = item.value if isinstance(item, ScalarNode) else None
        self.draft.places[path] = Place(
            source=self.draft.source, line=_line(key), path=path_text(path), written=written
        )

    def _odd(self, path: Path, message: str) -> Value:
        """Refuse a value and put an empty one in its place."""
        self.draft.refuse(path, message)
        return ""
