"""What a start costs: the living, the newest, and never the whole history."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, event

from app.clock import FakeClock
from app.errors import StoreCorrupt
from app.store.store import Store

from .harness import LONG_AGO, altered, opened, plain
from .story import Story


@contextmanager
def overheard() -> Iterator[list[tuple[str, Any]]]:
    """Every statement that goes through SQLAlchemy meanwhile, with its values."""
    statements: list[tuple[str, Any]] = []

    def listen(_connection: Any, _cursor: Any, statement: str, values: Any, *_: Any) -> None:
        statements.append((statement, values))

    event.listen(Engine, "before_cursor_execute", listen)
    try:
        yield statements
    finally:
        event.remove(Engine, "before_cursor_execute", listen)


def test_no_statement_of_a_start_walks_through_a_table_that_grows(started: Path) -> None:
    """By SQLite's own plans: events and instances are reached through an index or not beyond a limit."""
    with overheard() as statements, opened(started):
        pass
    selects = [(sql, values) for sql, values in statements if sql.lstrip().startswith("SELECT")]
    assert any("FROM events" in sql for sql, _ in selects)
    assert any("FROM instances" in sql for sql, _ in selects)
    with plain(started) as connection:
        for sql, values in selects:
            plan = " ".join(row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
            assert "SCAN instances" not in plan, sql
            assert "SCAN events" not in plan or "LIMIT" in sql, sql


def test_a_start_writes_nothing_when_nothing_has_changed(started: Path) -> None:
    """A disk that is full does not keep a process from starting and answering."""
    with overheard() as statements, opened(started):
        pass
    assert [sql for sql, _ in statements if sql.split()[0] not in {"SELECT", "PRAGMA", "BEGIN"}] == []


def test_a_start_checks_a_fixed_number_of_the_newest_events(tmp_path: Path) -> None:
    """With more events than that the check begins in the middle, behind a hash that it takes as it is."""
    path, clock = tmp_path / "provider.db", FakeClock()
    with opened(path, clock) as ledger:
        story = Story(ledger, clock, seed=4)
        story.begin()
        while ledger.books.position < 300:
            story.walk(10)
    altered(path, "UPDATE events SET actor = 'nobody' WHERE position = 50")
    with opened(path) as ledger:
        newest = ledger.head.position
    altered(path, f"UPDATE events SET actor = 'nobody' WHERE position = {newest - 99}")  # noqa: S608 - a number
    with pytest.raises(StoreCorrupt, match=f"position {newest - 99} was changed"):
        Store(path).open("the test", LONG_AGO)
