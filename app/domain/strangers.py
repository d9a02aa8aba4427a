"""Machines that the books do not know although they look like ours: reported, and what they prove."""

from collections.abc import Iterable
from datetime import datetime

from app.domain.books import Books
from app.domain.cloud import Orphan, OrphanDetected
from app.domain.ids import Mark, is_instance_name
from app.domain.instance.lifecycle import Phase, phase_of
from app.domain.machine import Machine


def is_forgotten(machine: Machine, books: Books) -> bool:
    """This very installation made it, and its books know nothing of it.

    Every name is in the log before anything is ordered under it, so either the books are older than the truth, or
    somebody has copied mark and name of a machine of ours.
    """
    mark = Mark.parse(machine.description)
    return (
        mark is not None
        and mark.installation == books.installation.installation_id
        and is_instance_name(machine.hostname, mark.group)
        and machine.hostname not in books.instances
        and books.find_by_key(machine.instance_id) is None
        and phase_of(machine.status) is not Phase.ENDED
    )


def has_forgotten(machines: Iterable[Machine], books: Books) -> bool:
    """A machine proves that the books are older than the truth, and not only what was noticed before."""
    noticed = books.installation.reverted_at
    return any(
        machine.instance_id not in books.cloud.orphans
        and is_forgotten(machine, books)
        and not (noticed and machine.created_at and machine.created_at <= noticed)
        for machine in machines
    )


def detected(machine: Machine, mark: Mark | None, reason: str, books: Books) -> Iterable[OrphanDetected]:
    """That it is there, once."""
    if machine.instance_id not in books.cloud.orphans:
        yield OrphanDetected(
            instance_id=machine.instance_id,
            hostname=machine.hostname,
            installation=mark.installation if mark else "",
            node_group=mark.group if mark else "",
            price_per_hour=machine.price_per_hour,
            reason=reason,
        )


def unwanted(books: Books, machines: Iterable[Machine], before: datetime) -> tuple[tuple[Orphan, Machine], ...]:
    """Machines of ours that were seen to be missing in the books before that time, and are there still."""
    ours = ((books.cloud.orphans.get(machine.instance_id), machine) for machine in machines)
    return tuple(
        (orphan, machine)
        for orphan, machine in ours
        if orphan is not None
        and orphan.since <= before
        and orphan.instance_id not in books.cloud.surplus
        and is_forgotten(machine, books)
    )
