import hashlib
import json
import os
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.nodegroup.commands import DecreaseTargetSize
from app.errors import StoreCorrupt, StoreUnavailable
from app.ledger.backups import BackupPlan
from app.store import schema
from app.store.backup import BackupReason, advice, backups, check, manifest_of, prune, read_manifest, take
from app.store.reading import reading
from app.store.verify import verify

from .harness import CA, no_byte_written, one_more, opened, rows

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def findings(path: Path) -> list[str]:
    """What `verify` says."""
    with reading(path) as connection:
        return list(verify(connection))


def test_a_copy_is_the_database_with_a_manifest_that_says_what_it_holds(started: Path, tmp_path: Path) -> None:
    """Six events by inst1, as `started` tells; the hash is of the file that lies there."""
    made = take(started, tmp_path / "copies", NOON, BackupReason.BY_HAND)
    assert made.path == tmp_path / "copies" / "provider-20260105T120000Z-6.db"
    assert findings(made.path) == []
    (head_hash,) = rows(started, "SELECT hash FROM events WHERE position = 6")[0]
    said = json.loads(manifest_of(made.path).read_text())
    del said["sqlite_version"]
    assert said == {
        "format": 1,
        "made_at": "2026-01-05T12:00:00Z",
        "reason": "by-hand",
        "size": made.path.stat().st_size,
        "sha256": hashlib.sha256(made.path.read_bytes()).hexdigest(),
        "position": 6,
        "head_hash": head_hash,
        "last_event_at": "2026-01-05T00:00:00Z",
        "schema_revision": schema.SCHEMA_REVISION,
        "installation_id": "inst1",
    }


def test_a_copy_is_one_file(started: Path, tmp_path: Path) -> None:
    """So that it can be carried away with `cp`; neither making nor proving it leaves anything beside it."""
    with opened(started) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        made = take(started, tmp_path / "copies", NOON, BackupReason.SCHEDULED)
    assert findings(made.path) == []
    assert sorted(file.name for file in made.path.parent.iterdir()) == [made.path.name, f"{made.path.name}.json"]
    assert made.manifest.position == 8


def test_copies_made_while_commands_are_written_are_each_one_moment(started: Path, tmp_path: Path) -> None:
    """Online: no command waits or fails, and every copy is a whole log with the projections of its own end."""
    stop = threading.Event()
    with opened(started) as ledger:

        def write() -> None:
            number = 0
            while not stop.is_set():
                ledger.execute(one_more(f"gpu-{number:08d}"), CA)
                ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            made = []
            for number in range(4):
                before = ledger.head.position
                copy = take(started, tmp_path / "copies", NOON + number * HOUR, BackupReason.SCHEDULED)
                assert before <= copy.manifest.position <= ledger.head.position
                made.append(copy)
        finally:
            stop.set()
            writer.join()
    for copy in made:
        assert findings(copy.path) == []


def test_only_complete_copies_count(started: Path, tmp_path: Path) -> None:
    """What a crash left is no copy: no manifest, half a file, a manifest of nothing, of nonsense; nor a neighbour's."""
    directory = tmp_path / "copies"
    good = take(started, directory, NOON, BackupReason.SCHEDULED)
    (directory / "provider-20260105T130000Z-6.db").write_bytes(good.path.read_bytes())
    half = directory / "provider-20260105T140000Z-6.db"
    half.write_bytes(good.path.read_bytes()[:4096])
    manifest_of(half).write_bytes(manifest_of(good.path).read_bytes())
    manifest_of(directory / "provider-20260105T150000Z-6.db").write_bytes(manifest_of(good.path).read_bytes())
    nonsense = directory / "provider-20260105T160000Z-6.db"
    nonsense.write_bytes(good.path.read_bytes())
    manifest_of(nonsense).write_text("{}")
    other = directory / "provider-b-20260105T170000Z-6.db"
    other.write_bytes(good.path.read_bytes())
    manifest_of(other).write_bytes(manifest_of(good.path).read_bytes())
    assert backups(directory, started) == [good]
    assert backups(tmp_path / "nowhere", started) == []


def test_the_newest_of_each_kind_are_kept_and_all_made_by_hand(started: Path, tmp_path: Path) -> None:
    """A busy schedule must not push out the copy from before a migration."""
    directory = tmp_path / "copies"
    kinds = (BackupReason.BY_HAND, BackupReason.BEFORE_MIGRATION, BackupReason.SCHEDULED)
    for number, reason in enumerate((*kinds, *kinds, *kinds)):
        take(started, directory, NOON + number * HOUR, reason)
    removed = prune(directory, started, 2, NOON + 10 * HOUR)
    assert sorted(path.name for path in removed) == ["provider-20260105T130000Z-6.db", "provider-20260105T140000Z-6.db"]
    kept = [(copy.manifest.reason, copy.manifest.made_at.hour) for copy in backups(directory, started)]
    assert kept == [
        *(("scheduled", 20), ("before-migration", 19), ("by-hand", 18)),
        *(("scheduled", 17), ("before-migration", 16), ("by-hand", 15), ("by-hand", 12)),
    ]
    assert len(list(directory.iterdir())) == 14


