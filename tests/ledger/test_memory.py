"""What has ended leaves the memory and stays in the store: its answers are the same, its name is never free again."""

from datetime import timedelta
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.ids import Mark
from app.domain.instance.commands import AttemptCreate, AttemptDelete, ConfirmEnded, RecordCreated
from app.domain.instance.events import Found
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.domain.observation import ObserveMachines
from app.errors import Conflict
from app.ledger.ledger import Ledger, open_ledger
from app.store.reading import reading
from app.store.verify import verify
from tests.store.harness import CA, one_more, rows

GONE, CANCELLED, LOST = "gpu-gone0000", "gpu-cancel00", "gpu-lost0000"


@pytest.fixture
def history(ledger: Ledger, clock: FakeClock) -> Ledger:
    """A ledger that has forgotten three instances: one deleted, one cancelled, one lost; three days ago."""
    for name in (GONE, LOST):
        ledger.execute(one_more(name), CA)
        ledger.execute(AttemptCreate(instance=name), CA)
        ledger.execute(RecordCreated(instance=name, instance_id=f"i-{name}", found=Found.ANSWERED), CA)
    ledger.execute(DeleteNodes(node_group="gpu", instances=(GONE,)), CA)
    ledger.execute(AttemptDelete(instances=(GONE,)), CA)
    for name in (GONE, LOST):
        ledger.execute(ConfirmEnded(instance=name, instance_id=f"i-{name}", known_by_id=True), CA)
    ledger.execute(one_more(CANCELLED), CA)
    ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
    clock.advance(timedelta(days=3))
    assert ledger.forget_ended() == 3
    return ledger


def machine_of(name: str, status: str = "running") -> Machine:
    """The instance's machine as the cloud would list it."""
    mark = Mark(cluster="prod", installation="inst1", group="gpu")
    return Machine(instance_id=f"i-{name}", hostname=name, status=status, description=mark.text())


def observed(*machines: Machine) -> ObserveMachines:
    """A complete list of the cloud's machines."""
    return ObserveMachines(machines=machines, backend="simulator", claim=False)


@pytest.mark.parametrize(
    ("key", "state"),
    [
        (GONE, InstanceState.GONE),
        (f"i-{GONE}", InstanceState.GONE),
        (LOST, InstanceState.LOST),
        (f"i-{LOST}", InstanceState.LOST),
        (CANCELLED, InstanceState.CANCELLED),
    ],
)
def test_the_store_knows_what_was_forgotten(history: Ledger, key: str, state: InstanceState) -> None:
    """By name and by the cloud's id: a delete that is repeated days later is answered like the first."""
    assert history.books.find_by_key(key) is None
    found = history.find_ended(key)
    assert found is not None
    assert found.state is state


def test_the_store_does_not_know_what_never_was(history: Ledger) -> None:
    """Nor anything that only looks like it."""
    for key in ("gpu-unknown0", "", "%", GONE.upper(), f"{GONE} "):
        assert history.find_ended(key) is None


def test_what_ended_recently_stays_in_memory(ledger: Ledger, clock: FakeClock) -> None:
    """Two days: deletes are repeated within minutes."""
    ledger.execute(one_more(CANCELLED), CA)
    ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
    clock.advance(timedelta(days=2))
    assert ledger.forget_ended() == 0
    assert ledger.books.instances[CANCELLED].state is InstanceState.CANCELLED
    clock.advance(timedelta(seconds=1))
    assert ledger.forget_ended() == 1


def test_of_many_that_ended_the_newest_stay_in_memory(ledger: Ledger, started: Path, clock: FakeClock) -> None:
    """A fleet that comes and goes all day takes no more memory than one that does so for an hour."""
    names = [f"gpu-{number:08d}" for number in range(1_003)]
    for name in names:
        ledger.execute(one_more(name), CA)
        clock.advance(timedelta(seconds=1))
        ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
    living = one_more("gpu-living00")
    ledger.execute(living, CA)
    assert ledger.forget_ended() == 3
    kept = {*names[3:], "gpu-living00"}
    assert {name for name, _ in ledger.books.instances.items()} == kept
    assert ledger.forget_ended() == 0
    forgotten = ledger.find_ended(names[0])
    assert forgotten is not None
    assert forgotten.state is InstanceState.CANCELLED
    ledger.close()
    successor = open_ledger(started, clock, "the next")
    successor.close()
    assert {name for name, _ in successor.books.instances.items()} == kept


