"""Whose machine is it: ours by its mark and name, another installation's of our cluster, or nobody's business."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from app.domain.books import Books
from app.domain.ids import Mark
from app.domain.instance.lifecycle import Phase, phase_of
from app.domain.machine import Machine


def by_hostname(machines: Iterable[Machine]) -> Mapping[str, Sequence[Machine]]:
    """Machines by host name, those with one name in the order they were created."""
    groups: defaultdict[str, list[Machine]] = defaultdict(list)
    for machine in machines:
        groups[machine.hostname].append(machine)
    for same in groups.values():
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
    marks = (Mark.parse(machine.description) for machine in machines)
    return {mark.installation for mark in marks if mark and mark.cluster == cluster and mark.installation not in known}


def looks_like_ours(mark: Mark, books: Books) -> bool:
    """Made by an installation that we took over, or that calls its cluster like ours."""
    return mark.installation in books.installation.claimed or mark.cluster == books.installation.cluster_name


def first_alive(same: Sequence[Machine], installations: set[str]) -> Machine | None:
    """Of machines with one name, the one to keep."""
    alive = (machine for machine in same if phase_of(machine.status) is not Phase.ENDED)
    marked = ((machine, Mark.parse(machine.description)) for machine in alive)
    return next((machine for machine, mark in marked if mark and mark.installation in installations), None)
