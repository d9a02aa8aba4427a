"""Files that are not what we wrote, and places where nothing can be written: clear words, nothing overwritten."""

import os
from pathlib import Path

import pytest

from app.errors import StoreCorrupt, StoreHeld, StoreUnavailable
from app.store import schema
from app.store.chain import link
from app.store.reading import reading
from app.store.store import Store

from .harness import LONG_AGO, opened, plain, rows

RESTORE = "restore a backup, or move what is left aside to begin anew"


def refusal(path: Path) -> StoreCorrupt:
    """How the store refuses a file; the file is untouched afterwards."""
    before = path.read_bytes() if path.exists() else None
    with pytest.raises(StoreCorrupt) as refused:
        Store(path).open("the test", LONG_AGO)
    assert (path.read_bytes() if path.exists() else None) == before
    return refused.value


def crashed(path: Path) -> None:
    """Leave the lock file as a killed process would."""
    path.with_name(path.name + ".lock").write_text("a doomed pod\nin use\n")


@pytest.mark.parametrize("left", [0, 1, 511])
def test_a_database_of_a_few_bytes_is_not_made_anew(started: Path, left: int) -> None:
    """F57: it lost its content; a silent new database would look like an empty cluster."""
    started.write_bytes(started.read_bytes()[:left])
    assert refusal(started).message == f"{started} is empty or missing beside its write-ahead log: {RESTORE}"


def test_a_write_ahead_log_without_its_database_is_not_made_anew(started: Path) -> None:
    """F57: somebody moved half of it."""
    started.rename(started.with_name(started.name + "-wal"))
    assert refusal(started).message == f"{started} is empty or missing beside its write-ahead log: {RESTORE}"


def test_an_empty_write_ahead_log_is_nothing(tmp_path: Path) -> None:
    """A reader that looked at a closed database leaves one behind; deleting the database alone begins anew."""
    (tmp_path / "provider.db-wal").touch()
    with opened(tmp_path / "provider.db") as ledger:
        assert ledger.head.position == 0


def test_a_young_database_whose_write_ahead_log_was_lost_is_not_made_anew(tmp_path: Path) -> None:
    """F57: everything was still in the log file; what is left is a valid database with nothing in it."""
    path = tmp_path / "provider.db"
    with plain(path) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
    crashed(path)
    assert refusal(path).message == f"the database has lost its content, perhaps with its write-ahead log: {RESTORE}"


def test_the_first_start_leaves_the_tables_in_the_file_itself(tmp_path: Path) -> None:
    """So that losing the write-ahead log of a young database loses events at most, never the whole database."""
    path, taken = tmp_path / "provider.db", tmp_path / "taken.db"
    with opened(path):
        taken.write_bytes(path.read_bytes())
    assert rows(taken, "SELECT version_num FROM alembic_version") == [(schema.SCHEMA_REVISION,)]


def test_a_killed_first_start_is_simply_done_again(tmp_path: Path) -> None:
    """Zero bytes are no loss when the lock file says that the database was never complete."""
    path = tmp_path / "provider.db"
    path.touch()
    path.with_name(path.name + ".lock").write_text("a doomed pod\ncreating the database\n")
    with opened(path) as ledger:
        assert ledger.head.position == 0


@pytest.mark.parametrize("size", [512, 5000])
def test_a_garbage_file_is_refused(tmp_path: Path, size: int) -> None:
    """A configuration that points to some other file must not destroy it."""
    path = tmp_path / "provider.db"
    path.write_bytes((b"this is no database of anybody's " * 200)[:size])
    assert refusal(path).message == "the database is damaged: file is not a database"


def test_a_database_of_a_newer_file_format_is_refused(started: Path) -> None:
    """F57: SQLite opens it for reading only, and says so when we want to write."""
    content = bytearray(started.read_bytes())
    content[18:20] = b"\x03\x03"
    started.write_bytes(content)
    with pytest.raises((StoreCorrupt, StoreUnavailable), match=r"not a database|read-only"):
        Store(started).open("the test", LONG_AGO)
    assert started.read_bytes() == bytes(content)


def torn(path: Path, page: int) -> None:
    """Write nonsense over the head of a page."""
    with path.open("r+b") as file:
        file.seek((page - 1) * 4096)
        file.write(b"\xa5" * 8)


@pytest.mark.parametrize("page", [2, 7, 12, 20])
@pytest.mark.parametrize("crash", [True, False], ids=["after a crash", "after a clean end"])
def test_a_torn_page_is_found_at_start(started: Path, page: int, *, crash: bool) -> None:
    """F57: every page of a file of ordinary size is looked at before anything is served."""
    assert started.stat().st_size > page * 4096
    torn(started, page)
    if crash:
        crashed(started)
    assert "damaged" in refusal(started).message


@pytest.mark.parametrize(
    ("note", "is_looked_at"),
    [
        ("closed cleanly\n{boot}\n", False),
        ("in use\n{boot}\n", False),
        ("in use\nsome-other-boot\n", True),
        ("in use\n", True),
        ("", True),
    ],
    ids=["clean end", "killed", "the machine stopped", "an old version's note", "no note"],
)
def test_a_large_file_is_looked_at_only_if_its_machine_stopped(started: Path, note: str, *, is_looked_at: bool) -> None:
    """The time would grow with the log, and a kill cannot tear a page: what was written is the system's to keep."""
    with plain(started) as connection:
        connection.execute("CREATE TABLE ballast (bytes)")
        connection.execute("INSERT INTO ballast VALUES (zeroblob(17000000))")
        ((page,),) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'ix_events_correlation_id'")
    torn(started, page)
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    started.with_name(started.name + ".lock").write_text(f"a doomed pod\n{note.format(boot=boot)}")
    if is_looked_at:
        for _ in range(2):  # a start that fails, or is killed while it looks, leaves the next one to look again
            assert "damaged" in refusal(started).message
    else:
        with opened(started) as ledger:
            assert ledger.head.position == 6


