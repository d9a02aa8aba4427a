"""From nothing to today's schema: what the migrations make is what the code speaks to, wherever the program runs."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.config import main as alembic
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.dialects import sqlite as dialect
from sqlalchemy.schema import CreateIndex, CreateTable

from app.errors import StoreCorrupt, StoreHeld
from app.store import schema
from app.store.migrate import alembic_config, migrations_directory
from app.store.reading import reading
from app.store.sqlite import APPEND_ONLY_TRIGGERS
from app.store.store import Store
from app.store.verify import verify

from .harness import CA, LONG_AGO, one_more, opened, plain, reopened, rows, start

ROOT = Path(__file__).resolve().parents[2]
BY_HAND = pytest.mark.filterwarnings("ignore:No path_separator found:DeprecationWarning")


def squeezed(sql: str) -> str:
    """SQL without the white space that its writers put differently, the parts of its list one after the other."""
    whole = " ".join(sql.replace('"', "").split()).replace(" (", "(").replace("( ", "(").replace(" )", ")")
    return whole.replace("(", "( , ", 1).replace(", ", " , ")


def test_the_migrations_make_exactly_the_tables_of_the_schema(fresh: Path) -> None:
    """Columns in their order, types, nullability, STRICT, AUTOINCREMENT and constraint names, as defined."""
    made = {
        name: squeezed(sql)
        for name, sql in rows(fresh, "SELECT name, sql FROM sqlite_master WHERE type='table'")
        if sql
    }
    for table in schema.metadata.sorted_tables:
        created = squeezed(str(CreateTable(table).compile(dialect=dialect.dialect())))
        assert made.pop(table.name) == created
    assert set(made) == {"alembic_version", "sqlite_sequence"}


def test_the_migrations_make_exactly_the_indexes_of_the_schema(fresh: Path) -> None:
    """An index that only one side knows is either missing in production or paid for without use."""
    made = {squeezed(sql) for (sql,) in rows(fresh, "SELECT sql FROM sqlite_master WHERE type = 'index'") if sql}
    compiler = dialect.dialect()
    indexes = (index for table in schema.metadata.sorted_tables for index in table.indexes)
    assert made == {squeezed(str(CreateIndex(index).compile(dialect=compiler))) for index in indexes}


def test_alembic_itself_sees_no_difference(fresh: Path) -> None:
    """What `alembic check` would say."""
    with reading(fresh) as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []


def test_the_log_is_strict_numbered_for_ever_and_constrained_by_name(fresh: Path) -> None:
    """Spelled out, because a later migration that recreates the table would lose every one of these silently."""
    ((sql,),) = rows(fresh, "SELECT sql FROM sqlite_master WHERE name = 'events'")
    for words in (
        "position INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT",
        "CONSTRAINT uq_events_stream_version UNIQUE (stream, version)",
        "CONSTRAINT ck_events_version CHECK (version >= 1)",
        "CONSTRAINT ck_events_data CHECK (json_valid(data))",
        "STRICT",
    ):
        assert words in sql
    triggers = rows(fresh, "SELECT name, tbl_name FROM sqlite_master WHERE type = 'trigger' ORDER BY name")
    assert triggers == [(name, "events") for name in sorted(APPEND_ONLY_TRIGGERS)]


def test_the_schema_revision_is_the_newest_migration(fresh: Path) -> None:
    """The code compares with the constant at start and does not read the migrations unless it must."""
    assert ScriptDirectory.from_config(alembic_config()).get_current_head() == schema.SCHEMA_REVISION
    assert rows(fresh, "SELECT version_num FROM alembic_version") == [(schema.SCHEMA_REVISION,)]


def test_a_database_of_a_newer_version_is_refused_and_left_alone(fresh: Path) -> None:
    """After a rollback of the program the old code must not write into tables it does not understand."""
    with plain(fresh) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(
        StoreCorrupt, match=rf"schema revision 9999, this version knows up to {schema.SCHEMA_REVISION}: run the newer"
    ):
        Store(fresh).open("the test", LONG_AGO)
    assert rows(fresh, "SELECT version_num FROM alembic_version") == [("9999",)]


def test_another_programs_database_is_refused_and_left_alone(tmp_path: Path) -> None:
    """A wrong path in the configuration must not put our tables into somebody's dashboards."""
    path = tmp_path / "grafana.db"
    with plain(path) as connection:
        connection.execute("CREATE TABLE dashboard(id)")
    with pytest.raises(StoreCorrupt, match="another program's, it has the tables dashboard"):
        Store(path).open("the test", LONG_AGO)
    assert rows(path, "SELECT name FROM sqlite_master") == [("dashboard",)]


