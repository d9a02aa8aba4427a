"""Defects in reading what the cloud shows."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Any

from app.domain import cloud as domain_cloud
from app.domain import observation, ownership
from app.domain.books import Books
from app.domain.cloud import CloudView, RecordCatalogue
from app.domain.envelope import Cause, Decision, Event
from app.domain.ids import Mark, is_instance_name
from app.domain.instance.commands import ConfirmEnded
from app.domain.instance.decide import created
from app.domain.instance.events import Found
from app.domain.instance.lifecycle import InstanceState, Phase, phase_of
from app.domain.instance.state import Instance
from app.domain.machine import Machine
from app.domain.observation import ObserveMachines
from app.domain.ownership import mark_of_ours
from app.reconcile.jobs import observe
from app.reconcile.jobs.observe import Observe
from tests.simulation.defects import Change, Defect

_observe_machines = observation.observe_machines
_surplus = observation.surplus
_news = observation._news
_record_catalogue = domain_cloud.record_catalogue


def _write_off(self: Observe, instance: Instance, cause: Cause) -> None:
    if instance.instance_id is not None:
        ended = ConfirmEnded(instance=instance.name, instance_id=instance.instance_id, known_by_id=False)
        self.bench.record(ended, cause)


def _ours(books: Books, group: str) -> Mark:
    installation = books.installation
    return Mark(cluster=installation.cluster_name, installation=installation.installation_id, group=group)


def _marked_by_name(machines: Iterable[Machine], books: Books) -> tuple[Machine, ...]:
    """Machines without any mark get ours if their names look like ours."""
    marked: list[Machine] = []
    for machine in machines:
        group = machine.hostname.rpartition("-")[0]
        is_bare = Mark.parse(machine.description) is None
        looks = is_bare and group in books.groups and is_instance_name(machine.hostname, group)
        marked.append(replace(machine, description=_ours(books, group).text()) if looks else machine)
    return tuple(marked)


def _marked_by_cluster(machines: Iterable[Machine], books: Books) -> tuple[Machine, ...]:
    """Whoever uses our cluster's name counts as we."""
    marked: list[Machine] = []
    for machine in machines:
        mark = Mark.parse(machine.description)
        is_near = mark is not None and mark.cluster == books.installation.cluster_name
        marked.append(replace(machine, description=_ours(books, mark.group).text()) if mark and is_near else machine)
    return tuple(marked)


def _observing(marked: Any) -> Any:
    def observe_machines(command: ObserveMachines, books: Books, now: datetime) -> Decision:
        return _observe_machines(replace(command, machines=marked(command.machines, books)), books, now)

    return observe_machines


def _surplus_by_name(books: Books, machines: Iterable[Machine]) -> Any:
    return _surplus(books, _marked_by_name(machines, books))


def _phase_of(status: str) -> Phase:
    phase = phase_of(status)
    return Phase.ENDED if phase is Phase.UNCHANGED and status != "deleting" else phase


def _next_state(instance: Instance, phase: Phase) -> InstanceState:
    """A status leads anywhere."""
    if instance.state in {InstanceState.FAILED, InstanceState.DELETING}:
        return instance.state
    states = {
        Phase.RUNNING: InstanceState.RUNNING,
        Phase.CREATING: InstanceState.PROVISIONING,
        Phase.STOPPED: InstanceState.STOPPED,
    }
    return states.get(phase, instance.state)


def _catalogue_as_read(command: RecordCatalogue, view: CloudView) -> Decision:
    withdrawn = tuple(sorted(set(view.catalogue) - {kind.name for kind in command.types} - view.withdrawn))
    changed = tuple(kind for kind in command.types if view.catalogue.get(kind.name) != kind)
    if not changed and not withdrawn:
        return Decision()
    change = domain_cloud.CatalogueChanged(
        count=len(changed), withdrawn_count=len(withdrawn), types=changed, withdrawn=withdrawn
    )
    return Decision((change,))


def _never_reachable_again(command: ObserveMachines, books: Books, now: datetime) -> Decision:
    decision = _observe_machines(command, books, now)
    if books.cloud.first_reached_at is None:
        return decision
    return Decision(tuple(event for event in decision.events if event.type != "cloud.reachable"))


def _own_is_surplus(books: Books, machines: Iterable[Machine]) -> Any:
    """Of two machines of one name, the one that the instance stands on."""
    machines = tuple(machines)
    own = {machine.hostname: machine for machine in machines if books.find_by_key(machine.instance_id) is not None}
    return tuple((instance, own.get(machine.hostname, machine)) for instance, machine in _surplus(books, machines))


def _readopt_always(books: Books, machines: Iterable[Machine]) -> Any:
    pairs = ((books.find_by_key(machine.instance_id), machine) for machine in machines)
    return tuple((one, machine) for one, machine in pairs if one and one.state is InstanceState.LOST)


def _only_with_price(command: ObserveMachines, books: Books, now: datetime) -> Decision:
    """The OS volume is not looked at."""
    blind = tuple(replace(machine, os_volume_id=None) for machine in command.machines)
    return _observe_machines(replace(command, machines=blind), books, now)


def _news_without_status(instance: Instance, machine: Machine, state: InstanceState) -> str:
    """Only what has no state of its own."""
    same = replace(machine, status=instance.machine_status or machine.status)
    return _news(instance, same, instance.state if instance.machine_status else state)


def _always_news(instance: Instance, machine: Machine, state: InstanceState) -> str:
    return _news(instance, machine, state) or "seen again"


