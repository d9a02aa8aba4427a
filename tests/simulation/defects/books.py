"""Defects in the books, the log, the clock's work and the answers."""

from dataclasses import replace
from typing import Any

from app.domain import deadlines
from app.domain.books import Books, Members, evolve
from app.domain.decide import Command
from app.domain.envelope import Cause, Decision, Recorded
from app.domain.instance.events import InstanceRequested
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup import decide as group_decide
from app.domain.nodegroup.commands import IncreaseSize
from app.errors import StoreError
from app.ledger import ledger as ledger_module
from app.ledger.ledger import Ledger
from app.store import log, projections, rows
from app.store.chain import GENESIS
from tests.simulation.defects import Change, Defect

_increase_size = group_decide.increase_size
_overdue = deadlines._overdue
_event_rows = log.event_rows
_note_cloud = rows.Changes._note_cloud
_place = Ledger._place
_execute = Ledger.execute


def _increase(**changes: Any) -> Any:
    """Decide as if the group were another."""

    def increase_size(command: IncreaseSize, books: Books) -> Decision:
        group = books.groups.get(command.node_group)
        if group is None:
            return _increase_size(command, books)
        spec = group.spec.model_copy(update={"max_size": group.spec.max_size + changes.get("more", 0)})
        retired = group.retired and not changes.get("revive", False)
        return _increase_size(command, books.with_group(replace(group, spec=spec, retired=retired)))

    return increase_size


def _grow_and_refuse(command: IncreaseSize, books: Books) -> Decision:
    """As many as fit, and all the same an error."""
    decision = _increase_size(command, books)
    group = books.groups.get(command.node_group)
    room = 0 if group is None else group.spec.max_size - books.target_size(command.node_group)
    if decision.refusal is None or not 0 < room < command.delta:
        return decision
    some = _increase_size(replace(command, delta=room, names=command.names[:room]), books)
    return replace(some, refusal=decision.refusal)


def _half_increase(command: IncreaseSize, books: Books) -> Decision:
    """Fewer wishes than were asked for."""
    decision = _increase_size(command, books)
    wishes = [event for event in decision.events if isinstance(event, InstanceRequested)]
    return decision if len(wishes) < 2 else replace(decision, events=decision.events[:-1])


def _publish_first(self: Ledger, recorded: Any, books: Books) -> None:
    if recorded:
        self._publish(recorded, books)
        self._store.append(recorded, books)


def _swallow_errors(self: Ledger, command: Command, cause: Cause, not_after: float | None = None) -> Any:
    try:
        return _execute(self, command, cause, not_after)
    except StoreError:
        return ()


def _forget_doubt(self: Ledger) -> bool:
    self._doubt = ()
    return False


def _place_by_the_clock(self: Ledger, events: Any, cause: Cause, books: Books, at: Any) -> Any:
    del at
    return _place(self, events, cause, books, self._clock.now())


def _unchained(recorded: Any, head_hash: str) -> Any:
    del head_hash
    return _event_rows(recorded, GENESIS)


def _without_configuration(books: Books, recorded: Recorded[Any]) -> Books:
    """A loaded configuration is not folded."""
    return books if recorded.event.type == "service.configuration-loaded" else evolve(books, recorded)


def _unwritten(connection: Any, recorded: Any, books: Books) -> None:
    """What a listing has shown is in the log and not in the rows."""
    changes = rows.Changes()
    changes.note([one for one in recorded if one.event.type != "instance.state-observed"], books)
    projections._write(connection, changes, recorded[-1].position)


def _note_no_surplus(self: rows.Changes, event: Any, position: int, books: Books) -> None:
    if event.type != "cloud.duplicate-instance-detected":
        _note_cloud(self, event, position, books)


def _target_size(count: Any) -> Any:
    return property(count)


def _evolve_once_a_batch(books: Books, recorded: Recorded[Any]) -> Books:
    """Retirements are not folded."""
    return books if recorded.event.type == "nodegroup.retired" else evolve(books, recorded)


def _ledger(name: str, new: Any) -> list[Change]:
    return [Change(holder=Ledger, name=name, new=new)]


BOOKS = (
    Defect(
        name="count-the-deleting",
        words="what is being deleted counts in the target size",
        changes=lambda: [
            Change(holder=Members, name="target_size", new=_target_size(lambda one: len(one.live) + len(one.deleting)))
        ],
    ),
    Defect(
        name="decrement-twice",
        words="what is being deleted is taken off the target size once more",
        changes=lambda: [
            Change(holder=Members, name="target_size", new=_target_size(lambda one: len(one.live) - len(one.deleting)))
        ],
    ),
    Defect(
        name="failed-do-not-count",
        words="failed instances drop out of the target size before the autoscaler deletes them",
        changes=lambda: [
            Change(
                holder=Members,
                name="target_size",
                new=_target_size(
                    lambda one: sum(1 for item in one.live.values() if item.state is not InstanceState.FAILED)
                ),
            )
        ],
    ),
    Defect(
        name="maximum-off-by-one",
        words="a group may grow one beyond its maximum",
        changes=lambda: [Change(holder=group_decide, name="increase_size", new=_increase(more=1))],
    ),
    Defect(
        name="retired-groups-grow",
        words="a group that left the configuration takes on new nodes",
        changes=lambda: [Change(holder=group_decide, name="increase_size", new=_increase(revive=True))],
    ),
    Defect(
        name="half-an-increase",
        words="an increase is accepted in part",
        changes=lambda: [Change(holder=group_decide, name="increase_size", new=_half_increase)],
    ),
    Defect(
        name="grow-and-refuse",
        words="an increase that does not fit is carried out as far as it fits, and refused",
        changes=lambda: [Change(holder=group_decide, name="increase_size", new=_grow_and_refuse)],
    ),
    Defect(
        name="fold-no-configuration",
        words="the live books do not know which configuration is in effect",
        changes=lambda: [Change(holder=ledger_module, name="evolve", new=_without_configuration)],
    ),
    Defect(
        name="write-no-sightings",
        words="what listings show is in the log and not in the tables that the next start reads",
        changes=lambda: [Change(holder=projections, name="write", new=_unwritten)],
    ),
    Defect(
        name="publish-before-the-commit",
        words="the books go ahead of the disk, and stay there when the commit fails",
        changes=lambda: _ledger("_record", _publish_first),
    ),
    Defect(
        name="acknowledge-failed-commits",
        words="an increase is answered with OK although it was not written",
        changes=lambda: _ledger("execute", _swallow_errors),
    ),
    Defect(
        name="forget-doubtful-commits",
        words="a commit that was reported as failed is never asked about again",
        changes=lambda: _ledger("_settle_doubt", _forget_doubt),
    ),
    Defect(
        name="times-follow-the-clock",
        words="events go back in time with the wall clock",
        changes=lambda: _ledger("_place", _place_by_the_clock),
    ),
    Defect(
        name="break-the-chain",
        words="events are not chained to their predecessors",
        changes=lambda: [Change(holder=log, name="event_rows", new=_unchained)],
    ),
    Defect(
        name="forget-the-surplus-on-disk",
        words="machines too many are not in the projections, so a restart forgets them",
        changes=lambda: [Change(holder=rows.Changes, name="_note_cloud", new=_note_no_surplus)],
    ),
    Defect(
        name="fold-differently-when-live",
        words="the fold of live updates leaves out what the rebuild folds",
        changes=lambda: [Change(holder=ledger_module, name="evolve", new=_evolve_once_a_batch)],
    ),
)
