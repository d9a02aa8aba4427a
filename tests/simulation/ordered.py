"""Persistent maps that keep the order in which keys came, in place of `rpds.HashTrieMap`, whose order is random."""

import sys
from typing import Self, TypeVar

import rpds

K = TypeVar("K")
V = TypeVar("V")


class OrderedMap(dict[K, V]):
    """Changes are made to copies, as with the map that it stands for. Stories are small."""

    def insert(self, key: K, value: V) -> Self:
        """The same with this value for this key."""
        changed = type(self)(self)
        changed[key] = value
        return changed

    def remove(self, key: K) -> Self:
        """The same without this key. Raises: KeyError."""
        changed = type(self)(self)
        del changed[key]
        return changed

    def discard(self, key: K) -> Self:
        """The same without this key, if it is there."""
        return self.remove(key) if key in self else self


def install() -> None:
    """Let the program use these maps; it must not have been imported yet."""
    if "app.domain.books" in sys.modules:
        raise RuntimeError("the program has been imported with its own maps")
    rpds.HashTrieMap = OrderedMap  # type: ignore[assignment,misc]
