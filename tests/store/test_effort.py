"""What a question costs grows with the log, and not with its square: a log of years must not make an operator wait."""

from pathlib import Path

import pytest

from app.store.schema import instances
from app.store.views import VIEWS
from tests.audit.scenario import tell

from .harness import altered, plain

FEW, MANY = 150, 300
_STEPS = 1000
_DO_NOT_GROW = frozenset({"v_costs_daily", "v_open_instances"})
"""A day stays a day, and at the end of the story everything has ended."""

# The story once more, so many times, each time with names, ids and places in the streams of its own.
_EVENTS = """
    WITH RECURSIVE copies(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM copies WHERE number < {times})
    INSERT INTO events (stream, version, type, schema, recorded_at, actor, correlation_id, data, hash)
    SELECT CASE WHEN stream LIKE 'instance-%' THEN stream || number ELSE stream END,
      CASE WHEN stream LIKE 'instance-%' THEN version ELSE version + number * 1000 END,
      type, schema, recorded_at, actor, correlation_id || number,
      CASE WHEN json_extract(data, '$.instance') IS NULL THEN data
        ELSE json_set(data, '$.instance', json_extract(data, '$.instance') || number,
          '$.instance_id', json_extract(data, '$.instance_id') || number) END,
      hash
    FROM copies, (SELECT * FROM events ORDER BY position)
"""
_INSTANCES = """
    WITH RECURSIVE copies(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM copies WHERE number < {times})
    INSERT INTO instances ({columns}) SELECT {values} FROM copies, (SELECT * FROM instances)
"""


def multiplied(path: Path, times: int) -> None:
    """Two days of one installation, so many times over, in a database of its own."""
    tell(path)
    columns = instances.columns.keys()
    values = (f"{name} || number" if name in {"name", "instance_id"} else name for name in columns)
    altered(path, _EVENTS.format(times=times))
    altered(path, _INSTANCES.format(times=times, columns=", ".join(columns), values=", ".join(values)))


def effort(path: Path, view: str) -> tuple[int, int]:
    """Rows of a view, and thousands of steps that SQLite's machine took for them."""
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    with plain(path) as connection:
        connection.set_progress_handler(count, _STEPS)
        return len(connection.execute(f"SELECT * FROM {view}").fetchall()), steps  # noqa: S608 - our own name


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story many times more."""
    path = tmp_path_factory.mktemp("small") / "provider.db"
    multiplied(path, FEW)
    return path


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The story twice as many times more."""
    path = tmp_path_factory.mktemp("large") / "provider.db"
    multiplied(path, MANY)
    return path


@pytest.mark.parametrize("view", VIEWS)
def test_twice_the_log_is_twice_the_effort(view: str, small: Path, large: Path) -> None:
    """Steps of SQLite's machine are the same on every computer. Something quadratic would take four times as many."""
    (few, little), (many, much) = effort(small, view), effort(large, view)
    assert many > few * 1.9 or view in _DO_NOT_GROW
    assert much <= little * 2.15 + 20
