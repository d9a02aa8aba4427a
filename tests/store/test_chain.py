"""The hash chain: what anybody changes in the stored log shows, and where."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from sqlite3 import Connection
from typing import Any

import pytest

from app.errors import StoreCorrupt
from app.store.chain import GENESIS, link
from app.store.reading import reading
from app.store.store import Store
from app.store.verify import verify

from .harness import LONG_AGO, plain, rows

COLUMNS = ("position", "stream", "version", "type", "schema", "recorded_at", "actor", "correlation_id", "data", "hash")
TAMPERED = {
    "stream": "'elsewhere'",
    "version": "9",
    "type": "'cloud.unreachable'",
    "schema": "2",
    "recorded_at": "'2025-01-01T00:00:00.000000Z'",
    "actor": "'nobody'",
    "correlation_id": "''",
    "data": "data || ' '",
}


def tampered(path: Path, tamper: Callable[[Connection], object]) -> list[str]:
    """What `verify` says of the log after somebody with the file has put the triggers aside for a moment."""
    with plain(path) as connection:
        triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
        for name, _ in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        tamper(connection)
        for _, sql in triggers:
            connection.execute(sql)
    with reading(path) as connection:
        return [finding for finding in verify(connection) if finding.startswith("position")]


def recomputed(log: Sequence[tuple[Any, ...]]) -> list[str]:
    """The chain as its documentation tells it, with nothing of the program's."""
    hashes = ["0" * 64]
    for row in log:
        framed = b"v1"
        for part in (hashes[-1], *row[:-1]):
            raw = str(part).encode("utf-8")
            framed += len(raw).to_bytes(8, "big") + raw
        hashes.append(hashlib.sha256(framed).hexdigest())
    return hashes[1:]


def test_the_chain_is_what_its_documentation_says(started: Path) -> None:
    """Somebody else can check a log without this program."""
    log = rows(started, f"SELECT {', '.join(COLUMNS)} FROM events ORDER BY position")  # noqa: S608 - constants
    assert [row[-1] for row in log] == recomputed(log)
    assert len(log) == 6


def test_the_hash_of_an_event_never_changes() -> None:
    """A log written by one version must verify in every later one; this hash was computed once and for all."""
    parts = ("1", "cloud", "1", "cloud.reachable", "1", "2026-01-05T00:00:00.000000Z", "a", "c", "{}")
    assert link(GENESIS, parts) == "6694a62523900b45fc1f998527a8fdae8e648a6735317758582b715a6cec7dbb"


def test_an_untouched_log_verifies(started: Path) -> None:
    """The findings below are the tampering's, not the test's."""
    with reading(started) as connection:
        assert list(verify(connection)) == []


@pytest.mark.parametrize("position", [1, 4, 6])
@pytest.mark.parametrize("column", TAMPERED)
def test_a_changed_column_is_found_where_it_was_changed(started: Path, column: str, position: int) -> None:
    """Also in the first and in the last event, and a single blank behind the payload."""
    change = f"UPDATE events SET {column} = {TAMPERED[column]} WHERE position = {position}"  # noqa: S608 - constants
    found = tampered(started, lambda connection: connection.execute(change))
    assert found[0] == f"position {position} was changed after it was written, or its predecessor was"
    assert not any("changed" in words for words in found[1:])


def test_a_changed_hash_is_found_at_both_of_its_ends(started: Path) -> None:
    """The event no longer has its own hash, and the next no longer follows it."""
    change = "UPDATE events SET hash = printf('%064d', 1) WHERE position = 3"
    assert tampered(started, lambda connection: connection.execute(change)) == [
        "position 3 was changed after it was written, or its predecessor was",
        "position 4 was changed after it was written, or its predecessor was",
    ]


def test_a_changed_position_leaves_a_hole(started: Path) -> None:
    """The number is part of the hash, and nothing stands where the event stood."""
    change = "UPDATE events SET position = 8 WHERE position = 6"
    assert tampered(started, lambda connection: connection.execute(change)) == ["positions 6 to 7 are missing"]


@pytest.mark.parametrize(
    ("which", "words"),
    [
        ("position = 1", "position 1 is missing"),
        ("position = 3", "position 3 is missing"),
        ("position IN (3, 4)", "positions 3 to 4 are missing"),
        ("position < 6", "positions 1 to 5 are missing"),
    ],
)
def test_a_deleted_event_is_missed(started: Path, which: str, words: str) -> None:
    """Wherever it stood, the first one too."""
    delete = f"DELETE FROM events WHERE {which}"  # noqa: S608 - constants
    assert tampered(started, lambda connection: connection.execute(delete)) == [words]


def test_a_deleted_event_whose_gap_was_closed_is_found(started: Path) -> None:
    """Renumbering what follows does not help: the hashes vouch for the numbers and for what came before."""

    def close_the_gap(connection: Connection) -> None:
        connection.execute("DELETE FROM events WHERE position = 5")
        connection.execute("UPDATE events SET position = 5 WHERE position = 6")

    assert tampered(started, close_the_gap) == ["position 5 was changed after it was written, or its predecessor was"]


def test_exchanged_events_are_found_from_the_first_one_on(started: Path) -> None:
    """Order is part of the story."""

    def exchange(connection: Connection) -> None:
        connection.execute("UPDATE events SET position = 100 WHERE position = 2")
        connection.execute("UPDATE events SET position = 2 WHERE position = 3")
        connection.execute("UPDATE events SET position = 3 WHERE position = 100")

    assert tampered(started, exchange) == [
        f"position {position} was changed after it was written, or its predecessor was" for position in (2, 3, 4)
    ]


def test_an_inserted_event_is_found(started: Path) -> None:
    """Making room in the middle changes the numbers of all that follows."""

    def insert(connection: Connection) -> None:
        for position in (6, 5):
            connection.execute("UPDATE events SET position = ? WHERE position = ?", (position + 1, position))
        connection.execute(
            "INSERT INTO events SELECT 5, 'x', 1, type, 1, recorded_at, '', '', '{}', hash FROM events LIMIT 1"
        )

    assert tampered(started, insert)[0] == "position 5 was changed after it was written, or its predecessor was"


def test_start_refuses_a_log_whose_end_was_tampered_with(started: Path) -> None:
    """The newest events are held against their hashes at every start; the whole log is `verify`'s."""
    tampered(started, lambda connection: connection.execute("UPDATE events SET actor = 'nobody' WHERE position = 5"))
    with pytest.raises(StoreCorrupt, match=r"not what was written: position 5 was changed .*restore a backup"):
        Store(started).open("the test", LONG_AGO)
