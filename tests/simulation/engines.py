"""SQL is compiled once for all lives and all stories: a process would spend a third of its short life on it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from sqlalchemy import Engine

from app.store import sqlite

Maker = Callable[..., Engine]


class Engines:
    """Hands out again the engines of paths that it has seen. Closed by their last user, they connect anew."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Any, ...], Engine] = {}

    @contextmanager
    def kept(self) -> Iterator[None]:
        """In force until left."""
        writer, reader = self._keeping(sqlite.writer_engine), self._keeping(sqlite.reader_engine)
        with patch.object(sqlite, "writer_engine", writer), patch.object(sqlite, "reader_engine", reader):
            yield

    def _keeping(self, make: Maker) -> Maker:
        def kept(*arguments: Any) -> Engine:
            key = (make.__name__, *arguments)
            if key not in self._kept:
                self._kept[key] = make(*arguments)
            return self._kept[key]

        return kept
