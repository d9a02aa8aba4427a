"""Decisions about the installation: its starts, books that are older than the truth, the machines of a predecessor."""

from collections.abc import Collection
from dataclasses import dataclass

from app.domain.books import Books
from app.domain.envelope import Decision, Event
from app.domain.ids import is_own
from app.domain.instance.events import CancelReason, InstanceCancelled
from app.domain.instance.lifecycle import InstanceState
from app.domain.service import (
    OWN_MACHINES,
    RENTED,
    BooksReverted,
    Evidence,
    InstallationClaimed,
    InstallationCreated,
    ServiceStarted,
    StartService,
)
from app.errors import RuleViolation


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordRestore:
    """A backup has taken the place of a database that had reached `once_reached`, if that could still be read."""

    once_reached: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimInstallation:
    """The machines of this installation, which carry our cluster's name, are ours."""

    installation_id: str


def start_service(command: StartService, books: Books) -> Decision:
    """The next epoch, and on a new database the installation itself.

    Raises:
        RuleViolation: the books are another cloud's. Simulated machines would look lost at the real one, and real
            ones at the simulator or without an account.
    """
    installation = books.installation
    if installation.backend and installation.backend != command.backend:
        _change_backend(books, command.backend)
    events: list[Event] = []
    if not installation.installation_id:
        events.append(InstallationCreated(installation_id=command.installation_id))
    if command.once_reached is not None:
        events.extend(revert_books(books, Evidence.POSITION, command.once_reached))
    events.append(
        ServiceStarted(
            epoch=installation.epoch + 1,
            version=command.version,
            host=command.host,
            pid=command.pid,
            sqlite_version=command.sqlite_version,
            backend=command.backend,
        )
    )
    return Decision(tuple(events))


def _change_backend(books: Books, backend: str) -> None:
    """An account may come to machines of our own, and go when nothing is rented any more; all else is refused."""
    change = (books.installation.backend, backend)
    if change == (OWN_MACHINES, RENTED):
        return
    if change != (RENTED, OWN_MACHINES):
        raise RuleViolation(
            f"this database holds the books of the {books.installation.backend} backend and cannot be used with "
            f"{backend}: give each its own --database",
            backend=backend,
        )
    count = _rented(books)
    if count:
        machines, are, they_are = ("machine", "is", "it is") if count == 1 else ("machines", "are", "they are")
        raise RuleViolation(
            f"{count} rented {machines} {are} in these books and there are no credentials: "
            f"set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET until {they_are} given back",
            backend=backend,
        )


def _rented(books: Books) -> int:
    """How many rented machines there are or may be, those too many among them."""
    kept = (instance for instance in books.listed_instances() if instance.may_exist)
    ours = sum(
        books.groups[instance.node_group].spec.kind == RENTED
        if instance.instance_id is None
        else not is_own(instance.instance_id)
        for instance in kept
    )
    return ours + sum(not is_own(instance_id) for instance_id in books.cloud.surplus)


def record_restore(command: RecordRestore, books: Books) -> Decision:
    """The books begin again where the backup ends.

    Raises:
        RuleViolation: the backup was made before anything was written.
    """
    if not books.installation.installation_id:
        raise RuleViolation("the backup holds no installation of ours: it was made before the first start")
    return Decision(revert_books(books, Evidence.RESTORED, command.once_reached))


def revert_books(
    books: Books,
    evidence: Evidence,
    once_reached: int | None,
    before: int | None = None,
    come_true: Collection[str] = (),
) -> tuple[Event, ...]:
    """That the books are older than the truth, and what follows: wishes not sent by then are not bought any more.

    Nobody knows what became of them since: they may have been bought, given back, or bought and given back. One whose
    machine exists after all is taken back when the cloud shows it. With `before`, only wishes up to that position;
    without those that have `come_true`, whose machine has just been seen.
    """
    unsent = [
        instance
        for instance in books.listed_instances()
        if instance.state is InstanceState.REQUESTED
        and (before is None or instance.ordinal <= before)
        and instance.name not in come_true
    ]
    found = BooksReverted(evidence=evidence, position=books.position, once_reached=once_reached, dropped=len(unsent))
    cancelled = (
        InstanceCancelled(instance=instance.name, node_group=instance.node_group, reason=CancelReason.BOOKS_REVERTED)
        for instance in sorted(unsent, key=lambda instance: instance.ordinal)
    )
    return (found, *cancelled)


def claim_installation(command: ClaimInstallation, books: Books) -> Decision:
    """From now on the machines that were seen of that installation are ours; the next listing takes them in.

    Raises:
        RuleViolation: no machine of that installation was seen, so it may be a slip of the pen.
    """
    wanted = command.installation_id
    if wanted in {books.installation.installation_id, *books.installation.claimed}:
        return Decision()
    seen = {orphan.installation for orphan in books.cloud.orphans.values()}
    if wanted not in seen:
        known = ", ".join(sorted(seen - {books.installation.installation_id})) or "none"
        raise RuleViolation(
            f"no machine of installation {wanted!r} was seen; those seen that use our cluster's name: {known}",
            installation=wanted,
        )
    return Decision((InstallationClaimed(installation_id=wanted),))
