"""The nights in which the clocks are changed."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.nodegroup.commands import DecreaseTargetSize
from app.ledger.backups import BackupPlan
from app.store.backup import BackupReason, backups

from .harness import CA, one_more, opened, rows

HOUR, DAY = timedelta(hours=1), timedelta(days=1)


@pytest.fixture
def helsinki(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The process believes to be there."""
    monkeypatch.setenv("TZ", "Europe/Helsinki")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("helsinki")
@pytest.mark.parametrize(
    "begin",
    [datetime(2026, 3, 28, 0, 30, tzinfo=UTC), datetime(2026, 10, 24, 0, 30, tzinfo=UTC)],
    ids=["an hour is missing", "an hour comes twice"],
)
def test_a_daily_copy_is_made_once_a_day_and_the_log_is_in_utc(started: Path, tmp_path: Path, begin: datetime) -> None:
    """F61: 02:30 in Helsinki comes not at all on 29 March and twice on 25 October; a day has 24 hours all the same."""
    clock = FakeClock(begin)
    plan = BackupPlan(database=started, directory=tmp_path / "copies", every=DAY, keep=10, clock=clock)
    with opened(started, clock) as ledger:
        for hour in range(3 * 24):
            ledger.execute(one_more(f"gpu-{hour:08d}"), CA)
            ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
            if plan.is_due(ledger.head.position):
                plan.take(BackupReason.SCHEDULED)
            clock.advance(HOUR)
    made = [copy.manifest.made_at for copy in backups(plan.directory, started)]
    assert sorted(made) == [begin, begin + DAY, begin + 2 * DAY]
    hours = [row[0] for row in rows(started, "SELECT DISTINCT recorded_at FROM events WHERE position > 6")]
    assert [datetime.fromisoformat(hour) for hour in hours] == [begin + hour * HOUR for hour in range(3 * 24)]
    assert {hour[19:].lstrip(".0123456789") for hour in hours} == {"Z"}
