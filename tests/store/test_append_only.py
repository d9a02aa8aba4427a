"""The log only ever grows at its end, whoever writes and with whatever SQL."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.store import sqlite

from .harness import CA, one_more, opened, plain, rows

COLUMNS = "position, stream, version, type, schema, recorded_at, actor, correlation_id, data, hash"
LOG = f"SELECT {COLUMNS} FROM events ORDER BY position"  # noqa: S608 - put together from constants

# The log under attack has six events; the last of them is position 6, the first of stream `cloud` but one, version 2.
ATTACKS = {
    "update of one column": "UPDATE events SET actor = 'nobody' WHERE position = 3",
    "update that changes nothing": "UPDATE events SET position = position",
    "update of the newest": "UPDATE events SET data = '{}' WHERE position = 6",
    "update or replace": "UPDATE OR REPLACE events SET position = 6 WHERE position = 5",
    "delete of one": "DELETE FROM events WHERE position = 3",
    "delete of the newest": "DELETE FROM events WHERE position = 6",
    "delete of all": "DELETE FROM events",
    "insert of a position that is there": "INSERT INTO events VALUES (6, 'x', 1, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "insert or replace of a position": "INSERT OR REPLACE INTO events VALUES (6,'x',1,'t',1,'r','a','c','{}','h')",
    "insert or replace of a version": "INSERT OR REPLACE INTO events VALUES (7,'cloud',2,'t',1,'r','a','c','{}','h')",
    "replace": "REPLACE INTO events VALUES (3, 'x', 1, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "insert or ignore of a position": "INSERT OR IGNORE INTO events VALUES (6,'x',1,'t',1,'r','a','c','{}','h')",
    "upsert by position": "INSERT INTO events VALUES (6, 'x', 1, 't', 1, 'r', 'a', 'c', '{}', 'h') "
    "ON CONFLICT (position) DO UPDATE SET data = '{}'",
    "upsert by version": "INSERT INTO events VALUES (7, 'cloud', 2, 't', 1, 'r', 'a', 'c', '{}', 'h') "
    "ON CONFLICT (stream, version) DO UPDATE SET data = '{}'",
    "gap": "INSERT INTO events VALUES (8, 'x', 1, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "position before the first": "INSERT INTO events VALUES (0, 'x', 1, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "position left to SQLite": "INSERT INTO events (stream, version, type, schema, recorded_at, actor, correlation_id, "
    "data, hash) VALUES ('x', 1, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "version that skips one": "INSERT INTO events VALUES (7, 'cloud', 4, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "version 2 of a new stream": "INSERT INTO events VALUES (7, 'x', 2, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "version 0": "INSERT INTO events VALUES (7, 'x', 0, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "payload that is no JSON": "INSERT INTO events VALUES (7, 'x', 1, 't', 1, 'r', 'a', 'c', '{', 'h')",
    "number in a text column": "INSERT INTO events VALUES (7, x'00', 1, 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "text in a number column": "INSERT INTO events VALUES (7, 'x', 'one', 't', 1, 'r', 'a', 'c', '{}', 'h')",
    "no hash": "INSERT INTO events VALUES (7, 'x', 1, 't', 1, 'r', 'a', 'c', '{}', NULL)",
}


@pytest.fixture(params=["the writer", "plain sqlite3"])
def connection(request: pytest.FixtureRequest, started: Path) -> Iterator[Any]:
    """The program's own connection with all its pragmas, and one of a person who has never heard of them."""
    if request.param == "plain sqlite3":
        with plain(started) as person:
            yield person
        return
    engine = sqlite.writer_engine(started)
    with closing(engine.raw_connection()) as pooled:
        yield pooled.driver_connection
    engine.dispose()


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_nothing_but_the_next_event_can_be_written(connection: Any, attack: str) -> None:
    """Triggers and constraints stand in the database, so that they hold for people, other programs and our own bugs."""
    before = connection.execute(LOG).fetchall()
    with pytest.raises(Exception, match=r"append-only|constraint failed|cannot store") as refused:
        connection.execute(attack)
    assert type(refused.value).__name__ == "IntegrityError"
    assert connection.execute(LOG).fetchall() == before


def test_the_next_event_can_be_written(connection: Any) -> None:
    """The attacks above fail for what is wrong with them, not because nothing works."""
    connection.execute("INSERT INTO events VALUES (7, 'x', 1, 't', 1, 'r', 'a', 'c', '{}', 'h')")
    assert connection.execute("SELECT max(position) FROM events").fetchone() == (7,)


def test_positions_and_versions_follow_without_a_gap(started: Path) -> None:
    """Positions count the log, versions count each stream."""
    with opened(started) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert rows(started, "SELECT position, stream, version FROM events ORDER BY position") == [
        (1, "service", 1),
        (2, "service", 2),
        (3, "service", 3),
        (4, "nodegroup-gpu", 1),
        (5, "cloud", 1),
        (6, "cloud", 2),
        (7, "nodegroup-gpu", 2),
        (8, "instance-gpu-aaaaaaaa", 1),
    ]
