"""From every earlier revision to today's, on a database with a history: nothing is lost, and a copy was made before."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import event

from app.clock import FakeClock
from app.domain.books import Books
from app.errors import StoreCorrupt, StoreUnavailable
from app.ledger.backups import BackupPlan
from app.ledger.ledger import open_ledger
from app.store import schema, sqlite
from app.store.backup import BackupReason
from app.store.migrate import alembic_config
from app.store.reading import reading
from app.store.sqlite import objects
from app.store.store import Store
from app.store.verify import verify

from .harness import LONG_AGO, opened, plain, reopened, rows
from .story import Story

NOON = datetime(2030, 1, 5, 12, tzinfo=UTC)
REVISIONS = sorted(script.revision for script in ScriptDirectory.from_config(alembic_config()).walk_revisions())
EARLIER = [revision for revision in REVISIONS if revision != schema.SCHEMA_REVISION]
EVENTS = "SELECT * FROM events ORDER BY position"


class Killed(BaseException):
    """The process is gone in this very instant."""


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[object, ...]], Books]:
    """The rows of a long log, and the books that it makes."""
    path = tmp_path_factory.mktemp("told") / "provider.db"
    clock = FakeClock()
    with opened(path, clock) as ledger:
        story = Story(ledger, clock, 1)
        story.begin()
        story.walk(120)
    return rows(path, EVENTS), reopened(path)


def database_of(revision: str, log: list[tuple[object, ...]], path: Path) -> Path:
    """A database as a program of that revision left it: the log, and projections by a fold of that time."""
    engine = sqlite.writer_engine(path)
    with engine.begin() as connection:
        command.upgrade(alembic_config(connection), revision)
    engine.dispose()
    with plain(path) as person:
        marks = ", ".join("?" * len(log[0]))
        person.executemany(f"INSERT INTO events VALUES ({marks})", log)  # noqa: S608 - our own
        person.execute("INSERT INTO projections VALUES ('books', 0, ?)", (len(log),))
    path.with_name(f"{path.name}.lock").write_text(f"a pod\nclosed cleanly\n\n{len(log)}\n")
    return path


def revision_of(path: Path) -> str:
    """What the database says of itself."""
    ((revision,),) = rows(path, "SELECT version_num FROM alembic_version")
    return str(revision)


@pytest.mark.parametrize("revision", EARLIER)
def test_every_earlier_database_is_brought_to_today(
    revision: str, told: tuple[list[tuple[object, ...]], Books], tmp_path: Path
) -> None:
    """Not one event differs, the books are those of a fold from zero, and the copy from before is of that revision."""
    log, books = told
    path = database_of(revision, log, tmp_path / "provider.db")
    plan = BackupPlan(
        database=path, directory=tmp_path / "copies", every=timedelta(hours=1), keep=3, clock=FakeClock(NOON)
    )
    ledger = open_ledger(path, FakeClock(NOON), "the test", plan=plan)
    ledger.close()
    assert revision_of(path) == schema.SCHEMA_REVISION
    assert rows(path, EVENTS) == log
    assert reopened(path) == books
    with reading(path) as connection:
        assert list(verify(connection)) == []
    copy = plan.newest()
    assert copy is not None
    assert (copy.manifest.reason, copy.manifest.schema_revision) == (BackupReason.BEFORE_MIGRATION, revision)
    assert rows(copy.path, EVENTS) == log


def test_a_database_of_today_is_not_copied_at_start(
    told: tuple[list[tuple[object, ...]], Books], tmp_path: Path
) -> None:
    """Or every restart would push an older copy out."""
    path = database_of(schema.SCHEMA_REVISION, told[0], tmp_path / "provider.db")
    Store(path, before_migration=lambda: pytest.fail("nothing is migrated")).open("the test", LONG_AGO)


def test_without_its_copy_nothing_is_migrated(told: tuple[list[tuple[object, ...]], Books], tmp_path: Path) -> None:
    """F59: a disk that has no room for the copy has none for a mistake."""
    path = database_of("0001", told[0], tmp_path / "provider.db")
    (tmp_path / "copies").touch()
    plan = BackupPlan(
        database=path, directory=tmp_path / "copies", every=timedelta(hours=1), keep=3, clock=FakeClock(NOON)
    )
    with pytest.raises(StoreUnavailable, match="File exists"):
        open_ledger(path, FakeClock(NOON), "the test", plan=plan)
    assert revision_of(path) == "0001"


def test_a_rolled_back_program_says_what_to_do(told: tuple[list[tuple[object, ...]], Books], tmp_path: Path) -> None:
    """It cannot read what the newer one wrote; it names the version to run, and the copy from before the migration."""
    path = database_of(schema.SCHEMA_REVISION, told[0], tmp_path / "provider.db")
    plan = BackupPlan(
        database=path, directory=tmp_path / "copies", every=timedelta(hours=1), keep=3, clock=FakeClock(NOON)
    )
    plan.before_migration()
    with plain(path) as person:
        person.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(StoreCorrupt, match=r"run the newer version, or restore a backup .* restore .*copies/provider-"):
        open_ledger(path, FakeClock(NOON), "the test", plan=plan)


def deaths(path: Path) -> Iterator[int]:
    """Migrate, and die before each statement in turn; how many statements were let through each time."""
    for allowed in range(1000):
        engine = sqlite.writer_engine(path)
        let_through = 0

        @event.listens_for(engine, "before_cursor_execute")
        def _count(*call: object, allowed: int = allowed) -> None:
            nonlocal let_through
            if str(call[2]).startswith(("CREATE", "DROP", "ALTER", "INSERT", "UPDATE", "DELETE")):
                if let_through == allowed:
                    raise Killed
                let_through += 1

        try:
            with engine.begin() as connection:
                command.upgrade(alembic_config(connection), "head")
        except Killed:
            yield allowed
        else:
            return
        finally:
            engine.dispose()


def test_a_migration_that_dies_anywhere_has_not_happened(
    told: tuple[list[tuple[object, ...]], Books], tmp_path: Path
) -> None:
    """F59: before each of its statements; the database is as it was, and in the end the next start completes it."""
    log, books = told
    path = database_of("0001", log, tmp_path / "provider.db")
    with reading(path) as connection:
        before = objects(connection)
    died = 0
    for _ in deaths(path):
        died += 1
        with reading(path) as connection:
            assert objects(connection) == before
    assert died > 10
    assert reopened(path) == books
    assert rows(path, EVENTS) == log
