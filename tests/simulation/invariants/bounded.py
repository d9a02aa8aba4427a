"""What may be so for a while and no longer: each yields the things it is so of, and has a bound.

The bounds count time in which the provider lives and its disk writes; fair ones only while the cloud answers as well.
They leave room for the single faults that strike meanwhile; what they allow an operator may have to pay for.
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from datetime import timedelta

from app.domain.instance.lifecycle import InstanceState
from app.domain.offering import Contract
from app.reconcile.jobs.upkeep import FAILED_EXPIRY
from app.simulator.records import InstanceRecord
from tests.simulation.accounts import Accounts, is_deletable
from tests.simulation.setting import CPU, FOREIGN_SCRIPT, GPU
from tests.simulation.stage import Stage
from tests.simulation.violation import Violated

Condition = Callable[[Stage], Iterable[str]]

_SERIES = 4


def _series(stage: Stage, machines: Iterable[InstanceRecord]) -> int:
    """How many whole series of deletions the cloud has struck; with each a bound, made for a few, begins anew."""
    return sum(stage.cloud.known.setbacks[item.id] // _SERIES for item in machines)


def a_name_has_two_machines(stage: Stage) -> Iterator[str]:
    """One wish was bought twice; all but one machine must go as soon as the cloud lets them."""
    by_name: defaultdict[str, list[InstanceRecord]] = defaultdict(list)
    for item in stage.machines:
        if not item.hidden:
            by_name[item.hostname].append(item)
    for name, same in by_name.items():
        instance = stage.books.instances.get(name)
        extra = [item for item in same if instance is None or item.id != instance.instance_id]
        if len(same) > 1 and any(is_deletable(stage, item) for item in extra):
            yield f"{name} {_series(stage, extra)}"


def a_machine_is_in_nobodys_books(stage: Stage) -> Iterator[str]:
    """A machine with our mark costs money, and neither an instance nor the list of machines too many knows it."""
    books = stage.books
    for item in stage.machines:
        if item.hidden or item.id in books.cloud.surplus or not item.description.startswith("ca:v1"):
            continue
        instance = books.instances.get(item.hostname)
        has_it = instance is not None and not instance.state.is_ended and instance.instance_id == item.id
        waits_for_it = instance is not None and instance.create_is_open
        if not has_it and not waits_for_it:
            yield f"{item.hostname} {item.id}"


def what_nobody_wants_is_billed(stage: Stage) -> Iterator[str]:
    """A machine that was given back, or one too many, goes on living although the cloud would delete it."""
    books = stage.books
    for item in stage.machines:
        if not is_deletable(stage, item):
            continue
        instance = books.instances.get(item.hostname)
        is_over = instance is not None and not instance.state.is_live and instance.state is not InstanceState.LOST
        if is_over or item.id in books.cloud.surplus:
            yield f"{item.hostname} {item.id} {_series(stage, [item])}"


def an_order_stays_unsettled(stage: Stage) -> Iterator[str]:
    """A create call is over, and nobody knows yet what became of it."""
    for name in stage.witness.open_orders():
        if not stage.cloud.known.order(name).under_way:
            yield f"{name} attempt {stage.witness.stories[name].attempts}"


def a_wish_is_unanswered(stage: Stage) -> Iterator[str]:
    """Neither a machine nor a failure."""
    for instance in stage.books.listed_instances():
        if instance.state in {InstanceState.REQUESTED, InstanceState.SUBMITTING}:
            yield instance.name


def a_machine_does_not_come_up(stage: Stage) -> Iterator[str]:
    """It exists, it does not run, and nobody says that it failed."""
    for instance in stage.books.listed_instances():
        if instance.state is InstanceState.PROVISIONING:
            yield f"{instance.name} {instance.instance_id}"


def a_failure_is_kept(stage: Stage) -> Iterator[str]:
    """Nobody collected it, and it may have a machine."""
    for instance in stage.books.listed_instances():
        if instance.state is InstanceState.FAILED:
            yield instance.name


def a_dead_machine_is_listed(stage: Stage) -> Iterator[str]:
    """The cloud has discontinued it, and it still counts or is still being deleted."""
    for instance in stage.books.listed_instances():
        machine = stage.world.state.instances.get(instance.instance_id or "")
        if machine is not None and machine.status == "discontinued" and instance.state is not InstanceState.FAILED:
            yield f"{instance.name} {instance.state}"


def the_books_show_another_status(stage: Stage) -> Iterator[str]:
    """The cloud shows one status of a machine, the books another."""
    for instance in stage.books.listed_instances():
        machine = stage.world.state.instances.get(instance.instance_id or "")
        is_shown = machine is not None and not machine.hidden and machine.ended_ms is None
        if machine is not None and is_shown and instance.machine_status != machine.status:
            yield f"{instance.name} is {machine.status}, the books say {instance.machine_status}"


def a_switched_off_machine_is_kept(stage: Stage) -> Iterator[str]:
    """The group says to delete such machines."""
    for instance in stage.books.listed_instances():
        group = stage.books.groups[instance.node_group]
        if instance.state is InstanceState.STOPPED and group.spec.stopped_action == "delete":
            yield instance.name


def is_beyond_our_books(stage: Stage, machine: InstanceRecord) -> bool:
    """An older backup was put back, and what it holds does not say that this machine's disk was to go with it."""
    if not stage.times_put_back:
        return False
    instance = stage.books.instances.get(machine.hostname) or stage.life.ledger.find_ended(machine.hostname)
    if instance is None:
        return True
    is_given_back = instance.delete_requested_at is not None or instance.state is InstanceState.CANCELLED
    return not is_given_back and instance.contract is not Contract.SPOT


