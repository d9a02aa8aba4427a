"""Bringing the database to today's schema with Alembic. The revisions lie in `migrations/`, in the wheel as well."""

import functools
from collections.abc import Mapping
from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, create_engine

import app
from app.errors import StoreCorrupt
from app.store.schema import SCHEMA_REVISION
from app.store.sqlite import driver, missing_triggers, objects
from app.store.views import ensure_views


def migrations_directory() -> Path:
    """Where the revisions are: inside the installed package, or beside it in a checkout."""
    package = Path(app.__file__).parent
    inside = package / "migrations"
    return inside if inside.is_dir() else package.parent / "migrations"


def alembic_config(connection: Connection | None = None) -> Config:
    """Alembic's configuration without a file, bound to a connection if there is one."""
    config = Config()
    config.set_main_option("script_location", str(migrations_directory()))
    config.attributes["connection"] = connection
    return config


def revision_of(connection: Connection) -> str | None:
    """The revision a database is at, None for an empty one."""
    return MigrationContext.configure(connection).get_current_revision()


def migrate(connection: Connection, *, is_new: bool) -> None:
    """Upgrade within the caller's transaction: all of it or nothing. Only a new database may be without our tables.

    Raises:
        StoreCorrupt: the database is another program's, lost its content, was written by a newer version, or its
            append-only triggers are gone.
    """
    found = revision_of(connection)
    if found is None:
        _refuse_foreign(connection, is_new=is_new)
    if found != SCHEMA_REVISION:
        config = alembic_config(connection)
        known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
        if found is not None and found not in known:
            raise StoreCorrupt(
                f"the database has schema revision {found}, this version knows up to {SCHEMA_REVISION}: "
                "run the newer version, or restore a backup made by this one"
            )
        command.upgrade(config, "head")
    missing = missing_triggers(connection)
    if missing:
        raise StoreCorrupt(
            f"the log's append-only triggers are gone ({', '.join(missing)}): somebody altered the database"
        )
    ensure_views(connection)


def _refuse_foreign(connection: Connection, *, is_new: bool) -> None:
    tables = sorted(name.removeprefix("table ") for name in objects(connection) if name.startswith("table "))
    if tables:
        raise StoreCorrupt(f"the database is another program's, it has the tables {', '.join(tables[:5])}")
    if not is_new:
        raise StoreCorrupt(
            "the database has lost its content, perhaps with its write-ahead log: restore a backup, "
            "or move what is left aside to begin anew"
        )


@functools.cache
def expected_objects() -> Mapping[str, str]:
    """What a database of today's revision consists of, as `sqlite.objects` tells it: once migrated in memory."""
    engine = create_engine("sqlite://", module=driver())
    try:
        with engine.begin() as connection:
            migrate(connection, is_new=True)
            return objects(connection)
    finally:
        engine.dispose()
