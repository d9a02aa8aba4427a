"""Whose machine is it: ours by its mark and name, another installation's of our cluster, or nobody's business."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum

from app.domain.books import Books
from app.domain.ids import Mark, is_instance_name
from app.domain.instance.lifecycle import NO_MACHINE, phase_of
from app.domain.machine import Machine


class OrphanPolicy(StrEnum):
    """What to do with a machine that carries our mark and a name of ours and is not in the books."""

    ADOPT = "adopt"
    DELETE = "delete"
    REPORT = "report"


def by_hostname(machines: Iterable[Machine]) -> Mapping[str, Sequence[Machine]]:
    """Machines by host name, those with one name in the order they were created."""
    groups: defaultdict[str, list[Machine]] = defaultdict(list)
    for machine in machines:
        groups[machine.hostname].append(machine)
    for same in groups.values():
        if len(same) > 1:
            same.sort(key=lambda machine: (str(machine.created_at or ""), machine.instance_id))
    return groups


def mark_of_ours(machine: Machine, books: Books) -> Mark | None:
    """The machine's mark if it was made by this installation or one that it took over."""
    mark = Mark.parse(machine.description)
    known = (books.installation.installation_id, *books.installation.claimed)
    return mark if mark is not None and mark.installation in known else None


def foreign_installations(machines: Iterable[Machine], books: Books) -> set[str]:
    """Other installations that made machines under our cluster's name and are not claimed."""
    cluster = books.installation.cluster_name
    known = {books.installation.installation_id, *books.installation.claimed}
    marks = (Mark.parse(machine.description) for machine in machines if phase_of(machine.status) not in NO_MACHINE)
    return {mark.installation for mark in marks if mark and mark.cluster == cluster and mark.installation not in known}


def looks_like_ours(mark: Mark, books: Books) -> bool:
    """Made by an installation that we took over, or that calls its cluster like ours."""
    return mark.installation in books.installation.claimed or mark.cluster == books.installation.cluster_name


def was_claimed(machine: Machine, mark: Mark, books: Books) -> bool:
    """Made by an installation that we took over, before we did so.

    What that installation makes afterwards proves that somebody else lives on as it: hands off.
    """
    claim = next((claim for claim in books.installation.claims if claim.installation_id == mark.installation), None)
    if claim is None:
        return False
    orphan = books.cloud.orphans.get(machine.instance_id)
    if orphan is not None:
        return orphan.since <= claim.at
    return machine.created_at is None or machine.created_at < claim.at


def why_not_ours(machine: Machine, mark: Mark | None, books: Books, installations: Collection[str]) -> str | None:
    """Why a machine that looks like ours, by its mark or its name, is not; None if it is, or is a stranger's.

    `installations` are those whose machines are ours from now on.
    """
    if mark is None:
        instance = books.instances.get(machine.hostname)
        is_looked_for = instance is not None and instance.unknown_since is not None
        return "has the name of an instance of ours, but not our mark" if is_looked_for else None
    if mark.installation not in installations and not was_claimed(machine, mark, books):
        if mark.installation in books.installation.claimed:
            return "made by an installation that was taken over and yet goes on: two providers serve this cluster"
        return "made by another installation that uses our cluster's name" if looks_like_ours(mark, books) else None
    if not is_instance_name(machine.hostname, mark.group) and machine.hostname not in books.instances:
        return "carries our mark, but its name is not one that we gave"
    return None


def first_alive(same: Sequence[Machine], books: Books, installations: Collection[str]) -> Machine | None:
    """Of machines with one name, the one to keep."""
    alive = (machine for machine in same if phase_of(machine.status) not in NO_MACHINE)
    marked = ((machine, Mark.parse(machine.description)) for machine in alive)
    ours = (
        machine
        for machine, mark in marked
        if mark and (mark.installation in installations or was_claimed(machine, mark, books))
    )
    return next(ours, None)
