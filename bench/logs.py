"""What the length of the log costs. The databases have the same living instances, so that only the log differs."""

import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from functools import reduce
from itertools import count, islice
from pathlib import Path

from app.domain.books import Books, evolve
from app.domain.envelope import Cause, Event, Recorded
from app.domain.instance.events import (
    CreateAttempted,
    DeleteAttempted,
    DeleteReason,
    DeleteRequested,
    End,
    Found,
    InstanceCreated,
    InstanceGone,
    InstanceRequested,
    InstanceStateObserved,
)
from app.domain.instance.lifecycle import InstanceState
from app.domain.offering import Contract
from app.store.rebuild import rebuild
from app.store.store import Store
from bench.figures import Figure, Sense, seconds, slower
from bench.scale import Scale

_BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
_CAUSE = Cause(actor="bench", correlation_id="bench")
_BATCH = 2000


def life_of(number: int) -> Iterator[Event]:
    """Everything that happens to one instance, ten events."""
    name, instance_id = f"gpu-{number:08d}", f"5e1f0c9a-7b62-4d1e-9f0b-{number:012d}"
    ours = {"instance": name, "node_group": "gpu"}
    yield InstanceRequested(**ours, provider_id=f"verda://{name}")
    yield CreateAttempted(
        **ours,
        attempt=1,
        instance_type="1H100.80S.30V",
        image="ubuntu-24.04",
        location="FIN-01",
        contract=Contract.SPOT,
        price_per_hour=None,
        currency="usd",
    )
    yield InstanceCreated(**ours, instance_id=instance_id, provider_id=f"verda://{name}", found=Found.ANSWERED)
    for status in ("ordered", "provisioning", "validating", "running"):
        yield _seen(name, status)
    yield DeleteRequested(**ours, reason=DeleteReason.SCALE_DOWN)
    yield DeleteAttempted(**ours, attempt=1, instance_id=instance_id, volume_ids=("vol-1",), retry_at=_BEGIN)
    yield InstanceGone(**ours, end=End.DELETED, cost=None, currency="usd")


def _seen(name: str, status: str) -> Event:
    return InstanceStateObserved(
        instance=name,
        node_group="gpu",
        status=status,
        state=InstanceState.RUNNING if status == "running" else InstanceState.PROVISIONING,
        news=f"the cloud says {status}",
        contract=Contract.SPOT,
        location="FIN-01",
        price_per_hour=None,
        created_at=_BEGIN,
        ip="10.0.0.7",
        os_volume_id="vol-1",
        volume_ids=("vol-1",),
    )


def fill(path: Path, events: int) -> None:
    """Make a database with that many events; all but the newest hundred instances ended long ago."""
    store = Store(path)
    books = store.open("bench", _BEGIN)
    versions: dict[str, int] = {}
    story = islice((event for number in count() for event in life_of(number)), events)
    try:
        while batch := tuple(islice(story, _BATCH)):
            recorded = [
                _placed(event, books.position + offset, versions) for offset, event in enumerate(batch, start=1)
            ]
            books = reduce(evolve, recorded, books)
            store.append(recorded, books)
            books = _without_ended(books)
    finally:
        store.close()


def _placed(event: Event, position: int, versions: dict[str, int]) -> Recorded[Event]:
    versions[event.stream] = versions.get(event.stream, 0) + 1
    return Recorded(
        position=position,
        stream=event.stream,
        version=versions[event.stream],
        recorded_at=_BEGIN + timedelta(seconds=position),
        cause=_CAUSE,
        event=event,
    )


def _without_ended(books: Books) -> Books:
    ended = [name for name, instance in books.instances.items() if instance.state.is_ended]
    return reduce(Books.without_instance, ended, books)


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


def figures(scale: Scale) -> Iterator[Figure]:
    """Opening a long log beside a short one, folding it anew beside parsing it, and what it takes on disk."""
    with tempfile.TemporaryDirectory() as directory:
        short, long = Path(directory, "short.db"), Path(directory, "long.db")
        fill(short, scale.short_log)
        fill(long, scale.long_log)
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
    """Bytes of the database over bytes of the events' JSON; both in MB."""
    with closing(sqlite3.connect(path)) as connection:
        ((text,),) = connection.execute("SELECT sum(length(CAST(data AS BLOB))) FROM events")
    ours = path.stat().st_size
    return Figure(
        name="the database file",
        reference="the events' JSON",
        sense=Sense.AT_MOST,
        goal=3.0,
        ratio=ours / text,
        low=ours / text,
        high=ours / text,
        ours=ours / 1e6,
        reference_value=text / 1e6,
        unit="MB",
        rounds=1,
    )
