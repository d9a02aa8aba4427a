"""How long opening a database takes, with ten events and with two hundred thousand: `python -m bench.startup`.

The two databases have the same living instances, so that only the length of the log differs. They are opened in turn,
one after the other, and the medians are compared, for each way in which the last writer may have ended.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
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
from app.store.store import Store

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
    began = time.perf_counter()
    store.open("bench", datetime.max.replace(tzinfo=UTC))
    took = time.perf_counter() - began
    store.close()
    return took


def main(arguments: Sequence[str]) -> None:
    """Fill two databases, open them in turn, print medians and ratios."""
    parser = argparse.ArgumentParser(description="How the time to open grows with the log.")
    parser.add_argument("--short", type=int, default=10, help="events in the short log")
    parser.add_argument("--long", type=int, default=200_000, help="events in the long log")
    parser.add_argument("--rounds", type=int, default=15, help="how often each is opened")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as directory:
        short, long = Path(directory, "short.db"), Path(directory, "long.db")
        fill(short, options.short)
        began = time.perf_counter()
        fill(long, options.long)
        megabytes = long.stat().st_size / 1e6
        _say(f"filled {options.long} events, {megabytes:.0f} MB, in {time.perf_counter() - began:.1f} s")
        os.sync()  # the filling is not to be waited for while the opening is measured
        for end in ENDS:
            pairs = [(seconds_to_open(short, end), seconds_to_open(long, end)) for _ in range(options.rounds)]
            quick, slow = (statistics.median(times) * 1000 for times in zip(*pairs, strict=True))
            _say(
                f"after {end}: {options.short} events {quick:.1f} ms, {options.long} events {slow:.1f} ms, "
                f"ratio {slow / quick:.2f}"
            )


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