def test_a_flipped_byte_in_the_newest_event_is_found_at_every_start(started: Path) -> None:
    """SQLite keeps no checksums of its pages; the hashes of the log are ours."""
    content = started.read_bytes()
    place = content.rindex(b'{"backend":"simulator"}')
    started.write_bytes(content[: place + 12] + b"S" + content[place + 13 :])
    assert refusal(started).message == (
        "the log is not what was written: position 6 was changed after it was written, or its predecessor was: "
        "restore a backup"
    )


def test_bytes_that_are_no_text_are_damage(started: Path) -> None:
    """The driver cannot read them, and has no error code for that."""
    content = started.read_bytes()
    place = content.rindex(b'{"backend":"simulator"}')
    started.write_bytes(content[: place + 12] + b"\xff" + content[place + 13 :])
    assert refusal(started).message.startswith("the database is damaged: Could not decode to UTF-8")


def test_an_event_of_a_newer_program_is_refused_by_name(started: Path) -> None:
    """An unknown fact is never skipped: the books would silently be wrong."""
    with plain(started) as connection:
        (last,) = connection.execute("SELECT hash FROM events WHERE position = 6").fetchone()
        parts = ("7", "cloud", "3", "cloud.teleported", "1", "2026-01-05T00:00:00.000000Z", "a", "c", "{}")
        connection.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?)", (*parts, link(last, parts)))
    assert refusal(started).message == (
        "event 7 cannot be read: cloud.teleported version 1 was written by a newer version of this program"
    )


def test_a_directory_is_made_for_a_new_database(tmp_path: Path) -> None:
    """The first start on an empty volume."""
    with opened(tmp_path / "var" / "lib" / "provider.db") as ledger:
        assert ledger.head.position == 0


@pytest.mark.parametrize(
    "odd", ["with space.db", "quest?ion.db", "ha#sh.db", "per%41cent.db", "ünïcode.db", "file:x.db"]
)
def test_any_file_name_will_do(tmp_path: Path, odd: str) -> None:
    """Readers open the file by a URI, where these characters mean something."""
    with opened(tmp_path / odd) as ledger:
        assert ledger.find_ended("gpu-aaaaaaaa") is None
    with reading(tmp_path / odd) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM events").scalar() == 0
    assert sorted(path.name for path in tmp_path.iterdir() if path.suffix == ".db") == [odd]


def test_a_directory_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    """F60: who we are and what is in the way, for the person who has to mend it."""
    (tmp_path / "file").touch()
    path = tmp_path / "file" / "var" / "provider.db"
    with pytest.raises(StoreUnavailable) as refused:
        Store(path).open("the test", LONG_AGO)
    assert refused.value.message == (
        f"cannot write beside the database: {path}.lock: Not a directory "
        f"(running as uid {os.getuid()}; there is no directory {path.parent})"
    )


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_a_directory_that_may_not_be_written_is_one_clear_line(tmp_path: Path) -> None:
    """F60: the volume belongs to somebody else."""
    tmp_path.chmod(0o555)
    with pytest.raises(StoreUnavailable, match=r"Permission denied \(running as uid \d+; .* mode 0555"):
        Store(tmp_path / "provider.db").open("the test", LONG_AGO)


def test_a_directory_in_place_of_the_database_is_refused(tmp_path: Path) -> None:
    """As a volume mounted one level too deep gives."""
    (tmp_path / "provider.db").mkdir()
    with pytest.raises(StoreUnavailable, match="the database cannot be used: it cannot be opened"):
        Store(tmp_path / "provider.db").open("the test", LONG_AGO)


@pytest.mark.parametrize("content", [None, b"no database"])
def test_reading_what_is_not_there_makes_nothing(tmp_path: Path, content: bytes | None) -> None:
    """Looking never changes anything."""
    path = tmp_path / "provider.db"
    if content is not None:
        path.write_bytes(content)
    expected = StoreUnavailable if content is None else StoreCorrupt
    with pytest.raises(expected, match=r"there is no database at|file is not a database"), reading(path) as connection:
        connection.exec_driver_sql("SELECT 1 FROM events")
    assert (path.read_bytes() if path.exists() else None) == content


def test_a_failed_start_holds_nothing(started: Path) -> None:
    """No lock, no connection: the file can be replaced and the next start works."""
    good = started.read_bytes()
    started.write_bytes(b"garbage")
    store = Store(started)
    with pytest.raises(StoreCorrupt):
        store.open("the test", LONG_AGO)
    started.write_bytes(good)
    assert store.open("the test", LONG_AGO).position == 6
    store.close()


def test_no_file_stays_open_behind_a_store(started: Path) -> None:
    """Neither after work, nor after a look, nor after a refusal: a leaked descriptor would keep SQLite's locks."""

    def work() -> None:
        with opened(started) as ledger:
            ledger.find_ended("gpu-aaaaaaaa")
            ledger.checkpoint()
            with pytest.raises(StoreHeld):
                Store(started).open("another", LONG_AGO)
        with reading(started) as connection:
            connection.exec_driver_sql("SELECT 1 FROM events").all()
        started.with_name("garbage.db").write_bytes(b"garbage" * 1000)
        with pytest.raises(StoreCorrupt):
            Store(started.with_name("garbage.db")).open("the test", LONG_AGO)
        with pytest.raises(StoreCorrupt), reading(started.with_name("garbage.db")) as connection:
            connection.exec_driver_sql("SELECT 1 FROM events")

    work()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(3):
        work()
    assert len(list(Path("/proc/self/fd").iterdir())) == before
