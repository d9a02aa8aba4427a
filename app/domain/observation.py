"""Reading a listing of the cloud against the books: what changed, what is missing, what is there too often.

Presence is evidence, absence is not: one listing adds and updates, but nothing is declared ended by it. The job that
took it looks closer at what `absent`, `surplus` and `returned` name.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.books import Books
from app.domain.cloud import CloudReachable, OrphanDetected
from app.domain.envelope import Decision, Event
from app.domain.ids import Mark, ProviderIdTemplate
from app.domain.instance.decide import created
from app.domain.instance.events import (
    CreateFailed,
    ErrorClass,
    FailureCode,
    Found,
    InstanceAdopted,
    InstanceStateObserved,
)
from app.domain.instance.lifecycle import InstanceState, Phase, phase_of
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.nodegroup.decide import configured
from app.domain.nodegroup.events import NodeGroupRetired
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.service import InstallationClaimed


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveMachines:
    """A complete listing. `claim` lets machines of a lost predecessor with our cluster's name be taken over."""

    machines: tuple[Machine, ...]
    backend: str
    claim: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Readopt:
    """A direct look-up shows the machine of a lost instance alive."""

    instance: str
    machine: Machine


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


def observe_machines(command: ObserveMachines, books: Books) -> Decision:
    """Everything the listing adds to the books, and that the cloud answers."""
    events: list[Event] = []
    foreign = _foreign_installations(command, books)
    claims_needed = books.cloud.first_reached_at is None and bool(foreign)
    if claims_needed and command.claim:
        events.extend(InstallationClaimed(installation_id=installation) for installation in sorted(foreign))
    claimed = foreign if claims_needed and command.claim else set[str]()
    for machine in command.machines:
        events.extend(_changes(machine, books, claimed))
    events.extend(_newborn(command, books))
    if books.cloud.reachable is not True and not (claims_needed and not command.claim):
        events.append(CloudReachable(backend=command.backend))
    return Decision(tuple(_groups_first(events, books)))


def _foreign_installations(command: ObserveMachines, books: Books) -> set[str]:
    cluster = books.installation.cluster_name
    known = {books.installation.installation_id, *books.installation.claimed}
    marks = (Mark.parse(machine.description) for machine in command.machines)
    return {mark.installation for mark in marks if mark and mark.cluster == cluster and mark.installation not in known}


def _changes(machine: Machine, books: Books, claimed: set[str]) -> Iterable[Event]:
    """What one machine adds to the books."""
    instance = books.find_by_key(machine.instance_id)
    if instance is not None and instance.instance_id == machine.instance_id:
        if not instance.state.is_ended:
            yield from _observed(instance, machine)
        return
    mark = Mark.parse(machine.description)
    if mark is None or machine.instance_id in books.cloud.surplus:
        return
    if mark.installation == books.installation.installation_id or mark.installation in claimed:
        if machine.hostname not in books.instances and phase_of(machine.status) is not Phase.ENDED:
            yield from _adopted(machine, machine.hostname, mark.group, books)
    elif machine.instance_id not in books.cloud.orphans and _looks_like_ours(mark, books):
        yield OrphanDetected(
            instance_id=machine.instance_id,
            hostname=machine.hostname,
            installation=mark.installation,
            node_group=mark.group,
            price_per_hour=machine.price_per_hour,
            reason="made by another installation that uses our cluster's name",
        )


def _looks_like_ours(mark: Mark, books: Books) -> bool:
    return mark.installation in books.installation.claimed or mark.cluster == books.installation.cluster_name


def _adopted(machine: Machine, name: str, node_group: str, books: Books) -> Iterable[Event]:
    template = ProviderIdTemplate("verda://{hostname}")
    if node_group in books.groups:
        template = ProviderIdTemplate(books.groups[node_group].spec.provider_id_template)
    yield InstanceAdopted(
        instance=name,
        node_group=node_group,
        instance_id=machine.instance_id,
        provider_id=template.provider_id(
            name=name, group=node_group, location=machine.location, instance_id=machine.instance_id
        ),
        instance_type=machine.instance_type,
        image=machine.image,
    )
    state = {Phase.RUNNING: InstanceState.RUNNING, Phase.STOPPED: InstanceState.STOPPED}.get(
        phase_of(machine.status), InstanceState.PROVISIONING
    )
    yield _seen(name, node_group, machine, state, f"the cloud says {machine.status}")


def _groups_first(events: Sequence[Event], books: Books) -> Iterable[Event]:
    """Before an instance is adopted into a group nobody configured, that group comes into being, retired."""
    made: set[str] = set()
    for event in events:
        if isinstance(event, InstanceAdopted) and event.node_group not in books.groups and event.node_group not in made:
            made.add(event.node_group)
            yield configured(
                NodeGroupSpec(
                    name=event.node_group,
                    min_size=0,
                    max_size=0,
                    instance_type=event.instance_type or "unknown",
                    image=event.image or "unknown",
                    locations=("unknown",),
                )
            )
            yield NodeGroupRetired(node_group=event.node_group, instances=0)
        yield event


def _newborn(command: ObserveMachines, books: Books) -> Iterable[Event]:
    """Machines whose create call has not been answered, or not readably: found by host name and mark."""
    for hostname, same in by_hostname(command.machines).items():
        instance = books.instances.get(hostname)
        if instance is None or instance.instance_id is not None or instance.state.is_ended:
            continue
        marked = [machine for machine in same if mark_of_ours(machine, books)]
        alive = [machine for machine in marked if machine.instance_id not in books.cloud.surplus]
        if alive:
            yield created(instance, books, alive[0].instance_id, alive[0].location, Found.LOOKED_UP)


