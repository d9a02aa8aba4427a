"""Looking into a database without writing it, whether a server writes it meanwhile or not."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from sqlalchemy import Connection, text

from app.errors import StoreCorrupt, StoreUnavailable
from app.store import schema, sqlite
from app.store.lock import translated_file_errors


def require(path: Path) -> None:
    """See that there is a database, before SQLite makes one.

    Raises:
        StoreUnavailable: there is none.
    """
    with translated_file_errors():
        if not path.exists():
            raise StoreUnavailable(f"there is no database at {path}", path=str(path))
        if path.is_dir():
            raise StoreUnavailable(f"{path} is a directory: name the database in it", path=str(path))


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
    except StoreCorrupt as error:
        raise StoreCorrupt(f"{path}: {error.message}", **error.context) from error
    finally:
        engine.dispose()


@contextlib.contextmanager
def asking(path: Path) -> Iterator[Connection]:
    """The same for those who ask its views: they must be the ones that this version knows.

    Raises:
        StoreUnavailable: there is no database, it cannot be read, or another version made it.
        StoreCorrupt: the file is damaged.
    """
    with reading(path) as connection:
        made = connection.execute(text("SELECT name FROM sqlite_master WHERE name = 'alembic_version'")).scalar()
        found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar() if made else None
        if found is None:
            message = f"{path} is no database of this program: there is no log in it"
            raise StoreUnavailable(message, path=str(path))
        if found != schema.SCHEMA_REVISION:
            raise StoreUnavailable(
                f"{path} has schema revision {found}, this version reads {schema.SCHEMA_REVISION}: ask with "
                "the version that wrote it, or start this version's server on it once, which brings it up to date",
                path=str(path),
            )
        yield connection
