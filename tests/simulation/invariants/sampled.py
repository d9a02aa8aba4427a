"""What is costly to look at: the log and the books on disk against what was published and what lives in memory."""

from collections.abc import Iterator

from app.domain.books import Books
from app.store import log
from app.store.projections import fold_log
from app.store.reading import reading
from app.store.verify import verify
from tests.simulation.stage import Stage
from tests.simulation.violation import Always


def acknowledged_increases_are_remembered(stage: Stage) -> Iterator[str]:
    """An increase that was answered with OK is in the books for ever, whatever became of its instances."""
    for name in stage.witness.promised:
        if name not in stage.books.instances and stage.life.ledger.find_ended(name) is None:
            yield f"{name} was promised and is forgotten"


def the_log_is_what_was_published(stage: Stage) -> Iterator[str]:
    """Whoever was told a fact finds it in the log, the same and in the same place, whatever happened since."""
    with reading(stage.path) as connection:
        stored = tuple(log.read(connection, 0))
    published = tuple(stage.witness.log)
    if stored[: len(published)] != published:
        at = next(
            (at for at, pair in enumerate(zip(stored, published, strict=False)) if pair[0] != pair[1]), len(stored)
        )
        yield f"the log has {len(stored)} events, {len(published)} were published; they differ from position {at + 1}"


def the_database_verifies(stage: Stage) -> Iterator[str]:
    """The hash chain is whole, versions count on, and every projection row is the fold of the log."""
    with reading(stage.path) as connection:
        yield from verify(connection)


def the_books_are_the_fold_of_the_log(stage: Stage) -> Iterator[str]:
    """What answers are made of is what the log says, folded from its first event on."""
    if stage.life.ledger.trouble is not None:
        return  # a commit of unknown outcome: the next command asks the disk
    with reading(stage.path) as connection:
        folded, _ = fold_log(connection)
    yield from _differences(stage.books, folded.books())


def _differences(live: Books, folded: Books) -> Iterator[str]:
    if live.position != folded.position:
        yield f"the books stand at {live.position}, the log at {folded.position}"
    for name, instance in live.instances.items():
        if folded.instances.get(name) != instance:
            yield f"{name} is {instance}, by the log {folded.instances.get(name)}"
    for name, instance in folded.instances.items():
        if name not in live.instances and not instance.state.is_ended:
            yield f"{name} is missing in the books"
    if dict(live.groups) != dict(folded.groups) or live.group_order != folded.group_order:
        yield "the node groups differ"
    if live.cloud != folded.cloud:
        yield f"what is known of the cloud differs: {live.cloud.surplus} and {folded.cloud.surplus}"
    if live.installation != folded.installation:
        yield "the installation differs"
    for group in live.groups:
        if {item.name for item in live.members(group).listed} != {item.name for item in folded.members(group).listed}:
            yield f"the members of {group} differ"
    for name, instance in live.instances.items():
        if instance.instance_id is not None and live.names_by_id.get(instance.instance_id) != name:
            yield f"{instance.instance_id} is {name}'s, and the books do not find it"


SAMPLED: tuple[Always, ...] = (
    acknowledged_increases_are_remembered,
    the_log_is_what_was_published,
    the_database_verifies,
    the_books_are_the_fold_of_the_log,
)
