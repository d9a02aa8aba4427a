"""Alembic's entry: runs on the connection the program hands over, or on the one `alembic.ini` names for people."""

from pathlib import Path

from alembic import context
from sqlalchemy import Connection

from app.store.lock import WriterLock
from app.store.schema import metadata
from app.store.sqlite import writer_engine
from app.store.views import ensure_views


def _run(connection: Connection) -> None:
    context.configure(connection=connection, target_metadata=metadata, transactional_ddl=True)
    context.run_migrations()


def _run_by_hand(database: Path) -> None:
    lock = WriterLock(database)
    lock.acquire("alembic, run by hand")  # never beside a server: it may be in the middle of a command
    try:
        engine = writer_engine(database)
        with engine.begin() as connection:
            _run(connection)
            ensure_views(connection)
        engine.dispose()
    finally:
        lock.release()


_handed_over: Connection | None = context.config.attributes.get("connection")
if _handed_over is not None:
    _run(_handed_over)
else:
    _run_by_hand(Path(context.get_x_argument(as_dictionary=True).get("database", "var/provider.db")))
