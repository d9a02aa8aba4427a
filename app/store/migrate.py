"""Bringing the database to today's schema with Alembic. The revisions lie in `migrations/`, in the wheel as well."""

from pathlib import Path

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection

import app
from app.errors import StoreCorrupt
from app.store.schema import SCHEMA_REVISION
from app.store.sqlite import missing_triggers
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


def migrate(connection: Connection) -> None:
    """Upgrade within the caller's transaction: all of it or nothing.

    Raises:
        StoreCorrupt: the database was written by a newer version, or its append-only triggers are gone.
    """
    found = revision_of(connection)
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
