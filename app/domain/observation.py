"""Reading a listing of the cloud against the books: what changed, what is missing, what is there too often.

Presence is evidence, absence is not: one listing adds and updates, but nothing is declared ended by it. The job that
took it looks closer at what `absent`, `surplus` and `returned` name.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.account import AccountAccepted
from app.domain.books import Books
from app.domain.cloud import CloudReachable, OrphanOutcome, settled
from app.domain.envelope import Decision, Event
from app.domain.ids import Mark, ProviderIdTemplate
from app.domain.instance.decide import created
from app.domain.instance.events import (
    CreateFailed,
    ErrorClass,
    FailureCode,
    Found,
    InstanceAdopted,
    InstanceCreated,
    InstanceStateObserved,
)
from app.domain.instance.ladder import never_placed
from app.domain.instance.lifecycle import NO_MACHINE, InstanceState, Phase, phase_of
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.nodegroup.decide import configured
from app.domain.nodegroup.events import NodeGroupRetired
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.ownership import (
    OrphanPolicy,
    by_hostname,
    first_alive,
    foreign_installations,
    mark_of_ours,
    why_not_ours,
)
from app.domain.service import Evidence, InstallationClaimed
from app.domain.startup import revert_books
from app.domain.strangers import detected, has_forgotten


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveMachines:
    """A listing, or a look-up of single machines if not `complete`.

    `claim` lets machines of a lost predecessor with our cluster's name be taken over. `orphans` says what becomes of a
    machine of ours that the books do not know. `began_at` is where the log stood when this process began, if this is
    the first listing it sees: what was wished before then was in books that may be older than the truth.
    """

    machines: tuple[Machine, ...]
    backend: str
    claim: bool
    complete: bool = True
    orphans: OrphanPolicy = OrphanPolicy.ADOPT
    began_at: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Readopt:
    """A direct look-up shows the machine of a lost instance alive."""

    instance: str
    machine: Machine


def observe_machines(command: ObserveMachines, books: Books, now: datetime) -> Decision:
    """Everything the listing adds to the books, and that the cloud answers."""
    events: list[Event] = []
    foreign = foreign_installations(command.machines, books)
    claims_needed = books.cloud.first_reached_at is None and bool(foreign)
    if claims_needed and command.claim:
        events.extend(InstallationClaimed(installation_id=installation) for installation in sorted(foreign))
    claimed = foreign if claims_needed and command.claim else set[str]()
    ours = claimed | {books.installation.installation_id}
    for same in by_hostname(command.machines).values():
        for machine in same:
            events.extend(_changes(machine, same, ours, books, policy=command.orphans, now=now))
    events.extend(_newborn(command, books))
    events.extend(_account_accepted(events, books))
    adopted = {event.instance_id for event in events if isinstance(event, InstanceAdopted)}
    found = (orphan for orphan in books.cloud.orphans.values() if orphan.instance_id in adopted)
    events.extend(settled(orphan, OrphanOutcome.ADOPTED, now) for orphan in found)
    if command.began_at is not None and has_forgotten(command.machines, books):
        born = {event.instance for event in events if isinstance(event, InstanceCreated)}
        events.extend(revert_books(books, Evidence.MACHINES, None, command.began_at, born))
    if command.complete and books.cloud.reachable is not True and not (claims_needed and not command.claim):
        events.append(CloudReachable(backend=command.backend))
    return Decision(tuple(_groups_first(events, books)))


def _changes(
    machine: Machine, same: Sequence[Machine], ours: set[str], books: Books, *, policy: OrphanPolicy, now: datetime
) -> Iterable[Event]:
    """What one machine adds to the books; `same` are all with its host name."""
    instance = books.find_by_key(machine.instance_id)
    if instance is not None and instance.instance_id == machine.instance_id:
        if not instance.state.is_ended:
            yield from _observed(instance, machine, books, now)
        return
    if machine.instance_id in books.cloud.surplus or phase_of(machine.status) in NO_MACHINE:
        return
    mark = Mark.parse(machine.description)
    reason = why_not_ours(machine, mark, books, ours)
    if reason is not None:
        yield from detected(machine, mark, reason, books)
    elif mark is None or machine.hostname in books.instances or mark.installation not in ours | _claimed(books):
        return
    elif policy is not OrphanPolicy.ADOPT and mark.installation == books.installation.installation_id:
        yield from detected(
            machine, mark, f"ours by its mark and name, and not in the books (orphans: {policy})", books
        )
    elif machine is first_alive(same, books, ours):
        yield from _adopted(machine, machine.hostname, mark.group, _provider_id(machine, mark.group, books))


def _claimed(books: Books) -> set[str]:
    return set(books.installation.claimed)


def _provider_id(machine: Machine, node_group: str, books: Books) -> str:
    template = ProviderIdTemplate("verda://{hostname}")
    if node_group in books.groups:
        template = ProviderIdTemplate(books.groups[node_group].spec.provider_id_template)
    return template.provider_id(
        name=machine.hostname, group=node_group, location=machine.location, instance_id=machine.instance_id
    )


def _adopted(
    machine: Machine, name: str, node_group: str, provider_id: str, *, has_run: bool = False
) -> Iterable[Event]:
    """The machine is this instance's. One that has run does not come a second time, whatever it shows just now."""
    yield InstanceAdopted(
        instance=name,
        node_group=node_group,
        instance_id=machine.instance_id,
        provider_id=provider_id,
        instance_type=machine.instance_type,
        image=machine.image,
    )
    state = {Phase.RUNNING: InstanceState.RUNNING, Phase.STOPPED: InstanceState.STOPPED}.get(
        phase_of(machine.status), InstanceState.RUNNING if has_run else InstanceState.PROVISIONING
    )
    yield _seen(name, node_group, machine, state, f"the cloud says {machine.status}")


