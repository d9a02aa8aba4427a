"""Many writers at once beside bare SQLite: `python -m bench.together`.

In turn: sixty-four threads, each of which gives back one node through the ledger, and sixty-four bare transactions one
after the other, of two rows each, with synchronous=FULL. The autoscaler deletes nodes like that, one call a node.
"""

import argparse
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from app.clock import SystemIds
from app.domain.nodegroup.commands import DeleteNodes, IncreaseSize
from app.ledger.ledger import Ledger
from bench.append import CAUSE, insert_two_rows, prepared

_CALLERS = 64


def grown(ledger: Ledger) -> Sequence[str]:
    """Names of as many new nodes as there are callers."""
    ids = SystemIds()
    names = tuple({f"gpu-{ids.suffix()}" for _ in range(_CALLERS)})
    ledger.execute(IncreaseSize(node_group="gpu", delta=len(names), names=names), CAUSE)
    return names


def give_back_together(ledger: Ledger, names: Sequence[str], pool: ThreadPoolExecutor) -> float:
    """Seconds until every caller has its answer, from the moment all of them are ready."""
    ready = threading.Barrier(len(names) + 1)

    def ask(name: str) -> None:
        ready.wait()
        ledger.execute(DeleteNodes(node_group="gpu", instances=(name,)), CAUSE)

    answers = [pool.submit(ask, name) for name in names]
    ready.wait()
    began = time.perf_counter()
    for answer in answers:
        answer.result()
    return time.perf_counter() - began


def one_after_the_other(act: Callable[[], None], count: int) -> float:
    """Seconds for so many."""
    began = time.perf_counter()
    for _ in range(count):
        act()
    return time.perf_counter() - began


def main(arguments: Sequence[str]) -> None:
    """Do both in turn, print medians and their ratio."""
    parser = argparse.ArgumentParser(description="Many writers at once, beside bare SQLite.")
    parser.add_argument("--rounds", type=int, default=40, help="how often each is done")
    rounds = parser.parse_args(arguments).rounds
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(_CALLERS) as pool:
        ledger = prepared(Path(directory, "ledger.db"), max_size=_CALLERS)
        with closing(sqlite3.connect(Path(directory, "bare.db"), isolation_level=None)) as connection:
            bare = insert_two_rows(connection)
            pairs = []
            for _ in range(rounds):
                names = grown(ledger)
                ours = give_back_together(ledger, names, pool)
                pairs.append((ours, one_after_the_other(bare, len(names))))
        ledger.close()
    together, alone = (statistics.median(times) for times in zip(*pairs, strict=True))
    sys.stdout.write(
        f"{_CALLERS} callers at the ledger: {together * 1000:.1f} ms\n"
        f"{_CALLERS} bare commits in a row: {alone * 1000:.1f} ms\n"
        f"rate, ours / bare:       {alone / together:.2f}\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
