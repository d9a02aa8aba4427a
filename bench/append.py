"""A command through the ledger beside bare SQLite.

One decides, writes two events with their hashes and their projection rows, commits, folds and publishes. The other
inserts the very same rows into the same tables by the standard library's driver, prepared beforehand. Both commit with
synchronous=FULL.
"""

import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from sqlalchemy import Table

from app.clock import SystemIds
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.ledger.ledger import Ledger
from app.store import schema
from bench.figures import Figure, rate, seconds
from bench.history import Histories
from bench.houses import CAUSE, grow, prepared
from bench.scale import Scale

CALLERS = 64

Rows = dict[Table, list[tuple[object, ...]]]
_TOUCHED = (schema.events, schema.instances, schema.node_groups, schema.projections)


class ByHand:
    """A database with the same tables, written to without us."""

    def __init__(self, model: Path, copy: Path) -> None:
        with closing(sqlite3.connect(f"file:{model}?mode=ro", uri=True)) as source:
            self._connection = sqlite3.connect(copy, isolation_level=None, check_same_thread=False)
            source.backup(self._connection)
        for pragma in ("journal_mode=WAL", "synchronous=FULL"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        self._model = sqlite3.connect(f"file:{model}?mode=ro", uri=True, check_same_thread=False)

    def rows_after(self, position: int) -> Rows:
        """What the model has gained behind a position."""
        named = "SELECT substr(stream, 10) FROM events WHERE position > ? AND stream LIKE 'instance-%'"
        conditions = {
            schema.events: ("position > ?", (position,)),
            schema.instances: (f"name IN ({named})", (position,)),
            schema.node_groups: ("position > ?", (position,)),
            schema.projections: ("1", ()),
        }
        found: Rows = {}
        for table in _TOUCHED:
            condition, values = conditions[table]
            names = ", ".join(column.name for column in table.columns)
            query = f"SELECT {names} FROM {table.name} WHERE {condition}"  # noqa: S608 - our own names
            found[table] = self._model.execute(query, values).fetchall()
        return found

    def write(self, rows: Rows) -> None:
        """All of them, and a commit."""
        self._connection.execute("BEGIN IMMEDIATE")
        for table, some in rows.items():
            self._connection.executemany(_INSERTS[table], some)
        self._connection.execute("COMMIT")

    def close(self) -> None:
        """Both connections."""
        self._connection.close()
        self._model.close()


def _insert(table: Table) -> str:
    verb = "INSERT" if table is schema.events else "INSERT OR REPLACE"
    return f"{verb} INTO {table.name} VALUES ({', '.join('?' * len(table.columns))})"


_INSERTS = {table: _insert(table) for table in _TOUCHED}


@contextmanager
def same_rows(directory: Path) -> Iterator[Callable[[], float]]:
    """Seconds that the rows of one node more, or one less, take by hand; every call writes others."""
    ledger = prepared(directory / "model.db", gpu=0)
    hand = ByHand(directory / "model.db", directory / "copy.db")
    act = _grow_and_shrink(ledger)

    def once() -> float:
        position = ledger.head.position
        act()
        rows = hand.rows_after(position)
        return seconds(lambda: hand.write(rows))

    try:
        yield once
    finally:
        hand.close()
        ledger.close()


def figures(scale: Scale, _histories: Histories) -> Iterator[Figure]:
    """One writer, then sixty-four of them at once, as the autoscaler gives nodes back: one call a node."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch, "ledger.db")
        ledger = prepared(path, gpu=0)
        hand = ByHand(path, path.with_name("copy.db"))
        yield _one_writer(ledger, hand, scale)
        yield _many_writers(ledger, hand, scale)
        hand.close()
        ledger.close()


def _one_writer(ledger: Ledger, hand: ByHand, scale: Scale) -> Figure:
    act = _grow_and_shrink(ledger)
    pairs = []
    for _ in range(scale.rounds):
        position = ledger.head.position
        ours = seconds(act)
        rows = hand.rows_after(position)
        pairs.append((ours, seconds(lambda: hand.write(rows))))  # noqa: B023 - called at once
    return rate("a command through the ledger", "its rows by hand", 0.5, pairs[scale.rounds // 10 :])


def _many_writers(ledger: Ledger, hand: ByHand, scale: Scale) -> Figure:
    """Every caller's rows are written by hand in a transaction of their own, one after the other."""
    with ThreadPoolExecutor(CALLERS) as pool:
        rounds = []
        for _ in range(max(scale.few, scale.rounds // 50)):
            position = ledger.head.position
            names = grow(ledger, "gpu", CALLERS)
            hand.write(hand.rows_after(position))
            position = ledger.head.position
            together = _give_back_together(ledger, names, pool)
            each = _split(hand.rows_after(position))
            rounds.append((together, seconds(lambda: list(map(hand.write, each)))))  # noqa: B023 - called at once
    return rate(f"{CALLERS} threads, one deletion each", "their rows by hand in a row", 1.0, rounds, CALLERS)


def _split(rows: Rows) -> list[Rows]:
    """The rows of each command: its two events, its instance, and the rows that every command writes."""
    events, instances = rows[schema.events], rows[schema.instances]
    size = len(events) // len(instances)
    return [
        {**rows, schema.events: events[at * size : (at + 1) * size], schema.instances: [instance]}
        for at, instance in enumerate(instances)
    ]


def _grow_and_shrink(ledger: Ledger) -> Callable[[], None]:
    """One node more, or one less, in turn: two events each."""
    ids = SystemIds()

    def act() -> None:
        if ledger.books.target_size("gpu"):
            ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CAUSE)
        else:
            ledger.execute(IncreaseSize(node_group="gpu", delta=1, names=(f"gpu-{ids.suffix()}",)), CAUSE)

    return act


def _give_back_together(ledger: Ledger, names: Sequence[str], pool: ThreadPoolExecutor) -> float:
    """Seconds until every caller has its answer, from the moment all of them are ready."""
    ready = threading.Barrier(len(names) + 1)

    def ask(name: str) -> None:
        ready.wait()
        ledger.execute(DeleteNodes(node_group="gpu", instances=(name,)), CAUSE)

    answers = [pool.submit(ask, name) for name in names]
    ready.wait()
    return seconds(lambda: [answer.result() for answer in answers])
