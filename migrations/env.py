"""Alembic's entry: runs on the connection the program hands over, or on the one `alembic.ini` names for people."""

from alembic import context
from sqlalchemy import Connection

from app.store.schema import metadata
from app.store.sqlite import writer_engine
from app.store.views import ensure_views


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    context.run_migrations()


def _main() -> None:
    connection: Connection | None = context.config.attributes.get("connection")
    if connection is not None:
        _run(connection)
        return
    from pathlib import Path  # noqa: PLC0415 - only when run by hand

    database = context.get_x_argument(as_dictionary=True).get("database", "var/provider.db")
    engine = writer_engine(Path(database))
    with engine.begin() as own:
        _run(own)
        ensure_views(own)


_main()