def _observed(instance: Instance, machine: Machine) -> Iterable[Event]:
    phase = phase_of(machine.status)
    state = _next_state(instance, phase)
    news = _news(instance, machine, state)
    if news:
        yield _seen(instance.name, instance.node_group, machine, state, news)
    if instance.state is not InstanceState.PROVISIONING:
        return
    if phase is Phase.NO_CAPACITY:
        yield _failed(instance, ErrorClass.OUT_OF_RESOURCES, FailureCode.OUT_OF_STOCK, machine.status)
    elif phase is Phase.BROKEN:
        yield _failed(instance, ErrorClass.OTHER, FailureCode.MACHINE_ERROR, machine.status)


def _next_state(instance: Instance, phase: Phase) -> InstanceState:
    """Running and stopped follow the cloud; a status from before that, as stale lists show, does not lead back."""
    if instance.state in {InstanceState.FAILED, InstanceState.DELETING}:
        return instance.state
    if phase is Phase.RUNNING:
        return InstanceState.RUNNING
    if phase is Phase.STOPPED and instance.state is not InstanceState.PROVISIONING:
        return InstanceState.STOPPED
    return instance.state


def _seen(name: str, node_group: str, machine: Machine, state: InstanceState, news: str) -> InstanceStateObserved:
    return InstanceStateObserved(
        instance=name,
        node_group=node_group,
        status=machine.status,
        state=state,
        news=news,
        contract=machine.contract,
        location=machine.location,
        price_per_hour=machine.price_per_hour,
        created_at=machine.created_at,
        ip=machine.ip,
        os_volume_id=machine.os_volume_id,
        volume_ids=machine.volume_ids,
    )


def _news(instance: Instance, machine: Machine, state: InstanceState) -> str:
    """What the machine shows that the books do not have yet, in words; empty if nothing."""
    pairs: tuple[tuple[str, object, object], ...] = (
        ("contract", machine.contract, instance.contract),
        ("location", machine.location, instance.location),
        ("price", machine.price_per_hour, instance.price_per_hour),
        ("address", machine.ip, instance.ip),
        ("OS volume", machine.os_volume_id, instance.os_volume_id),
        ("volumes", machine.volume_ids or None, instance.volume_ids),
    )
    words = [f"{name} {_plain(seen)}" for name, seen, known in pairs if seen is not None and seen != known]
    if (instance.machine_status, instance.state) != (machine.status, state):
        words.insert(0, f"the cloud says {machine.status}")
    return ", ".join(words)


def _plain(value: object) -> str:
    return " ".join(str(item) for item in value) if isinstance(value, tuple) else str(value)


def _failed(instance: Instance, error_class: ErrorClass, code: FailureCode, status: str) -> CreateFailed:
    return CreateFailed(
        instance=instance.name,
        node_group=instance.node_group,
        error_class=error_class,
        code=code,
        message=f"Verda accepted the order and then reported the machine as {status}",
    )


def returned(books: Books, machines: Iterable[Machine]) -> tuple[tuple[Instance, Machine], ...]:
    """Machines of instances that were believed lost and are listed again, as a stale list or a human restore shows."""
    pairs = ((books.find_by_key(machine.instance_id), machine) for machine in machines)
    return tuple(
        (instance, machine)
        for instance, machine in pairs
        if instance is not None
        and instance.state is InstanceState.LOST
        and instance.instance_id == machine.instance_id
        and phase_of(machine.status) is not Phase.ENDED
    )


def readopt(command: Readopt, books: Books) -> Decision:
    """Take back an instance that was believed lost: its machine runs, costs money and may carry pods."""
    instance = books.instances.get(command.instance)
    if instance is None or instance.state is not InstanceState.LOST:
        return Decision()
    return Decision(tuple(_adopted(command.machine, instance.name, instance.node_group, books)))


def absent(books: Books, machines: Iterable[Machine], before: datetime, grace: timedelta) -> tuple[Instance, ...]:
    """Instances whose machine this listing, taken at `before`, lacks.

    A machine that no listing has shown yet is expected only `grace` after its creation, because lists lag. Failed ones
    are left out: they stay listed until the autoscaler deletes them, whatever their machine does.
    """
    present = {machine.instance_id for machine in machines if phase_of(machine.status) is not Phase.ENDED}
    return tuple(
        instance
        for instance in books.listed_instances()
        if instance.instance_id is not None
        and instance.instance_id not in present
        and instance.state is not InstanceState.FAILED
        and (instance.machine_status is not None or (instance.created_at or before) + grace <= before)
    )


def surplus(books: Books, machines: Iterable[Machine]) -> tuple[tuple[Instance, Machine], ...]:
    """Machines with our mark and the name of an instance that has another one, or that was let go."""
    found: list[tuple[Instance, Machine]] = []
    for hostname, same in by_hostname(machines).items():
        instance = books.instances.get(hostname)
        if instance is None:
            continue
        for machine in same:
            if machine.instance_id in books.cloud.surplus or mark_of_ours(machine, books) is None:
                continue
            is_its_own = machine.instance_id == instance.instance_id
            was_let_go = instance.state in {InstanceState.GONE, InstanceState.CANCELLED}
            if was_let_go or (instance.instance_id is not None and not is_its_own):
                found.append((instance, machine))
    return tuple(found)