def test_what_lives_is_never_forgotten(ledger: Ledger, clock: FakeClock) -> None:
    """However old it is."""
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    clock.advance(timedelta(days=900))
    assert ledger.forget_ended() == 0
    assert ledger.books.target_size("gpu") == 1


def test_a_start_loads_what_a_running_process_would_remember(history: Ledger, started: Path, clock: FakeClock) -> None:
    """The new process forgets neither more nor less."""
    history.execute(one_more("gpu-aaaaaaaa"), CA)
    history.close()
    successor = open_ledger(started, clock, "the next")
    successor.close()
    assert successor.books.instances == history.books.instances
    assert {name for name, _ in successor.books.instances.items()} == {"gpu-aaaaaaaa"}


def test_giving_back_what_was_lost_and_forgotten_is_final(history: Ledger, started: Path) -> None:
    """Should its machine come back after all, it must not count again."""
    (recorded,) = history.execute(DeleteNodes(node_group="gpu", instances=(LOST,)), CA)
    assert (recorded.event.type, recorded.stream) == ("instance.delete-requested", f"instance-{LOST}")
    assert not history.books.instances[LOST].may_return
    assert history.execute(DeleteNodes(node_group="gpu", instances=(LOST,)), CA) == ()
    history.close()
    with reading(started) as connection:
        assert list(verify(connection)) == []


@pytest.mark.parametrize("name", [GONE, CANCELLED])
def test_giving_back_what_has_ended_for_good_writes_nothing(history: Ledger, name: str) -> None:
    """A tombstone is kept for ever, but not in memory."""
    assert history.execute(DeleteNodes(node_group="gpu", instances=(name,)), CA) == ()


def test_a_forgotten_name_is_not_given_out_again(history: Ledger) -> None:
    """One name is one machine for ever: it is the key under which a lost creation is looked for."""
    before = history.books.position
    with pytest.raises(Conflict, match="used before"):
        history.execute(IncreaseSize(node_group="gpu", delta=2, names=("gpu-fresh000", GONE)), CA)
    assert history.books.position == before
    assert history.books.target_size("gpu") == 0


@pytest.mark.parametrize("name", [GONE, LOST, CANCELLED])
def test_a_forgotten_machine_that_is_listed_again_begins_no_second_story(
    history: Ledger, started: Path, name: str
) -> None:
    """It would be adopted as new, and the log would refuse that again and again, and with it all news of the cloud."""
    before = history.books.position
    history.execute(observed(machine_of(name)), CA)
    assert history.books.position == before
    known = history.books.instances[name]
    assert known.state.is_ended
    newcomer = Machine(
        instance_id="i-new", hostname="gpu-new00000", status="running", description=machine_of(name).description
    )
    history.execute(observed(machine_of(name), newcomer), CA)
    assert history.books.instances["gpu-new00000"].state is InstanceState.RUNNING
    history.close()
    assert rows(started, "SELECT count(*) FROM events WHERE stream = ? AND version = 1", f"instance-{name}") == [(1,)]
    with reading(started) as connection:
        assert list(verify(connection)) == []


def test_many_at_once_are_looked_up(ledger: Ledger) -> None:
    """More names than one query may hold."""
    group_of_many = [f"gpu-{number:08d}" for number in range(1200)]
    machines = [
        Machine(instance_id=f"i-{name}", hostname=name, status="running", description=machine_of(name).description)
        for name in group_of_many
    ]
    ledger.execute(observed(*machines), CA)
    assert ledger.books.target_size("gpu") == 1200
