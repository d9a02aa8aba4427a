"""The projections: whatever happens, they are what a fold of the whole log would make them."""

import shutil
from dataclasses import replace
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import pytest

from app.clock import FakeClock
from app.domain.books import Books, Draft, evolve
from app.domain.registry import EVENT_TYPES
from app.errors import StoreCorrupt, StoreHeld, StoreUnavailable
from app.store import log, schema
from app.store.projections import FOLD_VERSION
from app.store.reading import reading
from app.store.rebuild import rebuild
from app.store.store import Store
from app.store.verify import verify

from .harness import CA, copied, one_more, opened, plain, projections, reopened, rows
from .story import Story

STEPS = 400
FOR_EVER = datetime.max.replace(tzinfo=UTC)


def tell(path: Path, seed: int, *, forgetful: bool = False) -> tuple[Story, Books]:
    """A story on a new database, and the books at its end."""
    clock = FakeClock()
    with opened(path, clock) as ledger:
        story = Story(ledger, clock, seed)
        story.begin()
        for _ in range(8):
            story.walk(STEPS // 8)
            if forgetful:
                story.forget()
        return story, ledger.books


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Books]:
    """A closed database after a long story, and the books that its writer had at the end."""
    path = tmp_path_factory.mktemp("told") / "provider.db"
    _, books = tell(path, seed=1)
    return path, books


@pytest.fixture
def database(told: tuple[Path, Books], tmp_path: Path) -> Path:
    """A copy of the told one, to spoil."""
    return copied(told[0], tmp_path)


def test_books_in_the_making_come_to_what_event_after_event_comes_to(told: tuple[Path, Books]) -> None:
    """Whole logs are folded in place; what comes out has the same indexes and the same order of groups."""
    with reading(told[0]) as connection:
        events = tuple(log.read(connection, 0))
    draft = Draft()
    for recorded in events:
        draft.take(recorded)
    assert draft.books() == reduce(evolve, events, Books())


def test_the_story_has_every_event_there_is(tmp_path: Path) -> None:
    """What the tests below prove, they prove for every type. One seed has nearly all of them."""
    seen: set[str] = set()
    for seed in range(1, 9):
        story, _ = tell(tmp_path / f"{seed}.db", seed)
        seen |= story.seen
        if seen == set(EVENT_TYPES):
            break
    assert seen == set(EVENT_TYPES)


@pytest.mark.parametrize("seed", [11, 12])
def test_projections_written_live_are_those_of_a_rebuild_byte_for_byte(tmp_path: Path, seed: int) -> None:
    """One fold writes both, and the rows of every table prove it."""
    path = tmp_path / "provider.db"
    _, books = tell(path, seed)
    live = projections(path)
    told: list[tuple[int, int]] = []
    assert rebuild(path, "the test", lambda done, last: told.append((done, last))) == books.position
    assert told
    assert told == [(done, books.position) for done in range(100, books.position + 1, 100)]
    assert projections(path) == live
    assert min(len(live[name]) for name in ("node_groups", "instances", "instance_types", "orphans", "cloud")) > 0


@pytest.mark.parametrize("seed", [21, 22])
def test_books_loaded_at_start_are_those_the_last_process_had(tmp_path: Path, seed: int) -> None:
    """Every field of every aggregate survives the way through its columns, and the indexes are the same."""
    path = tmp_path / "provider.db"
    _, books = tell(path, seed)
    loaded = reopened(path)
    assert replace(loaded, names_by_id=books.names_by_id) == books
    by_id = {instance.instance_id: name for name, instance in books.instances.items() if instance.instance_id}
    assert dict(loaded.names_by_id.items()) == by_id


@pytest.mark.parametrize("seed", [31, 32])
def test_instances_that_fell_out_of_memory_go_on_where_they_ended(tmp_path: Path, seed: int) -> None:
    """A machine that shows up again days after its end must not begin a second story under the same name."""
    path = tmp_path / "provider.db"
    story, books = tell(path, seed, forgetful=True)
    assert story.acknowledged == books.position
    with reading(path) as connection:
        assert list(verify(connection)) == []


