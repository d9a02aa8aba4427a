"""One writer: the lock file keeps others out, says who holds it, and tells how the last one ended."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from app.errors import StoreCorrupt, StoreHeld, StoreUnavailable
from app.store.lock import Ending, WriterLock
from app.store.reading import reading
from app.store.rebuild import rebuild
from app.store.store import Store

from .harness import CA, LONG_AGO, no_byte_written, one_more, opened

Holder = subprocess.Popen[str]


@pytest.fixture
def hold() -> Iterator[Callable[[Path, str], Holder]]:
    """Starts other processes that hold a database; none of them survives the test."""
    with ExitStack() as stack:

        def started(path: Path, holder: str) -> Holder:
            process = subprocess.Popen(
                [sys.executable, "-m", "tests.store.holder", str(path), holder],
                env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout is not None
            assert process.stdout.readline().startswith("open at")
            return process

        yield started


def note_of(path: Path) -> list[str]:
    """What a database's lock file says of the holder and its end."""
    return path.with_name(path.name + ".lock").read_text().splitlines()[:2]


def test_a_second_process_is_refused_in_the_words_of_the_first(
    started: Path, hold: Callable[[Path, str], Holder]
) -> None:
    """Whoever is on duty must see at once which pod to look at."""
    hold(started, "process 7 on pod provider-0, started 2026-01-05T00:00:00Z")
    with pytest.raises(StoreHeld) as refused:
        Store(started).open("the test", LONG_AGO)
    assert refused.value.message == (
        "the database is in use by process 7 on pod provider-0, started 2026-01-05T00:00:00Z; "
        f"stop that process first (lock file {started}.lock)"
    )


def test_a_stopped_process_keeps_its_lock(started: Path, hold: Callable[[Path, str], Holder]) -> None:
    """F54, F58: frozen is not dead, it would go on in the middle of a command; it is named and not waited for."""
    first = hold(started, "a frozen pod")
    os.kill(first.pid, signal.SIGSTOP)
    try:
        with pytest.raises(StoreHeld, match="in use by a frozen pod"):
            Store(started).open("the test", LONG_AGO)
    finally:
        os.kill(first.pid, signal.SIGCONT)


def test_a_killed_process_leaves_no_lock_behind(started: Path, hold: Callable[[Path, str], Holder]) -> None:
    """F54: no stale lock to remove by hand, whatever the file still says."""
    first = hold(started, "a doomed pod")
    first.kill()
    first.wait()
    assert note_of(started) == ["a doomed pod", "in use"]
    with opened(started, holder="its successor") as ledger:
        assert ledger.head.position == 6
        assert note_of(started) == ["its successor", "in use"]


def test_a_process_that_ends_in_peace_says_so(started: Path, hold: Callable[[Path, str], Holder]) -> None:
    """The next start then need not look at every page."""
    first = hold(started, "a tidy pod")
    first.communicate("\n", timeout=20)
    assert first.returncode == 0
    assert note_of(started) == ["a tidy pod", "closed cleanly"]


def test_the_holders_words_stay_on_one_line(tmp_path: Path) -> None:
    """The second line is the note for the next writer."""
    lock = WriterLock(tmp_path / "provider.db")
    lock.acquire("two\nclosed cleanly")
    lock.note(Ending.RUNNING)
    assert note_of(tmp_path / "provider.db") == ["two closed cleanly", "in use"]
    lock.release()
    lock.acquire("next")
    assert lock.last_ending is Ending.RUNNING
    lock.release()


@pytest.mark.parametrize("text", ["", "an old version wrote only this", "x\nwhatever this is\n", "\x00\xff"])
def test_a_lock_file_without_a_note_counts_as_a_crash(started: Path, text: str) -> None:
    """Then every page is looked at, which is only slow; the other mistake would serve a damaged file."""
    started.with_name(started.name + ".lock").write_text(text)
    lock = WriterLock(started)
    lock.acquire("the test")
    assert lock.last_ending is None
    lock.release()
    with opened(started) as ledger:
        assert ledger.head.position == 6


def test_a_lock_file_that_cannot_be_written_is_no_lock(tmp_path: Path) -> None:
    """A disk without a byte left: said in our words, and the lock is free again."""
    lock = WriterLock(tmp_path / "provider.db")
    with no_byte_written(), pytest.raises(StoreUnavailable, match=r"cannot write .*provider\.db\.lock: File too large"):
        lock.acquire("the test")
    lock.acquire("the test")
    lock.release()


def test_readers_need_no_lock(started: Path) -> None:
    """People look while the server runs."""
    with opened(started), reading(started) as connection:
        assert connection.exec_driver_sql("SELECT count(*) FROM events").scalar() == 6


def test_a_writer_whose_lock_file_was_deleted_stops_writing(started: Path) -> None:
    """Another process could take a new file's lock, and then there would be two writers."""
    with opened(started) as ledger:
        started.with_name(started.name + ".lock").unlink()
        with pytest.raises(StoreHeld, match="lock was moved or deleted: another process may hold the database"):
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        assert ledger.books.position == 6


@pytest.mark.parametrize("elsewhere", [True, False], ids=["moved", "deleted"])
def test_a_writer_whose_database_was_taken_away_stops(started: Path, tmp_path: Path, *, elsewhere: bool) -> None:
    """SQLite would go on in the file that nobody will ever find again, and every intent with it."""
    with opened(started) as ledger:
        if elsewhere:
            started.rename(tmp_path / "moved.db")
        else:
            started.unlink()
        with pytest.raises(StoreUnavailable, match=r"the database cannot be used|was replaced while in use"):
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        assert ledger.books.position == 6
        assert ledger.trouble is not None


def test_a_failed_start_leaves_the_crash_on_record(started: Path) -> None:
    """Else the second start would take the damage of the first for a clean end."""
    started.with_name(started.name + ".lock").write_text("a doomed pod\nin use\n")
    with started.open("r+b") as file:
        file.seek(100)
        file.write(b"\xff" * 200)
    for _ in range(2):
        with pytest.raises(StoreCorrupt):
            Store(started).open("the test", LONG_AGO)
        assert note_of(started) == ["the test", "in use"]


@pytest.mark.parametrize("note", ["in use\nsome-other-boot", "closed cleanly\nsome-other-boot", "in use", ""])
def test_a_rebuild_leaves_the_last_end_on_record(started: Path, note: str) -> None:
    """It is not the start that looks at every page, so that start is still to come."""
    started.with_name(started.name + ".lock").write_text(f"a doomed pod\n{note}\n")
    rebuild(started, "the rebuild")
    lock = WriterLock(started)
    lock.acquire("the test")
    lock.release()
    assert lock.last_ending == (note.split("\n", maxsplit=1)[0] or None)
    assert lock.last_ending is Ending.CLEAN or not lock.machine_was_up


def test_a_closed_store_can_be_opened_again(started: Path) -> None:
    """And closing twice is harmless."""
    store = Store(started)
    for _ in range(2):
        assert store.open("the test", LONG_AGO).position == 6
        store.close()
        store.close()
    with pytest.raises(StoreUnavailable, match="the database is closed"):
        store.events_after(0)
