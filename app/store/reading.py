"""Looking into a database without writing it, whether a server writes it meanwhile or not."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection

from app.errors import StoreUnavailable
from app.store import sqlite
from app.store.lock import translated_file_errors


def require(path: Path) -> None:
    """See that there is a database, before SQLite makes one.

    Raises:
        StoreUnavailable: there is none.
    """
    with translated_file_errors():
        if not path.exists():
            raise StoreUnavailable(f"there is no database at {path}", path=str(path))


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Connection]:
    """A short read-only look at one moment of a database, also while a server writes it.

    Raises:
        StoreUnavailable: there is no database, or it cannot be read.
        StoreCorrupt: the file is damaged.
    """
    require(path)
    engine = sqlite.reader_engine(path)
    try:
        with sqlite.translated_errors(), engine.connect() as connection:
            yield connection
    finally:
        engine.dispose()
