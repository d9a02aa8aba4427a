"""Proving that a database is what we wrote: read only, usable on a live one, every finding a sentence."""

from collections.abc import Iterator, Mapping

from sqlalchemy import Connection, Table, select, text

from app.errors import StoreCorrupt
from app.store import log, projections, schema, sqlite
from app.store.chain import broken_links
from app.store.columns import Values
from app.store.migrate import expected_objects, revision_of

_MOST = 20
"""How many differing rows of one table are named."""

_VERSION_GAPS = """
SELECT stream, count(*) AS events, max(version) AS version FROM events GROUP BY stream HAVING events <> version
"""
_BACKWARD_TIMES = """
SELECT position FROM (SELECT position, recorded_at, lag(recorded_at) OVER (ORDER BY position) AS before FROM events)
WHERE before > recorded_at
"""


def verify(connection: Connection) -> Iterator[str]:
    """Everything that is wrong with a database; nothing if it is sound.

    Looks at the file's structure, the schema with its triggers, the hash chain without gaps, and folds the whole log to
    compare with the projections. All of it sees one moment of the database, so a server may go on writing meanwhile; it
    only cannot shorten its write-ahead log until this ends. The time grows with the log, 20,000 events take about 2 s.

    Raises:
        StoreCorrupt: the file is too damaged to be read on.
    """
    damages = sqlite.damages(connection)
    if damages:
        yield from (f"the file is damaged: {words}" for words in damages)
        return
    revision = revision_of(connection)
    if revision != schema.SCHEMA_REVISION:
        yield f"the schema has revision {revision}, this version verifies {schema.SCHEMA_REVISION}"
        return
    yield from _altered_objects(connection)
    yield from broken_links(log.rows_after(connection, 0))
    yield from _disorder(connection)
    yield from _stale_projections(connection)


def _altered_objects(connection: Connection) -> Iterator[str]:
    found = sqlite.objects(connection)
    for name, sql in expected_objects().items():
        if name not in found:
            yield f"the {name} is missing"
        elif found[name] != sql:
            yield f"the {name} was altered"


def _disorder(connection: Connection) -> Iterator[str]:
    for row in connection.execute(text(_VERSION_GAPS)):
        yield f"stream {row.stream} has {row.events} events and reaches version {row.version}"
    for row in connection.execute(text(_BACKWARD_TIMES)):
        yield f"position {row.position} was recorded before its predecessor"


def _stale_projections(connection: Connection) -> Iterator[str]:
    head, mark = log.head(connection), projections.mark_of(connection)
    if mark is None:
        yield f"the projections were never written, the log ends at position {head.position}"
        return
    if (mark["version"], mark["position"]) != (projections.FOLD_VERSION, head.position):
        yield (
            f"the projections stand for position {mark['position']} by fold {mark['version']}, "
            f"the log ends at position {head.position} and the fold is {projections.FOLD_VERSION}"
        )
        return
    try:
        _, changes = projections.fold_log(connection)
    except StoreCorrupt as error:
        yield error.message
        return
    for table, expected in changes.upserts.items():
        yield from _differences(connection, table, expected)


def _differences(connection: Connection, table: Table, expected: Mapping[str, Values]) -> Iterator[str]:
    (key,) = table.primary_key
    found = {row[key.name]: dict(row) for row in connection.execute(select(table)).mappings()}
    differing = [name for name in sorted(found.keys() | expected.keys()) if found.get(name) != expected.get(name)]
    for name in differing[:_MOST]:
        yield f"{table.name} {name!r}: {_words(found.get(name), expected.get(name))}"
    if len(differing) > _MOST:
        yield f"{table.name}: {len(differing) - _MOST} more rows differ from the log"


def _words(found: Values | None, expected: Values | None) -> str:
    if found is None:
        return "the row is missing"
    if expected is None:
        return "the log knows nothing of this row"
    differing = [name for name, value in expected.items() if found[name] != value]
    return ", ".join(f"{name} is {found[name]!r}, by the log {expected[name]!r}" for name in differing)
