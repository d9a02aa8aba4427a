"""Copies of a database: made while it is written, proven by opening them, each with a manifest beside it.

A copy counts once its manifest is there, which is written last. Whatever a crash leaves in between is a file without a
manifest: never taken for a copy, and removed by a round that is made a day later.
"""

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, ValidationError
from sqlalchemy import Connection, text

from app.errors import StoreCorrupt, StoreUnavailable
from app.store import log, private, sqlite
from app.store.lock import translated_file_errors
from app.store.log import Head
from app.store.migrate import revision_of
from app.store.reading import reading, require

_PARTIAL = ".partial"
_CHUNK = 1 << 20
_LONGEST_ROUND = timedelta(days=1)
_INSTALLATION = "SELECT json_extract(data, '$.installation_id') FROM events WHERE type = 'service.installation-created'"


class BackupReason(StrEnum):
    """Why a copy was made; each kind is kept and cleared away by itself."""

    SCHEDULED = "scheduled"
    BY_HAND = "by-hand"
    BEFORE_MIGRATION = "before-migration"


class Manifest(BaseModel):
    """What a copy holds, so that it can be judged without being opened. The hash vouches for the whole log."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    format: Literal[1] = 1
    made_at: datetime
    reason: BackupReason
    size: NonNegativeInt
    sha256: str
    position: NonNegativeInt
    head_hash: str
    last_event_at: datetime | None
    schema_revision: str
    installation_id: str
    sqlite_version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Backup:
    """A copy with its manifest."""

    path: Path
    manifest: Manifest


def manifest_of(copy: Path) -> Path:
    """Where the manifest of a copy is."""
    return copy.with_name(f"{copy.name}.json")


def take(source: Path, directory: Path, made_at: datetime, reason: BackupReason) -> Backup:
    """Copy a database, prove the copy, put it into the directory. A server may write the database meanwhile.

    The copy is one moment of the database. Nobody waits for it: readers of a write-ahead log disturb no writer.

    Raises:
        StoreUnavailable: there is no database, or the directory cannot be written; nothing is left behind.
        StoreCorrupt: the copy is not what a database of ours must be; nothing is left behind.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        words = f"no copies can be put into {directory}: {error.strerror}"
        raise StoreUnavailable(words, reason=error.strerror or "") from error
    partial = directory / f"{source.name}.{os.getpid()}{_PARTIAL}"
    try:
        with sqlite.translated_errors(), translated_file_errors():
            held = _copied(source, partial)
            manifest = _proven(partial, held, made_at, reason)
            copy = directory / f"{source.stem}-{made_at:%Y%m%dT%H%M%SZ}-{manifest.position}{source.suffix}"
            durable_rename(partial, copy)
            write_manifest(copy, manifest)
    finally:
        partial.unlink(missing_ok=True)
    return Backup(path=copy, manifest=manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the source holds in the moment that is copied."""

    head: Head
    revision: str
    installation_id: str


def _copied(source: Path, target: Path) -> _Held:
    target.unlink(missing_ok=True)
    private.create(target)
    with reading(source) as connection:
        held = _held_by(connection)
        copy = sqlite.driver().connect(str(target))
        with contextlib.closing(copy):
            connection.connection.driver_connection.backup(copy)  # type: ignore[union-attr] # connected
            # A copy is one file: in the mode of the source it would want two more beside it as soon as it is opened.
            copy.execute("PRAGMA journal_mode=DELETE").fetchall()
    return held


def _held_by(connection: Connection) -> _Held:
    return _Held(
        head=log.head(connection),
        revision=revision_of(connection) or "",
        installation_id=str(connection.execute(text(_INSTALLATION)).scalar() or ""),
    )


def _proven(copy: Path, held: _Held, made_at: datetime, reason: BackupReason) -> Manifest:
    """Open the copy as a restore would, and look at every page and at the end of its log."""
    with reading(copy) as connection:
        damages = sqlite.damages(connection)
        if damages:
            raise StoreCorrupt(f"the copy of the database is damaged: {'; '.join(damages)}")
        if _held_by(connection) != held:
            raise StoreCorrupt(f"the copy ends at {log.head(connection)}, the database at {held.head}")
        log.check_tail(connection)
    return Manifest(
        made_at=made_at,
        reason=reason,
        size=copy.stat().st_size,
        sha256=sha256_of(copy),
        position=held.head.position,
        head_hash=held.head.hash,
        last_event_at=held.head.recorded_at,
        schema_revision=held.revision,
        installation_id=held.installation_id,
        sqlite_version=sqlite.sqlite_version(),
    )


def sha256_of(copy: Path) -> str:
    """The hash of a file that no database connection of this process has open."""
    digest = hashlib.sha256()
    with copy.open("rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def durable_rename(source: Path, target: Path) -> None:
    """Give a file that is complete its final name; both survive a power failure, or neither."""
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    source.replace(target)
    sync_directory(target.parent)


def sync_directory(directory: Path) -> None:
    """Make what happened to the names in a directory durable."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_manifest(copy: Path, manifest: Manifest) -> None:
    """Declare a copy complete."""
    partial = copy.with_name(f"{manifest_of(copy).name}.{os.getpid()}{_PARTIAL}")
    private.create(partial)
    partial.write_text(manifest.model_dump_json(indent=2) + "\n", encoding="utf-8")
    durable_rename(partial, manifest_of(copy))


def read_manifest(copy: Path) -> Manifest | None:
    """The manifest beside a copy, None if there is none.

    Raises:
        StoreCorrupt: it cannot be read.
        StoreUnavailable: the file system does not answer.
    """
    file = manifest_of(copy)
    with translated_file_errors():
        if not file.exists():
            return None
        raw = file.read_bytes()
    try:
        return Manifest.model_validate_json(raw)
    except ValidationError as error:
        raise StoreCorrupt(f"the manifest {file} cannot be read: {error.errors()[0]['msg']}") from error


def backups(directory: Path, database: Path) -> Sequence[Backup]:
    """The complete copies of a database in a directory, newest first. What cannot be read is none.

    Raises:
        StoreUnavailable: the directory cannot be read.
    """
    return sorted(_found(directory, database), key=lambda backup: backup.manifest.made_at, reverse=True)


def _found(directory: Path, database: Path) -> Iterator[Backup]:
    name = re.compile(_name_of_copies(database))
    with translated_file_errors():
        files = list(directory.iterdir()) if directory.is_dir() else []
    for copy in filter(lambda file: name.fullmatch(file.name), files):
        with contextlib.suppress(StoreCorrupt, StoreUnavailable, OSError):
            manifest = read_manifest(copy)
            if manifest is not None and copy.stat().st_size == manifest.size:
                yield Backup(path=copy, manifest=manifest)


def _name_of_copies(database: Path) -> str:
    return rf"{re.escape(database.stem)}-\d{{8}}T\d{{6}}Z-\d+{re.escape(database.suffix)}"


def _leftovers(directory: Path, database: Path) -> Iterator[Path]:
    """What a crash leaves: a copy or a manifest that was not finished, and a copy whose manifest is not there."""
    copy = re.compile(_name_of_copies(database))
    partial = re.compile(rf"(?:{re.escape(database.name)}|{copy.pattern}\.json)\.\d+{re.escape(_PARTIAL)}")
    for file in directory.iterdir():
        if partial.fullmatch(file.name) or (copy.fullmatch(file.name) and not manifest_of(file).exists()):
            yield file


def prune(directory: Path, database: Path, keep: int, now: datetime) -> Sequence[Path]:
    """Keep the newest copies of each kind, and all that people made; the copies that were removed.

    What an interrupted round left behind goes too, once it is too old to belong to one that is under way.

    Raises:
        StoreUnavailable: the directory cannot be changed.
    """
    with translated_file_errors():
        for left in list(_leftovers(directory, database)):
            with contextlib.suppress(FileNotFoundError):  # somebody finished it meanwhile
                if left.stat().st_mtime < (now - _LONGEST_ROUND).timestamp():
                    left.unlink()
    kinds: dict[BackupReason, int] = {}
    removed: list[Path] = []
    for backup in backups(directory, database):
        reason = backup.manifest.reason
        kinds[reason] = kinds.get(reason, 0) + 1
        if reason is not BackupReason.BY_HAND and kinds[reason] > keep:
            with translated_file_errors():
                manifest_of(backup.path).unlink(missing_ok=True)  # first: from now on it is no copy any more
                backup.path.unlink(missing_ok=True)
            removed.append(backup.path)
    return removed


def advice(directory: Path, database: Path, now: datetime) -> str:
    """What to type when a database is beyond repair: the newest copy and how old it is."""
    with contextlib.suppress(StoreUnavailable):
        for backup in backups(directory, database):
            age = timedelta(seconds=int((now - backup.manifest.made_at).total_seconds()))
            return (
                f"the newest backup was made {age} ago at position {backup.manifest.position}: "
                f"verda-cloud-provider restore {backup.path} --database {database}"
            )
    return f"there is no backup in {directory}"


def check(copy: Path) -> Manifest | None:
    """Hold a copy against its manifest, if it has one.

    Raises:
        StoreUnavailable: there is no such file.
        StoreCorrupt: it is not the file that the manifest is about.
    """
    require(copy)
    manifest = read_manifest(copy)
    if manifest is not None:
        with translated_file_errors():
            same = copy.stat().st_size == manifest.size and sha256_of(copy) == manifest.sha256
        if not same:
            raise StoreCorrupt(f"{copy} is not the file that was backed up: its manifest has another size or hash")
    return manifest
