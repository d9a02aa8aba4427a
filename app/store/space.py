"""How much room the database takes and has, without opening it: closing a handle would drop SQLite's locks."""

import os
from collections.abc import Mapping
from pathlib import Path


def file_sizes(database: Path) -> Mapping[str, int]:
    """Bytes of the database and of its write-ahead log, without those that are not there."""
    sizes: dict[str, int] = {}
    for name, path in (("database", database), ("wal", database.with_name(database.name + "-wal"))):
        try:
            sizes[name] = path.stat().st_size
        except OSError:
            continue
    return sizes


def free_bytes(database: Path) -> int | None:
    """Room that is left on its file system, None if that cannot be told."""
    try:
        found = os.statvfs(database.parent)
    except OSError:
        return None
    return found.f_bavail * found.f_frsize