def a_system_disk_is_left(stage: Stage) -> Iterator[str]:
    """The OS volume of a machine of ours costs money, and its machine is no more."""
    for volume in stage.world.state.volumes.values():
        machine = stage.world.state.instances.get(volume.last_instance_id or "")
        is_loose = volume.is_os and volume.billed_from_ms is not None and volume.instance_id is None
        if is_loose and machine is not None and not machine.foreign and machine.ended_ms is not None:
            if is_beyond_our_books(stage, machine):
                continue
            yield f"{volume.name} {volume.id}"


def a_script_is_left(stage: Stage) -> Iterator[str]:
    """A startup script of ours is at the cloud, and no machine that comes, or came lately, needs it."""
    coming = {InstanceState.REQUESTED, InstanceState.SUBMITTING, InstanceState.PROVISIONING}
    needed = {one.name for one in stage.books.listed_instances() if one.state in coming}
    for script in stage.world.state.scripts.values():
        if script.name != FOREIGN_SCRIPT and script.name.split(":")[3] not in needed:
            yield script.name


def a_price_is_old(stage: Stage) -> Iterator[str]:
    """The cloud sells at another price than the books say."""
    for spec in (GPU, CPU):
        item, kind = stage.world.catalogue.find(spec.instance_type), stage.books.cloud.catalogue.get(spec.instance_type)
        known = kind.on_demand_price if kind is not None else None
        if item is not None and known is not None and abs(item.price_micro(spot=False) - int(known * 1_000_000)) > 1:
            yield f"{spec.instance_type} costs {item.price_micro(spot=False)}"


def an_outage_is_over_and_still_in_the_books(stage: Stage) -> Iterator[str]:
    """The cloud answers, and the books say that it does not."""
    if stage.books.cloud.reachable is False:
        yield "unreachable"


FAIR: Mapping[Condition, timedelta] = {
    a_name_has_two_machines: timedelta(minutes=5),
    a_machine_is_in_nobodys_books: timedelta(minutes=5),
    what_nobody_wants_is_billed: timedelta(minutes=8),
    an_order_stays_unsettled: timedelta(minutes=8),
    a_dead_machine_is_listed: timedelta(minutes=6),
    the_books_show_another_status: timedelta(minutes=5),
    a_system_disk_is_left: timedelta(minutes=30),
    a_script_is_left: timedelta(minutes=30),
    a_price_is_old: timedelta(minutes=11),
    an_outage_is_over_and_still_in_the_books: timedelta(minutes=3),
}
"""Needs the cloud."""
ALONE: Mapping[Condition, timedelta] = {
    a_wish_is_unanswered: GPU.create_timeout + timedelta(minutes=3),
    a_machine_does_not_come_up: GPU.provision_timeout + timedelta(minutes=3),
    a_failure_is_kept: FAILED_EXPIRY + timedelta(minutes=3),
    a_switched_off_machine_is_kept: CPU.stopped_after + timedelta(minutes=3),
}
"""Is a matter of the clock alone: ours, and the cloud's, which says when a machine was made."""
WASTE = timedelta(minutes=10)
WASTE_EACH = timedelta(minutes=1)
"""What a story may pay for machines that nobody wants, while they could be deleted: so much, and so much for each.

As much again for each deletion that the cloud strikes beyond the first few of a machine: it is repeated a minute later.
"""


class Bounds:
    """Remembers since when what is so."""

    def __init__(self, stage: Stage, accounts: Accounts) -> None:
        self._stage = stage
        self._accounts = accounts
        self._since: dict[tuple[str, Hashable], float] = {}
        self.longest: dict[str, float] = {}

    def check(self) -> None:
        """Look again. Raises: Violated."""
        since: dict[tuple[str, Hashable], float] = {}
        fair, alone = self._accounts.fair_s, self._accounts.alive_s
        skew = timedelta(seconds=self._stage.cloud_slack_s)
        timed = (
            *((fair, condition, bound) for condition, bound in FAIR.items()),
            *((alone, condition, bound + skew) for condition, bound in ALONE.items()),
        )
        for now, condition, bound in timed:
            name = condition.__name__
            for thing in condition(self._stage):
                began = since[name, thing] = self._since.get((name, thing), now)
                self.longest[name] = max(self.longest.get(name, 0.0), now - began)
                if now - began > bound.total_seconds():
                    raise Violated(
                        name, f"{thing}, for {now - began:.0f} s and not at most {bound.total_seconds():.0f}"
                    )
        self._since = since

    def check_waste(self) -> None:
        """What was paid for nothing in the whole story. Raises: Violated."""
        wasted = self._accounts.wasted_s
        struck = self._stage.cloud.known.setbacks
        bound = WASTE + WASTE_EACH * (len(wasted) + sum(max(struck[one] - _SERIES, 0) for one in wasted))
        if sum(wasted.values()) > bound.total_seconds():
            words = f"{sum(wasted.values()):.0f} s of {len(wasted)} machines, not at most {bound.total_seconds():.0f}"
            raise Violated("what_nobody_wants_costs_little", words)
