"""A command through the ledger beside bare SQLite.

One decides, writes two events with their hashes and their projection rows, commits, folds and publishes; the other
inserts two rows of the same size by the standard library's driver. Both commit with synchronous=FULL.
"""

import sqlite3
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

from app.clock import SystemIds
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.ledger.ledger import Ledger
from bench.figures import Figure, interleaved, rate, seconds
from bench.houses import CAUSE, grow, prepared
from bench.scale import Scale

_ROW = "x" * 400
CALLERS = 64


@contextmanager
def bare_transaction(directory: Path) -> Iterator[Callable[[], None]]:
    """Two rows and a commit, in a database of its own."""
    with closing(sqlite3.connect(directory / "bare.db", isolation_level=None, check_same_thread=False)) as connection:
        connection.execute("PRAGMA journal_mode=WAL").fetchall()
        connection.execute("PRAGMA synchronous=FULL").fetchall()
        connection.execute("CREATE TABLE bare (position INTEGER PRIMARY KEY, data TEXT NOT NULL)")

        def act() -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany("INSERT INTO bare (data) VALUES (?)", ((_ROW,), (_ROW,)))
            connection.execute("COMMIT")

        yield act


def figures(scale: Scale) -> Iterator[Figure]:
    """One writer, then sixty-four of them at once, as the autoscaler gives nodes back: one call a node."""
    with tempfile.TemporaryDirectory() as scratch, bare_transaction(Path(scratch)) as bare:
        ledger = prepared(Path(scratch, "ledger.db"), gpu=0)
        pairs = interleaved(_grow_and_shrink(ledger), bare, scale.rounds)[scale.rounds // 10 :]
        yield rate("a command through the ledger", "a bare transaction of two rows", 0.5, pairs)
        with ThreadPoolExecutor(CALLERS) as pool:
            rounds = []
            for _ in range(max(scale.few, scale.rounds // 50)):
                names = grow(ledger, "gpu", CALLERS)
                together = _give_back_together(ledger, names, pool)
                rounds.append((together, seconds(lambda: [bare() for _ in range(CALLERS)])))
        yield rate(f"{CALLERS} threads, one deletion each", "as many bare transactions in a row", 1.0, rounds, CALLERS)
        ledger.close()


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
