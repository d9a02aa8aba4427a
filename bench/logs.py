"""What the length of the log costs. The databases have the same living instances, so that only the log differs."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from app.store.rebuild import rebuild
from app.store.store import Store
from bench.figures import Figure, of_values, seconds, slower
from bench.history import Histories
from bench.scale import Scale

ENDS = {
    "a clean end": "closed cleanly\n{boot}",
    "a kill": "in use\n{boot}",
    "a stop of the machine": "in use\nanother boot",
}
"""How the last writer may have ended, and what the lock file then says."""


def seconds_to_open(path: Path, end: str) -> float:
    """Open once, with the files beside the database as an end of that kind leaves them."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    note = ENDS[end].format(boot=boot)
    path.with_name(path.name + ".lock").write_text(f"bench\n{note}\n", encoding="utf-8")
    path.with_name(path.name + "-wal").touch()
    store = Store(path)
    took = seconds(lambda: store.open("bench", datetime.max.replace(tzinfo=UTC)))
    store.close()
    return took


def figures(scale: Scale, histories: Histories) -> Iterator[Figure]:
    """Opening a long log beside a short one, folding it anew beside parsing it, and what it takes on disk."""
    short, long = histories.short, histories.long
    os.sync()  # the filling is not to be waited for while the opening is measured
    for end in ("a clean end", "a kill"):
        pairs = [(seconds_to_open(long, end), seconds_to_open(short, end)) for _ in range(scale.few)]
        yield slower(f"opening {scale.long_log:,} events after {end}", f"{scale.short_log:,} events", 1.2, pairs)
    yield _size(long)
    pairs = [(seconds(lambda: rebuild(long, "bench")), seconds(lambda: _parse_all(long))) for _ in range(2)]
    yield slower(f"folding {scale.long_log:,} events anew", "json.loads of their data", 5.0, pairs)


def _parse_all(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        for (data,) in connection.execute("SELECT data FROM events ORDER BY position"):
            json.loads(data)


def _size(path: Path) -> Figure:
    """Bytes of the database over bytes of the events' JSON."""
    with closing(sqlite3.connect(path)) as connection:
        ((text,),) = connection.execute("SELECT sum(length(CAST(data AS BLOB))) FROM events")
    return of_values("the database file", "the events' JSON", 3.0, path.stat().st_size / 1e6, text / 1e6, "MB")
