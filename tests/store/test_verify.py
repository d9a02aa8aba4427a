"""`verify`: one sentence for everything that is not as we wrote it, nothing for a sound database, and it only reads."""

import threading
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.errors import StoreCorrupt
from app.store import schema
from app.store.chain import link
from app.store.projections import FOLD_VERSION
from app.store.reading import reading
from app.store.rebuild import rebuild
from app.store.verify import verify

from .harness import CA, one_more, opened, plain, rows
from .story import Story


@pytest.fixture
def grown(started: Path) -> Path:
    """A closed database with ten events and two instances."""
    with opened(started) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    return started


def findings(path: Path, *tampering: str) -> list[str]:
    """What `verify` says after somebody ran these statements."""
    with plain(path) as connection:
        for statement in tampering:
            connection.execute(statement)
    with reading(path) as connection:
        return list(verify(connection))


def test_a_sound_database_has_no_findings(grown: Path) -> None:
    """The command ends with success."""
    assert findings(grown) == []


def test_verifying_changes_nothing(grown: Path) -> None:
    """It may be run on evidence."""
    before = grown.read_bytes()
    findings(grown)
    assert grown.read_bytes() == before


@pytest.mark.parametrize(
    ("tampering", "finding"),
    [
        (
            "UPDATE instances SET state = 'running', node_group = 'x' WHERE name = 'gpu-aaaaaaaa'",
            "instances 'gpu-aaaaaaaa': node_group is 'x', by the log 'gpu', state is 'running', by the log 'requested'",
        ),
        ("DELETE FROM instances WHERE name = 'gpu-bbbbbbbb'", "instances 'gpu-bbbbbbbb': the row is missing"),
        (
            "INSERT INTO orphans VALUES ('i-1', 'h', 'i', 'g', NULL, 'x', 'now', 1)",
            "orphans 'i-1': the log knows nothing of this row",
        ),
        ("UPDATE node_groups SET spec = '{}'", "node_groups 'gpu': spec is '{}', by the log '{\"autoscaling_options\""),
        ("UPDATE cloud SET reachable = NULL", "cloud 'only': reachable is None, by the log 1"),
        ("UPDATE installation SET epoch = 2", "installation 'only': epoch is 2, by the log 1"),
        (
            "UPDATE projections SET position = 9",
            "the projections stand for position 9 by fold {fold}, the log ends at position 10 and the fold is {fold}",
        ),
        ("DELETE FROM projections", "the projections were never written, the log ends at position 10"),
        ("DROP TRIGGER events_append_only_delete", "the trigger events_append_only_delete is missing"),
        ("DROP INDEX ix_events_correlation_id", "the index ix_events_correlation_id is missing"),
        ("DROP VIEW v_events", "the view v_events is missing"),
        (
            "UPDATE alembic_version SET version_num = '9'",
            f"the schema has revision 9, this version verifies {schema.SCHEMA_REVISION}",
        ),
    ],
)
def test_each_kind_of_tampering_is_one_finding(grown: Path, tampering: str, finding: str) -> None:
    """In words that name the place, what stands there, and what should."""
    (found,) = findings(grown, tampering)
    assert found.startswith(finding.replace("{fold}", str(FOLD_VERSION)))


def test_a_trigger_that_does_nothing_is_no_trigger(grown: Path) -> None:
    """Its name alone proves nothing; start looks for names, this looks at what they do."""
    assert findings(
        grown,
        "DROP TRIGGER events_append_only_update",
        "CREATE TRIGGER events_append_only_update BEFORE UPDATE ON events BEGIN SELECT 1; END",
    ) == ["the trigger events_append_only_update was altered"]


def test_somebodys_own_tables_are_none_of_its_business(grown: Path) -> None:
    """People keep notes and indexes of their own beside our tables."""
    assert findings(grown, "CREATE TABLE notes (text)", "CREATE VIEW v_mine AS SELECT * FROM events") == []


def test_many_differences_are_counted_and_not_all_told(started: Path) -> None:
    """Twenty lines show the pattern; ten thousand hide it."""
    found = findings(
        started,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50) "
        "INSERT INTO orphans SELECT 'i-' || i, 'h', 'i', 'g', NULL, 'x', 'now', 1 FROM n",
    )
    assert len(found) == 21
    assert found[-1] == "orphans: 30 more rows differ from the log"


def test_a_damaged_page_is_told_first_and_alone(grown: Path) -> None:
    """What is read from a damaged file proves nothing either way."""
    content = bytearray(grown.read_bytes())
    content[6 * 4096 : 6 * 4096 + 8] = b"\xa5" * 8
    grown.write_bytes(content)
    try:
        found = findings(grown)
    except StoreCorrupt as error:  # SQLite may refuse to read at all
        found = [f"the file is damaged: {error.message}"]
    assert found
    assert all(words.startswith("the file is damaged: ") for words in found)


def test_a_hole_in_a_stream_is_found_even_if_the_chain_holds(grown: Path) -> None:
    """A bug of ours would compute good hashes over bad versions; the insert trigger is the other net."""
    ((sql,),) = rows(grown, "SELECT sql FROM sqlite_master WHERE name = 'events_append_only_insert'")
    ((last,),) = rows(grown, "SELECT hash FROM events WHERE position = 10")
    parts = ("11", "cloud", "9", "cloud.reachable", "1", "2025-01-01T00:00:00.000000Z", "a", "c", '{"backend":"x"}')
    with plain(grown) as connection:
        connection.execute("DROP TRIGGER events_append_only_insert")
        connection.execute("INSERT INTO events VALUES (?,?,?,?,?,?,?,?,?,?)", (*parts, link(last, parts)))
        connection.execute(sql)
    rebuild(grown, "the test")
    assert findings(grown) == [
        "stream cloud has 3 events and reaches version 9",
        "position 11 was recorded before its predecessor",
    ]


def test_a_live_database_verifies_while_it_is_written(tmp_path: Path) -> None:
    """It sees one moment of log and projections together, wherever the writer is."""
    path, clock = tmp_path / "provider.db", FakeClock()
    with opened(path, clock) as ledger:
        story = Story(ledger, clock, seed=8)
        story.begin()
        done = threading.Event()

        def write() -> None:
            while not done.is_set():
                story.walk(1)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            seen = set()
            for _ in range(5):
                with reading(path) as connection:
                    assert list(verify(connection)) == []
                seen.add(story.acknowledged)
        finally:
            done.set()
            writer.join()
    assert len(seen) > 1
