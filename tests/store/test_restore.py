import re
import shutil
from datetime import UTC, datetime
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.nodegroup.commands import PauseNodeGroup
from app.domain.service import StartService
from app.domain.startup import RecordRestore
from app.errors import RuleViolation, StoreCorrupt, StoreHeld, StoreUnavailable
from app.ledger.backups import BackupPlan
from app.ledger.ledger import open_ledger
from app.store.backup import Backup, BackupReason, take
from app.store.reading import reading
from app.store.restore import Restored, position_of, refuse_to_lose, restore
from app.store.store import Store
from app.store.verify import verify

from .harness import CA, LONG_AGO, SERVICE, altered, one_more, opened, plain, reopened, rows

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)


def put_back(copy: Path, path: Path) -> Restored:
    """As the command does."""

    def record(incoming: Path) -> None:
        with opened(incoming) as ledger:
            ledger.execute(RecordRestore(once_reached=position_of(path)), CA)

    return restore(copy, path, "the test", NOON, record)


@pytest.fixture
def copy(started: Path, tmp_path: Path) -> Backup:
    """A copy with one wish that was not sent; the database has another one since."""
    with opened(started) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        made = take(started, tmp_path / "copies", NOON, BackupReason.BY_HAND)
        ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    return made


def test_a_copy_takes_the_place_of_the_database_and_says_so(started: Path, copy: Backup) -> None:
    """The wish that was not sent is dropped, because nobody knows what became of it; the log tells it all."""
    done = put_back(copy.path, started)
    assert (done.position, done.replaced_position) == (10, 10)
    assert rows(started, "SELECT position, actor, what FROM v_events WHERE position > 8") == [
        (
            9,
            "cluster-autoscaler",
            "the books are older than they were (a backup was restored); 1 wishes that were not sent are dropped",
        ),
        (10, "cluster-autoscaler", "gpu-aaaaaaaa no longer wanted, nothing was bought (books-reverted)"),
    ]
    with reading(started) as connection:
        assert list(verify(connection)) == []
    with opened(started) as ledger:
        assert ledger.books.target_size("gpu") == 0
        assert ledger.once_reached is None


@pytest.mark.parametrize("content", [b"", b"nonsense", b"nonsense" * 1000])
def test_a_file_that_is_no_database_is_named_and_takes_nobodys_place(
    content: bytes, started: Path, tmp_path: Path
) -> None:
    """Named as it was given: the operator has to see the slip."""
    slip = tmp_path / "notes.txt"
    slip.write_bytes(content)
    before = started.read_bytes()
    with pytest.raises(StoreCorrupt, match=f"^{re.escape(str(slip))}"):
        put_back(slip, started)
    assert started.read_bytes() == before


def test_a_database_does_not_take_its_own_place(started: Path) -> None:
    """By whatever name it is given; there would be nothing to gain, and an event too many."""
    link = started.with_name("link.db")
    link.symlink_to(started)
    before = started.read_bytes()
    for same in (started, link):
        with pytest.raises(RuleViolation, match="is the database itself: name a backup of it"):
            put_back(same, started)
    assert started.read_bytes() == before


def test_what_was_replaced_is_kept(started: Path, copy: Backup) -> None:
    """With the event that the copy lacks."""
    done = put_back(copy.path, started)
    assert done.kept == started.with_name("provider.db.replaced-20260105T120000Z")
    assert rows(done.kept, "SELECT max(position) FROM events") == [(10,)]
    assert sorted(file.name for file in started.parent.glob("provider.db*")) == [
        *("provider.db", "provider.db.lock", done.kept.name)
    ]


def test_a_database_in_use_is_not_replaced(started: Path, copy: Backup) -> None:
    """The server would go on writing into a file that nobody will ever read."""
    with opened(started, holder="pod provider-0"), pytest.raises(StoreHeld, match="in use by pod provider-0"):
        put_back(copy.path, started)
    assert rows(started, "SELECT max(position) FROM events") == [(10,)]


def test_a_database_that_has_more_than_the_copy_is_replaced_only_on_purpose(started: Path, copy: Backup) -> None:
    """Somebody has the wrong file in hand more often than not."""
    with pytest.raises(RuleViolation, match=r"has 2 events more than .*-8\.db, which ends at position 8"):
        refuse_to_lose(copy.path, started)
    refuse_to_lose(started, copy.path)
    started.unlink()
    refuse_to_lose(copy.path, started)


@pytest.mark.parametrize("harm", ["garbage", "tampered", "another program's", "changed since", "missing"])
def test_a_copy_that_is_not_sound_changes_nothing(started: Path, copy: Backup, tmp_path: Path, harm: str) -> None:
    """It is proven before anything is touched."""
    bad = tmp_path / "bad.db"
    if harm == "garbage":
        bad.write_bytes(b"no database " * 1000)
    elif harm == "tampered":
        shutil.copy(copy.path, bad)
        altered(bad, "UPDATE events SET actor = 'nobody' WHERE position = 2")
    elif harm == "another program's":
        with plain(bad) as connection:
            connection.execute("CREATE TABLE dashboard(id)")
    elif harm == "changed since":
        bad = copy.path
        altered(bad, "UPDATE events SET actor = 'nobody' WHERE position = 8")
    before = started.read_bytes()
    with pytest.raises(StoreUnavailable if harm == "missing" else StoreCorrupt):
        put_back(bad, started)
    assert started.read_bytes() == before
    assert not list(started.parent.glob("*restoring*")) + list(started.parent.glob("*replaced*"))
    assert reopened(started).position == 10