def test_what_an_interrupted_round_left_goes_after_a_day(started: Path, tmp_path: Path) -> None:
    """Not before: somebody may be at it."""
    directory = tmp_path / "copies"
    old = ("provider.db.7.partial", "provider-20260104T110000Z-6.db", "provider-20260104T110000Z-6.db.json.7.partial")
    new = ("provider.db.8.partial", "provider-20260105T110000Z-6.db", "provider-20260105T110000Z-6.db.json.8.partial")
    others = ("other-20260104T110000Z-6.db", "provider-20260104T110000Z.db", "provider.db", "notes.partial")
    good = take(started, directory, NOON - 30 * HOUR, BackupReason.SCHEDULED)
    kept = [good.path, manifest_of(good.path), *(directory / name for name in (*new, *others))]
    for name in (*old, *new, *others):
        (directory / name).write_bytes(b"half")
    for file in directory.iterdir():
        age = HOUR if file.name in new else 25 * HOUR
        os.utime(file, ((NOON - age).timestamp(),) * 2)
    prune(directory, started, 2, NOON)
    assert sorted(directory.iterdir()) == sorted(kept)


def test_a_copy_that_cannot_be_written_leaves_nothing_and_disturbs_nobody(started: Path, tmp_path: Path) -> None:
    """The disk for the copies is full; the server goes on."""
    directory = tmp_path / "copies"
    good = take(started, directory, NOON, BackupReason.SCHEDULED)
    with opened(started) as ledger:
        with no_byte_written(), pytest.raises(StoreUnavailable):
            take(started, directory, NOON + HOUR, BackupReason.SCHEDULED)
        assert ledger.trouble is None
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert backups(directory, started) == [good]
    assert len(list(directory.iterdir())) == 2


def test_a_damaged_database_gives_no_copy(started: Path, tmp_path: Path) -> None:
    """A copy that nobody could restore must not push out a good one."""
    with started.open("r+b") as file:
        file.seek(6 * 4096)
        file.write(b"\xa5" * 8)
    with pytest.raises(StoreCorrupt, match="damaged"):
        take(started, tmp_path / "copies", NOON, BackupReason.SCHEDULED)
    assert list((tmp_path / "copies").iterdir()) == []


def test_a_copy_of_nothing_is_refused(tmp_path: Path) -> None:
    """And no empty database is made."""
    with pytest.raises(StoreUnavailable, match="there is no database at"):
        take(tmp_path / "provider.db", tmp_path / "copies", NOON, BackupReason.BY_HAND)
    assert list(tmp_path.iterdir()) == [tmp_path / "copies"]


def test_a_directory_that_is_a_file_is_told(started: Path, tmp_path: Path) -> None:
    """One clear error of our own."""
    (tmp_path / "copies").touch()
    with pytest.raises(StoreUnavailable, match="File exists"):
        take(started, tmp_path / "copies", NOON, BackupReason.BY_HAND)


def test_a_copy_that_was_changed_is_not_the_one_that_was_made(started: Path, tmp_path: Path) -> None:
    """One byte is enough."""
    made = take(started, tmp_path / "copies", NOON, BackupReason.BY_HAND)
    assert check(made.path) == read_manifest(made.path) == made.manifest
    content = bytearray(made.path.read_bytes())
    content[-1] ^= 1
    made.path.write_bytes(bytes(content))
    with pytest.raises(StoreCorrupt, match="is not the file that was backed up"):
        check(made.path)


def test_a_database_without_manifest_is_taken_as_it_is(started: Path) -> None:
    """What people copied by other means can be restored too, once it is proven."""
    assert check(started) is None


def test_the_advice_names_the_newest_copy_its_age_and_the_command(started: Path, tmp_path: Path) -> None:
    """What somebody reads at three in the morning."""
    directory = tmp_path / "copies"
    assert advice(directory, started, NOON) == f"there is no backup in {directory}"
    made = take(started, directory, NOON, BackupReason.SCHEDULED)
    assert advice(directory, started, NOON + 90 * timedelta(minutes=1)) == (
        f"the newest backup was made 1:30:00 ago at position 6: "
        f"verda-cloud-provider restore {made.path} --database {started}"
    )


@pytest.mark.parametrize(
    ("age", "more", "due"),
    [(HOUR, True, True), (HOUR - timedelta(seconds=1), True, False), (9 * HOUR, False, False)],
    ids=["old and behind", "young", "old with everything"],
)
def test_a_copy_is_due_when_the_newest_is_old_and_lacks_something(
    started: Path, tmp_path: Path, age: timedelta, *, more: bool, due: bool
) -> None:
    """A process that restarts every minute must not push the good copies out, nor must a quiet night."""
    clock = FakeClock(NOON)
    plan = BackupPlan(database=started, directory=tmp_path / "copies", every=HOUR, keep=2, clock=clock)
    assert plan.is_due(6)
    plan.take(BackupReason.SCHEDULED)
    clock.advance(age)
    assert plan.is_due(8 if more else 6) is due


def test_a_plan_clears_away_what_is_too_much(started: Path, tmp_path: Path) -> None:
    """Only once the new one is there."""
    clock = FakeClock(NOON)
    plan = BackupPlan(database=started, directory=tmp_path / "copies", every=HOUR, keep=2, clock=clock)
    for _ in range(3):
        plan.take(BackupReason.SCHEDULED)
        clock.advance(HOUR)
    made = [copy.manifest.made_at for copy in backups(plan.directory, started)]
    assert made == [NOON + 2 * HOUR, NOON + HOUR]


def test_a_place_that_cannot_hold_copies_is_named(started: Path) -> None:
    """The database is not to blame."""
    with pytest.raises(StoreUnavailable, match=r"^no copies can be put into /proc/nowhere: "):
        take(started, Path("/proc/nowhere"), NOON, BackupReason.BY_HAND)