def _first_of_its_group(command: ObserveMachines, books: Books) -> Iterable[Event]:
    """Any machine of the group that nobody has, for an order in doubt."""
    for instance in books.listed_instances():
        if not instance.create_is_open:
            continue
        for machine in command.machines:
            mark = mark_of_ours(machine, books)
            is_free = books.find_by_key(machine.instance_id) is None
            if is_free and mark is not None and mark.group == instance.node_group:
                yield created(instance, books, machine.instance_id, machine.location, Found.LOOKED_UP)
                break


def _names_only(command: RecordCatalogue, view: CloudView) -> Decision:
    """What is known by name is known."""
    fresh = tuple(kind for kind in command.types if kind.name not in view.catalogue)
    return _record_catalogue(RecordCatalogue(types=fresh), view) if fresh else Decision()


def _change_observing(new: Any) -> list[Change]:
    return [Change(holder=observation, name="observe_machines", new=new)]


LOOKING = (
    Defect(
        name="believe-no-end",
        words="a machine that the cloud has ended goes on counting",
        changes=lambda: [Change(holder=Observe, name="_confirm_ended", new=lambda *_: None)],
    ),
    Defect(
        name="keep-the-first-status",
        words="a machine's status is written down once and never followed",
        changes=lambda: [Change(holder=observation, name="_news", new=_news_without_status)],
    ),
    Defect(
        name="write-every-look",
        words="every listing is written down, whether anything has changed or not",
        changes=lambda: [Change(holder=observation, name="_news", new=_always_news)],
    ),
    Defect(
        name="take-any-newborn",
        words="an order of unknown outcome takes any new machine of its group",
        changes=lambda: [Change(holder=observation, name="_newborn", new=_first_of_its_group)],
    ),
    Defect(
        name="keep-the-first-price",
        words="prices are read once",
        changes=lambda: [Change(holder=domain_cloud, name="record_catalogue", new=_names_only)],
    ),
    Defect(
        name="trust-absence",
        words="what two listings lack is written off without asking for it by its id",
        changes=lambda: [Change(holder=Observe, name="_confirm_ended", new=_write_off)],
    ),
    Defect(
        name="trust-one-absence",
        words="a single listing is enough to look a machine up and write it off",
        changes=lambda: [Change(holder=observe, name="_MISSES_TO_DOUBT", new=1)],
    ),
    Defect(
        name="trust-a-list-with-holes",
        words="an order is ruled out by listings that lack machines which are known to live",
        changes=lambda: [Change(holder=Observe, name="_is_whole", new=lambda *_: True)],
    ),
    Defect(
        name="adopt-by-name",
        words="a machine without our mark is taken in if its name looks like ours",
        changes=lambda: _change_observing(_observing(_marked_by_name)),
    ),
    Defect(
        name="delete-by-name",
        words="a machine without our mark is deleted as a duplicate if it has the name of one of ours",
        changes=lambda: [Change(holder=observation, name="surplus", new=_surplus_by_name)],
    ),
    Defect(
        name="ignore-installation-id",
        words="machines of another installation under our cluster's name are taken in",
        changes=lambda: _change_observing(_observing(_marked_by_cluster)),
    ),
    Defect(
        name="adopt-any-name-with-our-mark",
        words="a copy of one of our machines, under another name, is taken in",
        changes=lambda: [Change(holder=ownership, name="is_instance_name", new=lambda *_: True)],
    ),
    Defect(
        name="forget-the-returned",
        words="a machine that was believed lost and is listed again stays nobody's",
        changes=lambda: [Change(holder=observation, name="returned", new=lambda *_: ())],
    ),
    Defect(
        name="take-back-what-was-given-back",
        words="a machine that returns is taken in although it was given back meanwhile",
        changes=lambda: [
            Change(holder=Instance, name="may_return", new=property(lambda one: one.state is InstanceState.LOST))
        ],
    ),
    Defect(
        name="forget-the-surplus",
        words="second machines of one name are not noticed",
        changes=lambda: [Change(holder=observation, name="surplus", new=lambda *_: ())],
    ),
    Defect(
        name="delete-the-wrong-twin",
        words="of two machines of one name, the one in use is deleted",
        changes=lambda: [Change(holder=observation, name="surplus", new=_own_is_surplus)],
    ),
    Defect(
        name="namesakes-keep-doubt",
        words="an order of unknown outcome stays open as long as a stranger's machine has its name",
        changes=lambda: [Change(holder=observation, name="_keeps_in_doubt", new=observation._may_be_its)],
    ),
    Defect(
        name="forget-the-newborn",
        words="machines whose create call was not answered are not looked for in the listing",
        changes=lambda: [Change(holder=observation, name="_newborn", new=lambda *_: ())],
    ),
    Defect(
        name="unknown-status-is-the-end",
        words="a status word that we do not know means that the machine is no more",
        changes=lambda: [Change(holder=module, name="phase_of", new=_phase_of) for module in (observation, observe)],
    ),
    Defect(
        name="believe-stale-statuses",
        words="a running machine is coming again when an old listing says so",
        changes=lambda: [Change(holder=observation, name="_next_state", new=_next_state)],
    ),
    Defect(
        name="believe-an-empty-catalogue",
        words="a catalogue without entries withdraws everything",
        changes=lambda: [Change(holder=domain_cloud, name="record_catalogue", new=_catalogue_as_read)],
    ),
    Defect(
        name="unreachable-for-ever",
        words="the end of an outage is not noticed",
        changes=lambda: _change_observing(_never_reachable_again),
    ),
    Defect(
        name="never-see-the-system-disk",
        words="the OS volume in a listing is not written down",
        changes=lambda: _change_observing(_only_with_price),
    ),
)