@pytest.mark.parametrize("trigger", APPEND_ONLY_TRIGGERS)
def test_a_log_without_a_trigger_is_refused(fresh: Path, trigger: str) -> None:
    """Whoever dropped it could have rewritten history, and the next bug of ours could."""
    with plain(fresh) as connection:
        connection.execute(f"DROP TRIGGER {trigger}")
    with pytest.raises(StoreCorrupt, match=rf"append-only triggers are gone \({trigger}\)"):
        Store(fresh).open("the test", LONG_AGO)


def test_views_follow_the_program(fresh: Path) -> None:
    """They are code: an old definition is replaced at start, somebody's own view is kept."""
    with plain(fresh) as connection:
        connection.execute("DROP VIEW v_events")
        connection.execute("CREATE VIEW v_events AS SELECT 1 AS old")
        connection.execute("CREATE VIEW v_mine AS SELECT 2 AS mine")
    with opened(fresh):
        pass
    assert rows(fresh, "SELECT count(*) FROM v_events") == [(0,)]
    assert rows(fresh, "SELECT mine FROM v_mine") == [(2,)]


def test_the_wheel_brings_the_migrations_along(tmp_path: Path) -> None:
    """An image has the wheel and no checkout; the program looks for `migrations` inside the package first."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True, timeout=100)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    script = "from app.store.migrate import migrations_directory; print(migrations_directory())"
    shipped = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    found = Path(shipped.stdout.strip())
    assert found == tmp_path / "site" / "app" / "migrations"
    names = {path.relative_to(migrations_directory()) for path in migrations_directory().rglob("*.py*")}
    sources = {name for name in names if "__pycache__" not in name.parts}
    assert {Path("env.py"), Path("versions/0001_event_log.py")} <= sources
    assert all((found / name).is_file() for name in sources)


@BY_HAND
@pytest.mark.parametrize("revision", ["0001", "0002"])
def test_an_older_database_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, revision: str
) -> None:
    """Whatever a migration does to the projections, the log is folded into them anew."""
    monkeypatch.chdir(ROOT)
    old, new = tmp_path / "old.db", tmp_path / "new.db"
    with opened(new) as ledger:
        start(ledger)
        ledger.execute(one_more("gpu-aaaaaaaa"), CA)
        books = ledger.books
    alembic(["-x", f"database={old}", "upgrade", revision])
    with plain(old) as connection:
        connection.execute("ATTACH DATABASE ? AS new", (str(new),))
        connection.execute("INSERT INTO events SELECT * FROM new.events ORDER BY position")
    assert reopened(old) == books
    with reading(old) as connection:
        assert list(verify(connection)) == []


@BY_HAND
def test_alembic_by_hand_migrates_the_database_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For people: `alembic -x database=... upgrade head`, then the program opens it as it is."""
    monkeypatch.chdir(ROOT)
    path = tmp_path / "provider.db"
    alembic(["-x", f"database={path}", "upgrade", "head"])
    assert rows(path, "SELECT version_num FROM alembic_version") == [(schema.SCHEMA_REVISION,)]
    with opened(path) as ledger:
        assert ledger.head.position == 0


@BY_HAND
def test_alembic_by_hand_keeps_out_while_a_server_writes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two writers on one database is what the lock file is for, and a migration is a writer."""
    monkeypatch.chdir(ROOT)
    path = tmp_path / "provider.db"
    with opened(path, holder="pod provider-0"), pytest.raises(StoreHeld, match="in use by pod provider-0"):
        alembic(["-x", f"database={path}", "upgrade", "head"])
