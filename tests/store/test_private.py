"""Who may read what is written."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.store.backup import BackupReason, manifest_of, take
from app.store.restore import restore

from .harness import opened, start

NOW = FakeClock().now()


@pytest.fixture
def generous() -> Iterator[None]:
    """A umask that would let everybody read everything."""
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("generous")
def test_every_file_of_the_store_is_its_owners_alone(tmp_path: Path) -> None:
    """The database, its write-ahead log and index, the lock, copies with their manifests, and what was put back."""
    path, copies = tmp_path / "provider.db", tmp_path / "copies"
    with opened(path) as ledger:
        start(ledger)
        copy = take(path, copies, NOW, BackupReason.BY_HAND)
        made = {file.name: stat.S_IMODE(file.stat().st_mode) for file in (*tmp_path.iterdir(), *copies.iterdir())}
    del made["copies"]
    names = ("provider.db", "provider.db-shm", "provider.db-wal", "provider.db.lock")
    assert made == dict.fromkeys((*names, copy.path.name, manifest_of(copy.path).name), 0o600)
    path.unlink()
    restore(copy.path, path, "the test", NOW, lambda _: None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
