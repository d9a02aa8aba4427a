from collections.abc import Iterator
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.ledger.ledger import Ledger
from app.store.store import Store
from tests.store.conftest import _fresh, _started, fresh, started

from .flaky import Flaky

__all__ = ["_fresh", "_started", "fresh", "started"]


@pytest.fixture
def clock() -> FakeClock:
    """Stands still unless moved."""
    return FakeClock()


@pytest.fixture
def store(started: Path) -> Flaky:
    """A store of an installation that has started, to fail on demand."""
    return Flaky(store=Store(started, busy_timeout_s=0.05))


@pytest.fixture
def ledger(store: Flaky, clock: FakeClock) -> Iterator[Ledger]:
    """A ledger on it: six events, one empty group `gpu` of three at most."""
    ledger = Ledger(store, clock)
    ledger.open("the test")
    yield ledger
    store.gate.set()
    ledger.close()
