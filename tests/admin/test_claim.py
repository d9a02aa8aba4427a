import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.admin.client import claim
from app.admin.protocol import short_name, socket_of
from app.admin.server import AdminServer
from app.clock import SeededIds, SystemClock
from app.domain.cloud import RecordCatalogue
from app.domain.machine import Machine
from app.domain.nodegroup.commands import ApplyConfiguration
from app.domain.observation import ObserveMachines
from app.domain.service import StartService
from app.errors import RuleViolation
from app.ledger.ledger import Ledger
from app.ledger.serving import obstacles
from tests.store.harness import H100, SERVICE, group, opened

IDS = SeededIds(1)
OPEN = pytest.mark.usefixtures("_door")
THEIRS = Machine(
    instance_id="id-1",
    hostname="gpu-aaaaaaaa",
    status="running",
    description="ca:v1 cluster=prod installation=inst0 group=gpu",
)


def begin(ledger: Ledger) -> None:
    """A new database beside a machine that carries its cluster's name."""
    ledger.execute(
        StartService(
            installation_id="inst1", version="1", host="pod-0", pid=1, sqlite_version="3", backend="simulator"
        ),
        SERVICE,
    )
    ledger.execute(ApplyConfiguration(specs=(group(),), sha256="a", cluster_name="prod"), SERVICE)
    ledger.execute(RecordCatalogue(types=(H100,)), SERVICE)
    look(ledger)


def look(ledger: Ledger) -> None:
    """A listing that shows the machine."""
    ledger.execute(ObserveMachines(machines=(THEIRS,), backend="simulator", claim=False), SERVICE)


def claimed(database: Path, installation: str) -> str:
    """What the command says."""
    (sentence,) = claim(database, installation, SystemClock(), IDS)
    return sentence


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A path far deeper than the system lets a socket's name be."""
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    return deep / "provider.db"


@pytest.fixture
def ledger(database: Path) -> Iterator[Ledger]:
    """The new database, open."""
    with opened(database) as ledger:
        begin(ledger)
        yield ledger


@pytest.fixture
def _door(database: Path, ledger: Ledger) -> Iterator[None]:
    door = AdminServer(ledger, IDS, socket_of(database))
    door.start()
    yield
    door.stop()


@OPEN
def test_a_claim_reaches_the_server_that_holds_the_database(database: Path, ledger: Ledger) -> None:
    """The pod runs and is not ready; nobody should have to stop it to say that the machines are ours."""
    assert [reason.code for reason in obstacles(ledger.books)] == ["claim-needed"]
    assert claimed(database, "inst0") == "the machines of installation inst0 are taken over"
    look(ledger)
    assert obstacles(ledger.books) == ()
    assert ledger.books.target_size("gpu") == 1
    assert claimed(database, "inst0") == "nothing to do: inst0 is so already"


def test_a_claim_is_written_down_where_no_server_runs(database: Path) -> None:
    """The next start finds it."""
    with opened(database) as ledger:
        begin(ledger)
    claimed(database, "inst0")
    with opened(database) as ledger:
        look(ledger)
        assert ledger.books.target_size("gpu") == 1
        assert ledger.books.cloud.first_reached_at is not None


@OPEN
def test_a_claim_of_an_installation_that_nobody_saw_is_refused(database: Path, ledger: Ledger) -> None:
    """A slip of the pen must not make strangers' machines ours later."""
    before = ledger.head.position
    with pytest.raises(RuleViolation, match=r"no machine of installation 'inst9' was seen; .* name: inst0"):
        claimed(database, "inst9")
    assert ledger.head.position == before


@OPEN
def test_our_own_installation_needs_no_claim(database: Path) -> None:
    """Already so."""
    assert claimed(database, "inst1") == "nothing to do: inst1 is so already"


@OPEN
def test_a_caller_who_hangs_up_disturbs_nobody(database: Path) -> None:
    """The next one is answered."""
    with socket.socket(socket.AF_UNIX) as rude, short_name(socket_of(database)) as name:
        rude.connect(name)
        rude.sendall(b'{"comm')
    assert claimed(database, "inst1") == "nothing to do: inst1 is so already"


def test_a_socket_left_by_a_killed_process_is_in_nobodys_way(database: Path) -> None:
    """The command goes to the database itself."""
    with opened(database) as ledger:
        begin(ledger)
    with socket.socket(socket.AF_UNIX) as dead, short_name(socket_of(database)) as name:
        dead.bind(name)
    assert claimed(database, "inst1") == "nothing to do: inst1 is so already"