def test_only_what_ended_recently_is_loaded(database: Path) -> None:
    """A start costs what is alive, not what ever was."""
    everything = reopened(database)
    ends = sorted(instance.ended_at for instance in everything.instances.values() if instance.ended_at)
    middle = ends[len(ends) // 2]
    store = Store(database)
    books = store.open("the test", middle)
    store.close()
    wanted = {name for name, instance in everything.instances.items() if (instance.ended_at or FOR_EVER) > middle}
    assert {name for name, _ in books.instances.items()} == wanted
    assert 5 < len(wanted) < len(everything.instances) - 5


def test_projections_that_lag_behind_the_log_catch_up(tmp_path: Path) -> None:
    """Also for an instance that had ended, was not loaded any more, and has come back in the part that is missing."""
    path, clock = tmp_path / "provider.db", FakeClock()
    with opened(path, clock) as ledger:
        story = Story(ledger, clock, seed=5)
        story.begin()
        story.walk(150)
        story.forget()
    (tmp_path / "earlier").mkdir()
    earlier = copied(path, tmp_path / "earlier")
    with opened(path, clock) as ledger:
        story = Story(ledger, clock, seed=6)
        story.walk(150)
        story.forget()
    complete, books = projections(path), reopened(path)
    with plain(path) as connection:
        connection.execute("ATTACH ? AS earlier", (str(earlier),))
        for table in (*schema.PROJECTED, schema.projections):
            connection.execute(f"DELETE FROM main.{table.name}")  # noqa: S608 - our own
            connection.execute(f"INSERT INTO main.{table.name} SELECT * FROM earlier.{table.name}")  # noqa: S608 - our own
    assert projections(path) != complete
    store = Store(path)
    caught_up = store.open("the test", clock.now())
    store.close()
    assert projections(path) == complete
    assert caught_up.position == books.position
    assert [caught_up.members(name) for name in books.group_order] == [
        books.members(name) for name in books.group_order
    ]


@pytest.mark.parametrize(
    "mark",
    ["UPDATE projections SET version = 0", "UPDATE projections SET position = 1000000", "DELETE FROM projections"],
    ids=["another version of the fold", "a position the log does not have", "none"],
)
def test_projections_that_the_log_does_not_vouch_for_are_rebuilt_at_start(database: Path, mark: str) -> None:
    """A new version may fold differently; a restored log may be shorter. Whatever stood there is forgotten."""
    good, books = projections(database), reopened(database)
    with plain(database) as connection:
        connection.execute("UPDATE instances SET state = 'running', node_group = 'spoiled'")
        connection.execute("DELETE FROM node_groups")
        connection.execute("INSERT INTO orphans VALUES ('nobody', 'h', 'i', 'g', NULL, 'made up', 'now', 1)")
        connection.execute(mark)
    assert reopened(database) == books
    assert projections(database) == good


def test_a_row_that_cannot_be_read_is_refused_with_the_way_out(database: Path) -> None:
    """The log is sound, so nothing is lost: the operator is told to rebuild, and that mends it."""
    good = projections(database)
    with plain(database) as connection:
        connection.execute(
            "UPDATE instances SET state = 'runnimg' WHERE ordinal = (SELECT max(ordinal) FROM instances)"
        )
    with pytest.raises(StoreCorrupt, match=r"a projection cannot be read: .*runnimg.*: rebuild them from the log"):
        reopened(database)
    rebuild(database, "the test")
    assert projections(database) == good


def test_rebuild_keeps_out_while_a_server_writes(started: Path) -> None:
    """Two writers on one database is what the lock file is for."""
    with opened(started, holder="pod provider-0"), pytest.raises(StoreHeld, match="in use by pod provider-0"):
        rebuild(started, "the test")


def test_rebuild_makes_no_database(tmp_path: Path) -> None:
    """A mistyped path is a mistake and not a new installation."""
    with pytest.raises(StoreUnavailable, match="there is no database at"):
        rebuild(tmp_path / "mistyped.db", "the test")
    assert list(tmp_path.iterdir()) == []


def test_every_row_names_the_event_that_last_touched_it(started: Path) -> None:
    """So that a row can be traced to its cause without a diff."""
    with opened(started) as ledger:
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert rows(started, "SELECT name, ordinal, version, position FROM instances ORDER BY name") == [
        ("gpu-aaaaaaaa", 8, 1, 8),
        ("gpu-bbbbbbbb", 10, 1, 10),
    ]
    assert rows(started, "SELECT name, ordinal, version, position FROM node_groups") == [("gpu", 4, 3, 9)]
    assert rows(started, "SELECT version, position FROM cloud") == [(2, 6)]
    assert rows(started, "SELECT * FROM projections") == [("books", FOLD_VERSION, 10)]


def test_times_are_text_that_sorts_like_time(database: Path) -> None:
    """Also on the full second: with and without a fraction, text would sort wrongly."""
    columns = [column.name for column in schema.instances.columns if column.name.endswith(("_at", "_since"))]
    times = {value for row in rows(database, f"SELECT {', '.join(columns)} FROM instances") for value in row if value}  # noqa: S608 - our own
    assert len(times) > 100
    assert {len(value) for value in times} == {len("2026-01-05T00:00:00.000000Z")}


def test_after_a_clean_end_the_file_alone_is_the_database(told: tuple[Path, Books], tmp_path: Path) -> None:
    """Its write-ahead log was emptied, so a person may copy just the file."""
    alone = tmp_path / "alone.db"
    shutil.copy(told[0], alone)
    assert reopened(alone).instances == told[1].instances
