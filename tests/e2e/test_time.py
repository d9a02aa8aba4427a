"""A container's own time."""

import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from app.clock import SystemClock
from app.store.reading import reading
from tests.e2e.harness import GROUP, Provider, simulator, until


def test_a_container_with_a_zone_and_no_zone_data_works_and_logs_in_utc(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F62: neither the system's zone data nor the package that stands in for it is there; TZ names a zone."""
    (tmp_path / "tzdata").mkdir()
    (tmp_path / "tzdata" / "__init__.py").touch()
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    monkeypatch.setenv("PYTHONTZPATH", "")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    began = SystemClock().now()
    with simulator() as sim, Provider(tmp_path, sim, {"gpu-workers": GROUP}) as provider:
        provider.client.increase_size("gpu-workers", 1)
        until(lambda: provider.states("gpu-workers") == [1], what="one running")
        provider.stop()
        lines = [json.loads(line) for line in provider.log.read_text().splitlines() if line.startswith("{")]
    with reading(provider.database) as connection:
        recorded = [row[0] for row in connection.exec_driver_sql("SELECT recorded_at FROM events")]
    times = [datetime.fromisoformat(each) for each in (*recorded, *(line["timestamp"] for line in lines))]
    assert len(lines) > 3
    # In Kiritimati it is fourteen hours later.
    assert all(began - timedelta(seconds=1) <= each < began + timedelta(hours=1) for each in times)