def adopted(machine: Machine, name: str, node_group: str, books: Books) -> Iterable[Event]:
    """The facts that take a machine into a group under this name."""
    return _adopted(machine, name, node_group, _provider_id(machine, node_group, books))


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


def newcomers(books: Books, machines: Iterable[Machine]) -> tuple[tuple[Instance, Machine], ...]:
    """Machines that may be what became of a create call without a readable answer: found by host name and mark."""
    found: list[tuple[Instance, Machine]] = []
    for hostname, same in by_hostname(machines).items():
        instance = books.instances.get(hostname)
        if instance is None or instance.instance_id is not None or instance.state.is_ended:
            continue
        alive = (machine for machine in same if phase_of(machine.status) is not Phase.ENDED)
        unknown = (machine for machine in alive if _may_be_its(machine, instance, books))
        found.extend((instance, machine) for machine in unknown if mark_of_ours(machine, books))
    return tuple(found)


def _newborn(command: ObserveMachines, books: Books) -> Iterable[Event]:
    """Of several newcomers of one name a machine comes before the record of an order that was never placed."""
    born: set[str] = set()
    for instance, machine in sorted(newcomers(books, command.machines), key=lambda pair: _was_never_placed(pair[1])):
        if instance.name not in born:
            born.add(instance.name)
            yield created(instance, books, machine.instance_id, machine.location, Found.LOOKED_UP)


def _account_accepted(events: Sequence[Event], books: Books) -> Iterable[AccountAccepted]:
    """An order that was sent after the account's last refusal, to see, was taken, though nobody heard the answer."""
    refused = books.cloud.account
    born = (books.instances[event.instance] for event in events if isinstance(event, InstanceCreated))
    sent = [instance.attempted_at for instance in born if instance.attempted_at is not None]
    if refused is not None and any(at >= refused.until for at in sent):
        yield AccountAccepted(since=refused.since)


def _was_never_placed(machine: Machine) -> bool:
    return phase_of(machine.status) is Phase.NO_CAPACITY


def _may_be_its(machine: Machine, instance: Instance, books: Books) -> bool:
    """May be what became of the last order: neither too many nor left by an order before it."""
    if machine.instance_id in books.cloud.surplus or machine.instance_id in instance.earlier_ids:
        return False
    if not _was_never_placed(machine):
        return True
    shown = (machine.instance_type, machine.location, machine.contract)
    is_of_the_last = shown == (instance.instance_type, instance.location, instance.contract)
    return is_of_the_last and all(
        shown != (rung.instance_type, rung.location, rung.contract) for rung in instance.closed_rungs
    )


