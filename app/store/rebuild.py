"""Folding the log into the projections anew, while nobody writes."""

from pathlib import Path

from app.store import projections, sqlite
from app.store.lock import Ending, WriterLock
from app.store.migrate import migrate
from app.store.reading import require


def rebuild(path: Path, holder: str, progress: projections.Progress = projections.ignore) -> int:
    """Fold the log of a database that nobody writes into its projections; the position they stand for then.

    `progress` is told every hundred events how far it is; an event takes some 30 µs.

    Raises:
        StoreHeld: a process writes it; stop that first.
        StoreUnavailable: there is no database, or it cannot be written.
        StoreCorrupt: an event cannot be read, or the file is damaged.
    """
    require(path)
    lock = WriterLock(path)
    lock.acquire(holder)
    engine = sqlite.writer_engine(path)
    try:
        if lock.last_ending is Ending.CLEAN:
            lock.note(Ending.RUNNING)
        with sqlite.translated_errors(), engine.begin() as connection:
            migrate(connection, is_new=False)
            position = projections.rebuild(connection, progress)
        engine.dispose()
        if lock.last_ending is Ending.CLEAN:
            lock.note(Ending.CLEAN)
    finally:
        engine.dispose()
        lock.release()
    return position
