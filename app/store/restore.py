"""Putting a copy in the place of a database that nobody writes: proven first, the old one kept, never half done."""

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from app.errors import RuleViolation, StoreCorrupt, StoreUnavailable
from app.store import backup, log, private
from app.store.lock import Ending, WriterLock, translated_file_errors
from app.store.migrate import revision_of
from app.store.reading import reading
from app.store.verify import verify

_COMPANIONS = ("", "-wal", "-shm")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was put back, and where what it replaced is now. `replaced_position` is None if that could not be read."""

    position: int
    kept: Path | None
    replaced_position: int | None


def restore(copy: Path, path: Path, holder: str, made_at: datetime, record: Callable[[Path], None]) -> Restored:
    """Replace a database by a copy. `record` is given the new database before it takes its place, to write into it.

    `copy` is proven as `verify` does, on a copy of its own, so that what is proven is what is used. The old database
    with its write-ahead log is kept beside the new one. A crash in between leaves a note in the lock file, and no
    server starts before the restore was run again.

    Raises:
        StoreHeld: a process writes the database; stop that first.
        StoreUnavailable: there is no such copy, or the database's directory cannot be written; nothing was replaced.
        StoreCorrupt: the copy is no sound database of ours; nothing was replaced.
        RuleViolation: the copy is the database itself.
    """
    _require_ours(copy)
    if path.exists() and copy.samefile(path):
        raise RuleViolation(f"{copy} is the database itself: name a backup of it, or `newest`")
    lock = WriterLock(path)
    lock.acquire(holder)
    try:
        replaced_position = position_of(path)
        incoming = path.with_name(f"{path.name}.restoring")
        _discard(incoming)
        try:
            with translated_file_errors():
                backup.check(copy)
                private.create(incoming)
                shutil.copyfile(copy, incoming)
            record(incoming)
            position = _proven(incoming)
            lock.note(Ending.RESTORING)
            kept = _replace(path, incoming, made_at)
        finally:
            _discard(incoming)
        lock.mark(position)
        lock.note(Ending.CLEAN)
    finally:
        lock.release()
    return Restored(position=position, kept=kept, replaced_position=replaced_position)


def position_of(path: Path) -> int | None:
    """How far the log of a database goes, None if there is none or it cannot be read."""
    try:
        with reading(path) as connection:
            return log.head(connection).position
    except (StoreUnavailable, StoreCorrupt):
        return None


def refuse_to_lose(copy: Path, path: Path) -> None:
    """Keep a database whose log goes on behind the copy's.

    Raises:
        RuleViolation: it has events that the copy lacks.
    """
    present, wanted = position_of(path), position_of(copy)
    if present is not None and wanted is not None and present > wanted:
        raise RuleViolation(
            f"{path} can be read and has {present - wanted} events more than {copy}, which ends at position {wanted}: "
            "say --discard-newer to replace it nevertheless; it is kept beside the new one",
            position=present,
        )


def _require_ours(copy: Path) -> None:
    with reading(copy) as connection:
        if revision_of(connection) is None:
            raise StoreCorrupt(f"{copy} is no database of this program: there is no log in it", path=str(copy))


def _proven(incoming: Path) -> int:
    with reading(incoming) as connection:
        findings = list(verify(connection))
        position = log.head(connection).position
    if findings:
        raise StoreCorrupt(f"the copy is not sound: {'; '.join(findings[:3])}")
    return position


def _replace(path: Path, incoming: Path, made_at: datetime) -> Path | None:
    kept = path.with_name(f"{path.name}.replaced-{made_at:%Y%m%dT%H%M%SZ}")
    with translated_file_errors():
        for suffix in _COMPANIONS:
            old = path.with_name(path.name + suffix)
            if old.exists():
                old.replace(kept.with_name(kept.name + suffix))
        backup.sync_directory(path.parent)
        backup.durable_rename(incoming, path)
    return kept if kept.exists() else None


def _discard(incoming: Path) -> None:
    with translated_file_errors():
        for suffix in (*_COMPANIONS, ".lock"):
            incoming.with_name(incoming.name + suffix).unlink(missing_ok=True)
