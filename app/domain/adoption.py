"""Taking machines over that another tool made: only those an operator names, by their host names' beginning."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from app.domain.books import Books
from app.domain.envelope import Decision, Event
from app.domain.ids import Mark
from app.domain.instance.events import InstanceAdopted
from app.domain.instance.lifecycle import NO_MACHINE, phase_of
from app.domain.machine import Machine
from app.domain.nodegroup.decide import served_group
from app.domain.nodegroup.operate import require_reason
from app.domain.nodegroup.state import NodeGroup
from app.domain.observation import adopted
from app.errors import RuleViolation

_HOSTNAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptMachines:
    """Make these machines instances of a node group, those of them that can be."""

    node_group: str
    machines: tuple[Machine, ...]
    operator: str
    reason: str


def adopt_machines(command: AdoptMachines, books: Books) -> Decision:
    """Every machine that nothing speaks against; the rest is left alone.

    Raises:
        NotFound: no such group.
        InvalidRequest: no reason, or one that is too long.
        RuleViolation: the group left the configuration.
    """
    require_reason(command.reason)
    group = served_group(books, command.node_group)
    if group.retired:
        raise RuleViolation(f"node group {group.name} left the configuration", node_group=group.name)
    events: list[Event] = []
    for machine, against in judged(command.machines, group, books):
        if against is None:
            events.extend(_by_an_operator(command, adopted(machine, machine.hostname, group.name, books)))
    return Decision(tuple(events))


def _by_an_operator(command: AdoptMachines, events: Iterable[Event]) -> Iterable[Event]:
    """The same facts with whose word they follow, and why."""
    word = {"operator": command.operator, "reason": command.reason}
    return (one.model_copy(update=word) if isinstance(one, InstanceAdopted) else one for one in events)


def judged(machines: Sequence[Machine], group: NodeGroup, books: Books) -> Iterable[tuple[Machine, str | None]]:
    """Each with what speaks against taking it into the group, None if nothing does.

    `machines` must be all that have these host names: an instance has one name and one machine.
    """
    alive = Counter(machine.hostname for machine in machines if phase_of(machine.status) not in NO_MACHINE)
    for machine in machines:
        against = _objection(machine, group, books)
        if against is None and alive[machine.hostname] > 1:
            against = f"{alive[machine.hostname]} machines have this host name: delete all but one"
        yield machine, against


def _objection(machine: Machine, group: NodeGroup, books: Books) -> str | None:
    if books.find_by_key(machine.instance_id) is not None or machine.hostname in books.instances:
        return "it is in the books already"
    if phase_of(machine.status) in NO_MACHINE:
        return f"it is {machine.status}"
    mark = Mark.parse(machine.description)
    if mark is not None:
        return f"it carries the mark of installation {mark.installation}, which may be alive"
    if not _HOSTNAME.fullmatch(machine.hostname):
        return "its host name cannot be the name of a node"
    if machine.instance_type != group.spec.instance_type:
        return f"it is a {machine.instance_type}, the group is of {group.spec.instance_type}"
    return None