def _observed(instance: Instance, machine: Machine, books: Books, now: datetime) -> Iterable[Event]:
    phase = phase_of(machine.status)
    state = _next_state(instance, phase)
    news = _news(instance, machine, state)
    if news:
        yield _seen(instance.name, instance.node_group, machine, state, news)
    if instance.state is not InstanceState.PROVISIONING:
        return
    words = f"Verda accepted the order and then reported the machine as {machine.status}"
    if phase is Phase.NO_CAPACITY:
        yield from never_placed(instance, books, machine.instance_id, words, now)
    elif phase is Phase.BROKEN:
        yield CreateFailed(
            instance=instance.name,
            node_group=instance.node_group,
            error_class=ErrorClass.OTHER,
            code=FailureCode.MACHINE_ERROR,
            message=words,
        )


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
        ("price", None if instance.was_never_placed else machine.price_per_hour, instance.price_per_hour),
        ("address", machine.ip, instance.ip),
        ("OS volume", machine.os_volume_id, instance.os_volume_id),
    )
    words = [f"{name} {seen}" for name, seen, known in pairs if seen is not None and seen != known]
    others = sorted(set(machine.volume_ids) - {machine.os_volume_id or instance.os_volume_id})
    if machine.volume_ids and others != sorted(set(instance.volume_ids) - {instance.os_volume_id}):
        words.append(f"volumes {' '.join(others)}" if others else "no volume besides the OS volume")
    if (instance.machine_status, instance.state) != (machine.status, state):
        words.insert(0, f"the cloud says {machine.status}")
    return ", ".join(words)


def returned(books: Books, machines: Iterable[Machine]) -> tuple[tuple[Instance, Machine], ...]:
    """Machines of instances that ended in the books alone and are listed, as a stale list or a human restore shows."""
    pairs = ((_instance_of(machine, books), machine) for machine in machines)
    return tuple(
        (instance, machine)
        for instance, machine in pairs
        if instance is not None and instance.may_return and phase_of(machine.status) not in NO_MACHINE
    )


def _instance_of(machine: Machine, books: Books) -> Instance | None:
    """The instance of that machine: by its id, or by name and mark if the books do not know which machine it has."""
    by_id = books.find_by_key(machine.instance_id)
    if by_id is not None:
        return by_id if by_id.instance_id == machine.instance_id else None
    by_name = books.instances.get(machine.hostname)
    is_its_own = by_name is not None and by_name.instance_id is None and mark_of_ours(machine, books) is not None
    return by_name if is_its_own else None


def readopt(command: Readopt, books: Books) -> Decision:
    """Take back an instance that was believed lost: its machine runs, costs money and may carry pods."""
    instance = books.instances.get(command.instance)
    if instance is None or not instance.may_return:
        return Decision()
    has_run = instance.running_at is not None
    provider_id = instance.provider_id
    if instance.instance_id is None and not instance.provider_id_learned:  # never known, and perhaps part of it
        provider_id = _provider_id(command.machine, instance.node_group, books)
    return Decision(tuple(_adopted(command.machine, instance.name, instance.node_group, provider_id, has_run=has_run)))


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


def unseen(books: Books, machines: Iterable[Machine], before: datetime) -> tuple[Instance, ...]:
    """Instances in doubt when this listing was taken, at `before`, of which it shows no machine that may be theirs.

    A machine with the name and without our mark may be one whose description somebody has changed. While the instance
    is wanted nothing is ordered beside it; once it is not, the doubt must end, and such a machine is left alone.
    """
    alive = by_hostname(machine for machine in machines if phase_of(machine.status) is not Phase.ENDED)
    return tuple(
        instance
        for instance in books.listed_instances()
        if instance.unknown_since is not None
        and instance.unknown_since <= before
        and not any(_keeps_in_doubt(machine, instance, books) for machine in alive.get(instance.name, ()))
    )


def _keeps_in_doubt(machine: Machine, instance: Instance, books: Books) -> bool:
    """May be its machine; one without our mark, which it may have lost, only as long as another could be ordered."""
    is_given_up = instance.state is not InstanceState.SUBMITTING
    return _may_be_its(machine, instance, books) and not (is_given_up and mark_of_ours(machine, books) is None)


def surplus(books: Books, machines: Iterable[Machine]) -> tuple[tuple[Instance, Machine], ...]:
    """Machines of instances that were let go, and those with our mark and the name of one that has another machine."""
    found: list[tuple[Instance, Machine]] = []
    for hostname, same in by_hostname(machines).items():
        instance = books.instances.get(hostname)
        if instance is None:
            continue
        for machine in same:
            is_its_own = machine.instance_id == instance.instance_id
            is_ours = is_its_own or mark_of_ours(machine, books) is not None
            if machine.instance_id in books.cloud.surplus or not is_ours:
                continue
            was_let_go = instance.state.is_ended and not instance.may_return
            if was_let_go or (instance.instance_id is not None and not is_its_own):
                found.append((instance, machine))
    return tuple(found)
