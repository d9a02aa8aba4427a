"""How many commands a second become durable, beside bare SQLite: `python -m bench.append`.

In turn, so that a busy disk slows both alike: a command through the ledger (decide, two events with their hashes, three
projection rows, commit, fold, publish) and two bare rows of the same size by the standard library's driver. Both commit
with synchronous=FULL.
"""

import argparse
import sqlite3
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from decimal import Decimal
from pathlib import Path

from app.clock import SystemClock, SystemIds
from app.domain.cloud import RecordCatalogue
from app.domain.envelope import Cause
from app.domain.nodegroup.commands import ApplyConfiguration, DecreaseTargetSize, IncreaseSize
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import InstanceType
from app.ledger.ledger import Ledger, open_ledger

CAUSE = Cause(actor="bench", correlation_id="bench")
_ROW = "x" * 400
_TYPE = InstanceType(
    name="1H100.80S.30V",
    cpus=30,
    memory_gb=Decimal(120),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="H100",
    model="H100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("2.40"),
    spot_price=Decimal("0.60"),
    currency="usd",
)
_GROUP = NodeGroupSpec(
    name="gpu", min_size=0, max_size=3, instance_type=_TYPE.name, image="ubuntu-24.04", locations=("FIN-01",)
)


def prepared(path: Path, max_size: int = 3) -> Ledger:
    """A ledger with one empty node group."""
    ledger = open_ledger(path, SystemClock(), "bench")
    ledger.execute(
        ApplyConfiguration(specs=(_GROUP.model_copy(update={"max_size": max_size}),), sha256="x", cluster_name="bench"),
        CAUSE,
    )
    ledger.execute(RecordCatalogue(types=(_TYPE,)), CAUSE)
    return ledger


def grow_and_shrink(ledger: Ledger) -> Callable[[], None]:
    """One node more, or one less, in turn: two events each."""
    ids = SystemIds()

    def act() -> None:
        if ledger.books.target_size("gpu"):
            ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CAUSE)
        else:
            ledger.execute(IncreaseSize(node_group="gpu", delta=1, names=(f"gpu-{ids.suffix()}",)), CAUSE)

    return act


def insert_two_rows(connection: sqlite3.Connection) -> Callable[[], None]:
    """What the same number of bytes costs without us."""
    connection.execute("PRAGMA journal_mode=WAL").fetchall()
    connection.execute("PRAGMA synchronous=FULL").fetchall()
    connection.execute("CREATE TABLE bare (position INTEGER PRIMARY KEY, data TEXT NOT NULL)")

    def act() -> None:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("INSERT INTO bare (data) VALUES (?)", ((_ROW,), (_ROW,)))
        connection.execute("COMMIT")

    return act


def seconds(act: Callable[[], None]) -> float:
    """How long it takes once."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def main(arguments: Sequence[str]) -> None:
    """Do both in turn, print medians and their ratio."""
    parser = argparse.ArgumentParser(description="Durable commands a second, beside bare SQLite.")
    parser.add_argument("--rounds", type=int, default=2000, help="how often each is done")
    rounds = parser.parse_args(arguments).rounds
    with tempfile.TemporaryDirectory() as directory:
        ledger = prepared(Path(directory, "ledger.db"))
        with closing(sqlite3.connect(Path(directory, "bare.db"), isolation_level=None)) as connection:
            ours, bare = grow_and_shrink(ledger), insert_two_rows(connection)
            pairs = [(seconds(ours), seconds(bare)) for _ in range(rounds)][rounds // 10 :]
        ledger.close()
    slow, quick = (statistics.median(times) for times in zip(*pairs, strict=True))
    sys.stdout.write(
        f"ledger: {1 / slow:.0f} commands a second ({slow * 1000:.2f} ms), {2 / slow:.0f} events a second\n"
        f"bare:   {1 / quick:.0f} commits a second ({quick * 1000:.2f} ms), {2 / quick:.0f} rows a second\n"
        f"ratio:  {slow / quick:.2f}\n"
    )


if __name__ == "__main__":
    main(sys.argv[1:])