def test_a_copy_from_before_the_first_start_is_refused(fresh: Path, tmp_path: Path) -> None:
    """An installation's identity is in its log; one without would never know its machines."""
    made = take(fresh, tmp_path / "copies", NOON, BackupReason.BY_HAND)
    with pytest.raises(RuleViolation, match="holds no installation of ours"):
        put_back(made.path, fresh)


def test_a_database_beyond_repair_is_replaced(started: Path, copy: Backup) -> None:
    """F57: the usual reason. The start that fails says what to type, and how old the newest copy is."""
    started.write_bytes(b"\xa5" * 20_000)
    plan = BackupPlan(
        database=started,
        directory=copy.path.parent,
        every=NOON - NOON.replace(hour=11),
        keep=2,
        clock=FakeClock(NOON.replace(hour=13)),
    )
    with pytest.raises(
        StoreCorrupt, match=r"not a database\. As for restoring, the newest .* 1:00:00 ago .* restore /"
    ):
        open_ledger(started, plan.clock, "the test", plan=plan)
    done = put_back(copy.path, started)
    assert done.replaced_position is None
    assert done.kept is not None
    assert done.kept.read_bytes() == b"\xa5" * 20_000
    assert reopened(started).position == 10


def test_a_database_that_is_gone_is_put_back(started: Path, copy: Backup) -> None:
    """Nothing is kept where nothing was."""
    started.unlink()
    done = put_back(copy.path, started)
    assert (done.kept, done.replaced_position) == (None, None)
    assert reopened(started).position == 10


def test_nothing_starts_on_what_an_interrupted_restore_left(started: Path, copy: Backup) -> None:
    """The database is missing for a moment, and a new one in its place would look like an empty cluster."""
    started.unlink()
    lock = started.with_name("provider.db.lock")
    lock.write_text("`restore`, process 7 on host\nbeing replaced by a backup\n\n10\n")
    with pytest.raises(StoreCorrupt, match=r"a restore of .*provider\.db was interrupted: run it again"):
        Store(started).open("the test", LONG_AGO)
    assert not started.exists()
    put_back(copy.path, started)
    assert reopened(started).position == 10


def test_a_write_ahead_log_of_the_old_database_is_never_played_into_the_new(started: Path, copy: Backup) -> None:
    """After a crash it lies beside the file; it goes with the file it belongs to."""
    wal = started.with_name("provider.db-wal")
    wal.write_bytes(b"\x37\x7f\x06\x82" + b"\x00" * 5000)
    done = put_back(copy.path, started)
    assert done.kept is not None
    assert not wal.exists()
    with reading(started) as connection:
        assert list(verify(connection)) == []


# --- when somebody did it by other means


def test_a_database_that_somebody_replaced_by_an_older_one_is_noticed(started: Path, copy: Backup) -> None:
    """The lock file stays where it is and says how far the log had come; the start drops what was not sent."""
    shutil.copy(copy.path, started)
    with opened(started) as ledger:
        assert ledger.once_reached == 10
        start = StartService(
            installation_id="x",
            version="1",
            host="h",
            pid=1,
            sqlite_version="3",
            backend="simulator",
            once_reached=ledger.once_reached,
        )
        ledger.execute(start, SERVICE)
        assert ledger.books.target_size("gpu") == 0
        assert ledger.books.installation.installation_id == "inst1"
    assert rows(started, "SELECT what FROM v_events WHERE position > 8") == [
        ("the books are older than they were (the log was longer once); 1 wishes that were not sent are dropped",),
        ("gpu-aaaaaaaa no longer wanted, nothing was bought (books-reverted)",),
        ("version 1 started on h, epoch 2, simulator backend",),
    ]


def test_the_lock_file_knows_how_far_the_log_came_even_after_a_kill(started: Path) -> None:
    """Every commit moves the mark, so an hourly copy put back after a crash is noticed too."""
    with opened(started) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        words = started.with_name("provider.db.lock").read_text()
    assert words.splitlines()[1] == "in use"
    assert words.splitlines()[3] == "8"


def test_a_start_that_could_not_write_leaves_the_next_one_to_notice(started: Path, copy: Backup) -> None:
    """The disk is full when the older database is first opened: how far it once went is known until the log says so."""
    shutil.copy(copy.path, started)
    for _ in range(2):
        with opened(started) as ledger:
            assert (ledger.books.position, ledger.once_reached) == (8, 10)
    with opened(started) as ledger:
        ledger.execute(PauseNodeGroup(node_group="gpu", operator="somebody", reason="first look"), CA)
    with opened(started) as ledger:
        assert (ledger.books.position, ledger.once_reached) == (9, 10)
        ledger.execute(RecordRestore(once_reached=ledger.once_reached), CA)
    with opened(started) as ledger:
        assert ledger.once_reached is None


def test_a_lock_file_of_an_older_version_says_nothing(started: Path) -> None:
    """Three lines, no position: nothing is noticed, nothing breaks."""
    started.with_name("provider.db.lock").write_text("a pod\nclosed cleanly\nboot\n")
    with opened(started) as ledger:
        assert ledger.once_reached is None
