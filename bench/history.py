"""Logs of any length to measure with: the same groups and the same living instances, and pasts of different length."""

import itertools
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cached_property, reduce
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
from bench.houses import KIND, prepared
from bench.scale import Scale

_BEGIN = datetime(2026, 1, 5, tzinfo=UTC)
_CAUSE = Cause(actor="bench", correlation_id="bench")
_BATCH = 2000
_WHOLE_LIFE = 10
_UNTIL_RUNNING = 7
FEW, MANY = 100, 10_000
"""Living instances."""


def life_of(number: int) -> Iterator[Event]:
    """Everything that happens to one instance: seven events until it runs, ten in all."""
    name, instance_id = f"gpu-{number:08d}", f"5e1f0c9a-7b62-4d1e-9f0b-{number:012d}"
    ours = {"instance": name, "node_group": "gpu"}
    yield InstanceRequested(**ours, provider_id=f"verda://{name}")
    yield CreateAttempted(
        **ours,
        attempt=1,
        instance_type=KIND.name,
        image="ubuntu-24.04",
        location="FIN-01",
        contract=Contract.SPOT,
        price_per_hour=KIND.spot_price,
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
        price_per_hour=KIND.spot_price,
        created_at=_BEGIN,
        ip="10.0.0.7",
        os_volume_id="vol-1",
        volume_ids=("vol-1",),
    )


def fill(path: Path, events: int, living: int = FEW) -> None:
    """Make a database that serves, with about that many events: so many instances live, all others ended long ago."""
    prepared(path, gpu=0, ten=10).close()
    store = Store(path)
    books = store.open("bench", _BEGIN)
    versions: dict[str, int] = {}
    alive = (islice(life_of(number), _UNTIL_RUNNING) for number in range(living))
    ended = (life_of(number) for number in count(living))
    story = islice(itertools.chain.from_iterable(itertools.chain(alive, ended)), events)
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


class Histories:
    """Databases that several parts measure with, each made when it is first asked for. Copy before changing one."""

    def __init__(self, directory: Path, scale: Scale) -> None:
        self._directory = directory
        self._scale = scale

    @cached_property
    def short(self) -> Path:
        """A short log, few living instances."""
        return self._made("short", self._scale.short_log, FEW)

    @cached_property
    def long(self) -> Path:
        """A long log, few living instances."""
        return self._made("long", self._scale.long_log, FEW)

    @cached_property
    def crowded(self) -> Path:
        """A long log, many living instances."""
        return self._made("crowded", self._scale.long_log, min(MANY, self._scale.long_log // _WHOLE_LIFE))

    def _made(self, name: str, events: int, living: int) -> Path:
        path = self._directory / f"{name}.db"
        fill(path, events, living)
        return path
