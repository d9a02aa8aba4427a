"""Copies of a database that was being written, with all, some or nothing of its write-ahead log."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from app.store.reading import reading
from app.store.verify import verify

from .harness import CA, copied, one_more, opened


@pytest.fixture
def live(started: Path, tmp_path: Path) -> Iterator[Path]:
    """A copy of the files of a database that is being written: three commands are in its write-ahead log alone."""
    directory = tmp_path / "copy"
    directory.mkdir()
    with opened(started) as ledger:
        for number in range(3):
            ledger.execute(one_more(f"gpu-{number:08d}"), CA)
        yield copied(started, directory)


def test_a_copy_without_its_write_ahead_log_says_what_it_may_lack(live: Path) -> None:
    """F57: what was not yet in the file itself is lost; the rest is whole, and the loss is said aloud."""
    live.with_name(live.name + "-wal").unlink()
    with capture_logs() as said, opened(live) as ledger:
        assert ledger.head.position == 6
    assert [(line["log_level"], line["event"]) for line in said] == [
        ("warning", "the database was not closed and its write-ahead log is gone: what was written last may be lost"),
        ("warning", "the database is older than it was"),
    ]
    with reading(live) as connection:
        assert list(verify(connection)) == []


def test_a_copy_with_its_write_ahead_log_is_whole(live: Path) -> None:
    """As after a kill."""
    with capture_logs() as said, opened(live) as ledger:
        assert ledger.head.position == 12
    assert said == []


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.95])
def test_any_beginning_of_a_write_ahead_log_is_whole(live: Path, share: float) -> None:
    """F57: a power failure cuts it anywhere; commands are there or not, never in half."""
    wal = live.with_name(live.name + "-wal")
    wal.write_bytes(wal.read_bytes()[: int(wal.stat().st_size * share)])
    with opened(live) as ledger:
        assert ledger.head.position in {6, 8, 10, 12}
        assert ledger.books.target_size("gpu") == (ledger.head.position - 6) / 2
    with reading(live) as connection:
        assert list(verify(connection)) == []
