"""From a JSON text to plain values, with the line of each one. As strict as the older tools' parsers, and bounded."""

import json
import re
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from app.config.draft import Draft, Path, Place, Value, path_text
from app.config.source import Unreadable
from app.errors import Problem

_DEEPEST = 32
_BLANKS = re.compile(r"[ \t\r\n]*")
_STRING = re.compile(r'"[^"\\\x00-\x1f]*(?:\\.[^"\\\x00-\x1f]*)*"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"[A-Za-z]+")
_PLAIN_INTEGER = re.compile(r"-?[0-9]{1,15}")
_PLAIN_DECIMAL = re.compile(r"-?[0-9]{1,15}\.[0-9]{1,15}")
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}


def parse(text: str, source: str, draft: Draft) -> dict[str, Value]:
    """The object that a text holds; notes in the draft where each value stands and what is odd about it.

    Raises:
        Unreadable: it is not JSON, or no object. Never quotes the text, which may be a secret.
    """
    return _Reader(text, source, draft).whole()


@dataclass(slots=True)
class _Reader:
    text: str
    source: str
    draft: Draft
    at: int = 0

    def whole(self) -> dict[str, Value]:
        """The text from its first to its last character."""
        self._skip()
        if not self.text[self.at : self.at + 1]:
            raise Unreadable("is empty: it needs at least node_configs")
        if self.text[self.at] != "{":
            self._fail("it must be an object, from { to }")
        value = self._object((), 0)
        if self._skip():
            self._fail("something stands after the closing }")
        return value

    def _value(self, path: Path, depth: int) -> Value:
        match self._skip():
            case "{":
                return self._object(path, depth)
            case "[":
                return self._array(path, depth)
            case '"':
                return self._sound(self._string(), path)
            case "-" | "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9":
                return self._number()
            case _:
                return self._constant()

    def _object(self, path: Path, depth: int) -> dict[str, Value]:
        values: dict[str, Value] = {}
        self._open(depth)
        if self._skip() == "}":
            self.at += 1
            return values
        while True:
            if self._skip() != '"':
                self._fail("a key in double quotes is expected")
            line, key = self._line(), self._string()
            here = (*path, self._sound_key(key, line))
            self._expect(":", "a : after the key is expected")
            self._skip()
            repeated = key in values
            start = self.at
            value = self._value((*here, "again") if repeated else here, depth + 1)
            if repeated:
                self._twice(here, line)
            else:
                values[key] = value
                self._stands(here, line, start, value)
            if self._closes("}", path):
                return values

    def _array(self, path: Path, depth: int) -> list[Value]:
        items: list[Value] = []
        self._open(depth)
        if self._skip() == "]":
            self.at += 1
            return items
        while True:
            here = (*path, len(items))
            self._skip()
            line, start = self._line(), self.at
            items.append(self._value(here, depth + 1))
            self._stands(here, line, start, items[-1])
            if self._closes("]", path):
                return items

    def _open(self, depth: int) -> None:
        if depth >= _DEEPEST:
            raise Unreadable(f"is nested more than {_DEEPEST} levels deep", self._line())
        self.at += 1

    def _closes(self, mark: str, path: Path) -> bool:
        """True at the closing mark; False after a comma with something behind it."""
        found = self._skip()
        if found == mark:
            self.at += 1
            return True
        if found != ",":
            inside = path_text(path) if path else "the whole"
            self._fail(f"a , or the closing {mark} is missing in {inside}")
        self.at += 1
        if self._skip() == mark:
            self._fail(f"a , stands before the closing {mark}: remove it")
        return False

    def _string(self) -> str:
        found = _STRING.match(self.text, self.at)
        if found is None:
            self._fail('text has no closing ", or holds a line break or a tab: write \\n or \\t')
        try:
            value: str = json.loads(found[0])
        except ValueError:
            self._fail("text holds a \\ that begins no escape: write \\\\ if you mean the character")
        self.at = found.end()
        return value

    def _number(self) -> Value:
        found = _NUMBER.match(self.text, self.at)
        if found is None:
            self._fail("a number is expected after the -")
        self.at = found.end()
        if _PLAIN_INTEGER.fullmatch(found[0]):
            return int(found[0])
        # Exponents and endless digits: text, and for the type of the key to refuse.
        return Decimal(found[0]) if _PLAIN_DECIMAL.fullmatch(found[0]) else found[0]

    def _constant(self) -> Value:
        found = _WORD.match(self.text, self.at)
        if found is None or found[0] not in _CONSTANTS:
            self._fail("a value is expected: text in double quotes, a number, true, false, null, [ or {")
        self.at = found.end()
        return _CONSTANTS[found[0]]

    def _expect(self, mark: str, message: str) -> None:
        if self._skip() != mark:
            self._fail(message)
        self.at += 1

    def _skip(self) -> str:
        """Go past blanks; the next character, empty at the end."""
        found = _BLANKS.match(self.text, self.at)
        self.at = found.end() if found is not None else self.at
        return self.text[self.at : self.at + 1]

    def _fail(self, message: str) -> NoReturn:
        here = self.text[self.at : self.at + 1]
        if not here:
            message = "it ends in the middle: is it cut off?"
        elif here in {"/", "#"}:
            message = "comments are no part of JSON: remove it"
        elif here == "'":
            message = "text stands in double quotes, not in single ones"
        column = self.at - self.text.rfind("\n", 0, self.at)
        raise Unreadable(f"is not JSON, at column {column}: {message}", self._line())

    def _line(self) -> int:
        return self.text.count("\n", 0, self.at) + 1

    def _stands(self, path: Path, line: int, start: int, value: Value) -> None:
        written = None if isinstance(value, (dict, list)) else self.text[start : self.at].strip('"')
        self.draft.places[path] = Place(source=self.source, line=line, path=path_text(path), written=written)

    def _twice(self, path: Path, line: int) -> None:
        first = self.draft.places[path].line
        again = f"is given twice, first on line {first}: keep one of them"
        self.draft.problems.append(Problem(source=self.source, line=line, path=path_text(path), message=again))

    def _sound_key(self, key: str, line: int) -> str:
        if _odd(key):
            raise Unreadable("a key holds a character that is none: a NUL or half of a surrogate pair", line)
        return key

    def _sound(self, text: str, path: Path) -> Value:
        if not _odd(text):
            return text
        self.draft.places[path] = Place(source=self.source, line=self._line(), path=path_text(path))
        self.draft.refuse(path, "holds a character that is none: a NUL or half of a surrogate pair")
        return ""


def _odd(text: str) -> bool:
    return any(mark == "\0" or "\ud800" <= mark <= "\udfff" for mark in text)
