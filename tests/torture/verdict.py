"""The verdict: what exists, what the books say, and what was promised, held against each other."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import pairwise
from typing import Any

from app.domain.books import Books
from app.domain.envelope import Event, Recorded
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.events import ScaleUpRequested
from app.store import log
from app.store.backup import backups
from app.store.projections import fold_log
from app.store.reading import reading
from app.store.schema import SCHEMA_REVISION
from app.store.verify import verify
from tests.torture.autoscaler import Autoscaler
from tests.torture.stage import GROUPS, TIME_FACTOR, Stage

Truth = Mapping[str, Any]

_TWINS_S = 60.0
"""So long, in real seconds, two machines of one name may live before one of them is gone."""


def differences(stage: Stage) -> Iterator[str]:
    """In which way the books, read from the disk, and the cloud do not agree, or something is still under way."""
    with reading(stage.database) as connection:
        books = fold_log(connection)[0].books()
    machines = {item["id"]: item for item in stage.machines() if not item["foreign"]}
    known = {item.instance_id for item in books.listed_instances() if item.state.is_live}
    yield from (
        f"{item['hostname']} {key} is {item['status']} and nobody's"
        for key, item in machines.items()
        if key not in known
    )
    for instance in books.listed_instances():
        machine = machines.get(instance.instance_id or "")
        if instance.state is not InstanceState.RUNNING:
            yield f"{instance.name} is {instance.state}"
        elif machine is None or machine["hostname"] != instance.name or machine["status"] != "running":
            yield f"{instance.name} runs, and its machine is {machine['status'] if machine else 'no more'}"
    yield from (f"{key} is still one too many" for key in books.cloud.surplus)


def broken(stage: Stage, autoscaler: Autoscaler, truth: Truth) -> Iterator[str]:
    """What is wrong after everything has settled and the provider has stopped."""
    with reading(stage.database) as connection:
        yield from verify(connection)
        books = fold_log(connection)[0].books()
        facts = tuple(log.read(connection, 0))
    yield from _bad_copies(stage, facts)
    yield from autoscaler.oddities
    yield from _forgotten(autoscaler, facts)
    yield from _risen(autoscaler, books)
    yield from _touched(truth)
    yield from _twins(truth)


def _bad_copies(stage: Stage, facts: Sequence[Recorded[Event]]) -> Iterator[str]:
    """Whatever counts as a copy is sound, and holds the log as it was."""
    for copy in backups(stage.copies, stage.database):
        if copy.manifest.schema_revision != SCHEMA_REVISION:
            continue  # made before a migration, for the version before this one
        with reading(copy.path) as connection:
            yield from (f"{copy.path.name}: {words}" for words in verify(connection))
            held = tuple(log.read(connection, 0))
        if held != facts[: len(held)] or len(held) != copy.manifest.position:
            yield f"{copy.path.name} holds {len(held)} events that are not the first of the log"


def _forgotten(autoscaler: Autoscaler, facts: Sequence[Recorded[Event]]) -> Iterator[str]:
    """Increases that were answered with OK are in the log, and no more than may have been asked for."""
    for group in GROUPS:
        events = [item.event for item in facts]
        written = sum(one.delta for one in events if isinstance(one, ScaleUpRequested) and one.node_group == group)
        least, most = autoscaler.promised[group], autoscaler.promised[group] + autoscaler.unsure[group]
        if not least <= written <= most:
            yield f"{group}: {least} to {most} nodes were asked for, the log has {written}"


def _risen(autoscaler: Autoscaler, books: Books) -> Iterator[str]:
    """What was given back never lives again."""
    for group, ids in autoscaler.given_back.items():
        live = {item.provider_id: item for item in books.members(group).listed if item.state.is_live}
        yield from (f"{live[one].name} was given back and is {live[one].state}" for one in ids & live.keys())


def _touched(truth: Truth) -> Iterator[str]:
    """Nothing foreign was deleted, nor anything that never existed."""
    for counter in ("foreign_deletes", "deletes_of_never_requested"):
        if truth[counter]:
            yield f"{counter}: {truth[counter]}"


def _twins(truth: Truth) -> Iterator[str]:
    """Of two machines of one name at the same time, one goes soon."""
    for name, seconds in twins(truth).items():
        if seconds > _TWINS_S:
            yield f"{name} had two machines for {seconds:.0f} s"


def twins(truth: Truth) -> Mapping[str, float]:
    """Names that had two machines at once, neither of which is the record of an order that was never placed."""
    by_name: defaultdict[str, list[tuple[datetime, datetime]]] = defaultdict(list)
    now = datetime.fromisoformat(truth["now"])
    for item in truth["instances"]:
        if not item["foreign"] and item["end_reason"] != "no_capacity" and item["status"] != "no_capacity":
            ended = datetime.fromisoformat(item["ended"]) if item["ended"] else now
            by_name[item["hostname"]].append((datetime.fromisoformat(item["created"]), ended))
    found: dict[str, float] = {}
    for name, lives in by_name.items():
        ordered = sorted(lives)
        overlaps = [(min(one[1], two[1]) - two[0]).total_seconds() for one, two in pairwise(ordered)]
        longest = max(overlaps, default=0.0) / TIME_FACTOR
        if longest > 0:
            found[name] = longest
    return found
