"""How long RPCs take beside a no-op of the same server, all in one interleaved run.

python bench/rpc.py [--rounds 2000]

The server is a process of its own over a real database. `Refresh` does nothing, so it shows what gRPC itself costs;
every other figure is also given as its ratio to it. Increases are taken back by decreases between the rounds.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path

from app.clock import SystemClock, SystemIds
from app.domain.cloud import RecordCatalogue
from app.domain.envelope import Cause
from app.domain.nodegroup.commands import ApplyConfiguration, IncreaseSize
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.observation import ObserveMachines
from app.domain.offering import InstanceType
from app.domain.service import StartService
from app.ledger.ledger import Ledger, open_ledger
from app.log import set_up_logging
from app.rpc.client import Client
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.server import build_server

CAUSE = Cause(actor="bench", correlation_id="bench")
KIND = InstanceType(
    name="1A100.22V",
    cpus=22,
    memory_gb=Decimal(120),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="A100 SXM4 80GB",
    model="A100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("1.290"),
    spot_price=Decimal("0.4515"),
    currency="usd",
)
SIZES = {"ten": 10, "thousand": 1000, "growing": 0}


def prepare(ledger: Ledger) -> None:
    """Three groups: of ten instances, of a thousand, and one that grows and shrinks."""
    ids = SystemIds()
    ledger.execute(
        StartService(installation_id="bench", version="0", host="bench", pid=1, sqlite_version="", backend="simulator"),
        CAUSE,
    )
    specs = tuple(
        NodeGroupSpec(
            name=name, min_size=0, max_size=5000, instance_type=KIND.name, image="ubuntu-24.04", locations=("FIN-01",)
        )
        for name in SIZES
    )
    ledger.execute(ApplyConfiguration(specs=specs, sha256="bench", cluster_name="bench"), CAUSE)
    ledger.execute(RecordCatalogue(types=(KIND,)), CAUSE)
    ledger.execute(ObserveMachines(machines=(), backend="simulator", claim=False), CAUSE)
    for name, size in SIZES.items():
        if size:
            names = tuple({f"{name}-{ids.suffix()}" for _ in range(size)})
            ledger.execute(IncreaseSize(node_group=name, delta=len(names), names=names), CAUSE)


def serve(database: Path) -> None:
    """The server process: print the port, serve until standard input closes."""
    set_up_logging("error", "json")
    clock = SystemClock()
    ledger = open_ledger(database, clock, "bench")
    prepare(ledger)
    server = build_server(
        ledger=ledger,
        clock=clock,
        ids=SystemIds(),
        address="127.0.0.1:0",
        gpu_label="verda.com/gpu",
        observer=lambda _method, _code, _seconds: None,
    )
    server.start()
    print(server.port, flush=True)
    sys.stdin.read()
    server.stop(0.5)
    ledger.close()


def measure(client: Client, rounds: int) -> dict[str, list[float]]:
    """Seconds per call, by method, interleaved."""
    refresh = pb.RefreshRequest()
    calls: dict[str, Callable[[], object]] = {
        "Refresh (no-op)": lambda: client.raw("Refresh", refresh),
        "NodeGroupTargetSize": lambda: client.target_size("thousand"),
        "NodeGroupNodes, 10 instances": lambda: client.instances("ten"),
        "NodeGroupNodes, 1000 instances": lambda: client.instances("thousand"),
        "NodeGroupIncreaseSize": lambda: client.increase_size("growing", 1),
    }
    took: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            began = time.perf_counter()
            call()
            took[name].append(time.perf_counter() - began)
        client.decrease_target_size("growing", -1)
    return took


def report(took: dict[str, list[float]]) -> None:
    """A table and one line of JSON."""
    base = statistics.median(took["Refresh (no-op)"])
    rows = []
    for name, values in took.items():
        cuts = statistics.quantiles(values, n=100)
        rows.append({"method": name, "p50_ms": cuts[49] * 1e3, "p99_ms": cuts[98] * 1e3, "p50_ratio": cuts[49] / base})
    print(f"{'method':<32} {'p50 ms':>8} {'p99 ms':>8} {'p50 / no-op':>12}")
    for row in rows:
        print(f"{row['method']:<32} {row['p50_ms']:>8.2f} {row['p99_ms']:>8.2f} {row['p50_ratio']:>12.2f}")
    print(json.dumps({"rounds": len(took["Refresh (no-op)"]), "rows": rows}))


def main() -> None:
    """Start the server, measure, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2000)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.serve is not None:
        serve(arguments.serve)
        return
    with tempfile.TemporaryDirectory() as scratch:
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(Path(scratch) / "bench.db")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert server.stdin is not None
        assert server.stdout is not None
        watchdog = threading.Timer(600, server.kill)
        watchdog.start()
        with Client(f"127.0.0.1:{int(server.stdout.readline())}") as client:
            measure(client, 100)
            report(measure(client, arguments.rounds))
        server.stdin.close()
        server.wait(10)
        watchdog.cancel()


if __name__ == "__main__":
    main()
