"""Half an hour of a busy fleet: does memory stay flat, do answers stay quick, does the write-ahead log stay short?

`python -m bench.soak [--minutes 30]`: a provider and the simulated cloud as real processes, the cloud's clock twenty
times as fast, its realistic profile, and an autoscaler that never rests. In the end everything is given back, and
books, log and truth must agree. Exit code 1 if something is not as it should be.
"""

import argparse
import contextlib
import random
import statistics
import sys
import tempfile
import time
import urllib.error
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.rpc.client import CallFailed, Client
from app.rpc.gen import externalgrpc_pb2 as pb
from app.store.reading import reading
from app.store.verify import verify
from bench.installation import Installation, until

_FACTOR = 20
_GROUPS = tuple(f"gpu-{number}" for number in range(6))
_MOST = 80
_LOOP_S = 1.0
_GROWS = _SHRINKS = 0.15
_SAMPLE_S = 60.0
_SETTLING_S = 600.0
_FLAT = 1.15
_LONGEST_WAL_MIB = 64.0
_RUNNING, _DELETING = pb.InstanceStatus.instanceRunning, pb.InstanceStatus.instanceDeleting

CLOUD: Mapping[str, Any] = {
    "seed": 9,
    "profile": "realistic",
    "clock": {"mode": "scaled", "factor": _FACTOR},
    "limits": {"enabled": False},
    "billing": {"balance": 1e8},
    "capacity": {"mode": "walk", "pools": {"FIN-01": {"A100": 800}, "FIN-02": {"A100": 800}}},
}
PROVIDER: Mapping[str, Any] = {
    "verda": {"rate_share": 1, "list_lag": "5s", "timeout": "5s"},
    "intervals": {"observe": "1s", "catalog": "10s", "housekeeping": "10s"},
    "backup": {"every": "2m", "keep": 3},
    "node_groups": {
        name: {
            "instance_type": "1A100.22V",
            "image": "ubuntu-24.04-cuda-12.8-open-docker",
            "locations": ["FIN-01", "FIN-02"],
            "instance_option": "prefer_spot" if number % 2 else "on_demand_only",
            "max_size": _MOST,
            "create_timeout": "60s",
            "provision_timeout": "120s",
        }
        for number, name in enumerate(_GROUPS)
    },
}


@dataclass(kw_only=True)
class Minute:
    """What one minute looked like. Latencies in milliseconds, sizes in MiB."""

    reads: list[float] = field(default_factory=list)
    writes: list[float] = field(default_factory=list)
    resident: float = 0.0
    wal: float = 0.0
    living: int = 0
    events: int = 0
    refused: int = 0

    def line(self, number: int) -> str:
        """For the screen."""
        return (
            f"{number:3} min: {self.resident:6.1f} MiB, WAL {self.wal:5.1f} MiB, {self.living:4} living, "
            f"{self.events:7,} events, reads p50 {_at(self.reads, 50):6.2f} p99 {_at(self.reads, 99):7.2f} ms, "
            f"writes p50 {_at(self.writes, 50):6.2f} p99 {_at(self.writes, 99):7.2f} ms, {self.refused} refused"
        )


def _at(values: Sequence[float], quantile: int) -> float:
    if len(values) < 2:  # noqa: PLR2004 - quantiles need two
        return values[0] if values else 0.0
    return statistics.quantiles(values, n=100)[quantile - 1]


class Restless:
    """An autoscaler whose pods come and go."""

    def __init__(self, address: str, seed: int) -> None:
        self._client = Client(address)
        self._draw = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._pool = ThreadPoolExecutor(10)
        self.minute = Minute()

    def loop(self, *, give_everything_back: bool = False) -> int:
        """One loop over all groups; how many instances are listed."""
        listed = 0
        for group in self._timed(self.minute.reads, self._client.node_groups):
            instances = self._look(group.id)
            listed += len(instances)
            self._act(group, instances, give_everything_back=give_everything_back)
        return listed

    def _look(self, group: str) -> Sequence[pb.Instance]:
        """The questions that the autoscaler asks about a group and each of its nodes."""
        reads, client = self.minute.reads, self._client
        self._timed(reads, lambda: client.target_size(group))
        instances: Sequence[pb.Instance] = self._timed(reads, lambda: client.instances(group))
        self._timed(
            reads, lambda: client.raw("NodeGroupTemplateNodeInfo", pb.NodeGroupTemplateNodeInfoRequest(id=group))
        )
        for one in instances:
            node = pb.ExternalGrpcNode(providerID=one.id, name=one.id.rpartition("/")[2])
            asked = pb.NodeGroupForNodeRequest(node=node)
            self._timed(reads, lambda: client.raw("NodeGroupForNode", asked))  # noqa: B023 - called at once
        return instances

    def _act(self, group: pb.NodeGroup, instances: Sequence[pb.Instance], *, give_everything_back: bool) -> None:
        failed = [one.id for one in instances if one.status.HasField("errorInfo")]
        running = [one.id for one in instances if one.status.instanceState == _RUNNING]
        staying = [one.id for one in instances if one.status.instanceState != _DELETING]
        if give_everything_back:
            self._give_back(group.id, staying)
            return
        self._give_back(group.id, failed)
        dice = self._draw.random()
        if dice < _GROWS and len(staying) < _MOST:
            delta = self._draw.randint(1, min(20, _MOST - len(staying)))
            self._try(lambda: self._client.increase_size(group.id, delta))
        elif dice < _GROWS + _SHRINKS and running:
            self._give_back(group.id, self._draw.sample(running, self._draw.randint(1, min(10, len(running)))))

    def _give_back(self, group: str, ids: Sequence[str]) -> None:
        """One call a node, ten at a time, as the autoscaler does."""
        list(self._pool.map(lambda one: self._try(lambda: self._client.delete_nodes(group, [one])), ids))

    def _try(self, act: Any) -> None:
        try:
            self._timed(self.minute.writes, act)
        except CallFailed:
            self.minute.refused += 1

    @staticmethod
    def _timed(into: list[float], act: Any) -> Any:
        began = time.perf_counter()
        try:
            return act()
        finally:
            into.append((time.perf_counter() - began) * 1000)

    def close(self) -> None:
        """Ask nothing more."""
        self._pool.shutdown()
        self._client.close()


def soak(minutes: float, directory: Path) -> Iterator[str]:
    """Everything that is not as it should be."""
    samples: list[Minute] = []
    with Installation(directory, CLOUD, PROVIDER) as house:
        autoscaler = Restless(house.address, seed=9)
        end = time.monotonic() + minutes * 60
        while time.monotonic() < end:
            samples.append(_a_minute(house, autoscaler))
            sys.stdout.write(f"{samples[-1].line(len(samples))}\n")
            sys.stdout.flush()
        try:
            until(lambda: _is_over(house, autoscaler), _SETTLING_S, "everything is given back", pause_s=_LOOP_S)
        except TimeoutError as error:
            yield str(error)
        autoscaler.close()
        truth = house.truth()
        if code := house.stop():
            yield f"the provider ended with {code}"
        yield from _differences(truth)
        with reading(house.database) as connection:
            yield from verify(connection)
    yield from _trends(samples)


def _a_minute(house: Installation, autoscaler: Restless) -> Minute:
    minute = autoscaler.minute = Minute()
    end = time.monotonic() + _SAMPLE_S
    while (left := end - time.monotonic()) > 0:
        minute.living = autoscaler.loop()
        minute.wal = max(minute.wal, _size_mib(house.database.with_name(f"{house.database.name}-wal")))
        time.sleep(min(_LOOP_S, left))  # noqa: TID251 - the autoscaler rests between its loops
    minute.resident = house.resident_mib()
    with reading(house.database) as connection:
        minute.events = connection.exec_driver_sql("SELECT max(position) FROM events").scalar_one()
    return minute


def _size_mib(path: Path) -> float:
    return path.stat().st_size / 2**20 if path.exists() else 0.0


def _is_over(house: Installation, autoscaler: Restless) -> bool:
    """Nothing is listed any more, and nothing of ours costs money. What is stuck in the cloud goes on."""
    house.control("DELETE", "/faults")
    listed = autoscaler.loop(give_everything_back=True)
    truth = house.truth()
    alive = [item for item in truth["instances"] if item["ended"] is None and not item["foreign"]]
    for machine in alive:  # while it is provisioning, Verda does not delete it
        with contextlib.suppress(urllib.error.HTTPError):  # it is gone meanwhile
            house.control("POST", f"/instances/{machine['id']}/unstick", {})
    return not listed and not alive and not truth["orphan_volumes"]


def _differences(truth: Mapping[str, Any]) -> Iterator[str]:
    for item in truth["instances"]:
        if item["ended"] is None and not item["foreign"]:
            yield f"{item['hostname']} is still there"
    if truth["orphan_volumes"]:
        yield f"{len(truth['orphan_volumes'])} volumes are left"
    if truth["foreign_deletes"]:
        yield f"{truth['foreign_deletes']} machines of others were deleted"


def _trends(samples: Sequence[Minute]) -> Iterator[str]:
    """The last third beside the middle one, since at first a fleet has yet to grow."""
    third = len(samples) // 3
    if not third:
        return
    middle, last = samples[third : 2 * third], samples[-third:]
    figures: Mapping[str, tuple[list[float], list[float]]] = {
        "memory": ([one.resident for one in middle], [one.resident for one in last]),
        "latency of reads": ([_at(one.reads, 50) for one in middle], [_at(one.reads, 50) for one in last]),
        "latency of writes": ([_at(one.writes, 50) for one in middle], [_at(one.writes, 50) for one in last]),
    }
    for name, (before, after) in figures.items():
        ratio = statistics.median(after) / statistics.median(before)
        sys.stdout.write(f"{name}, last third over middle third: {ratio:.2f}\n")
        if ratio > _FLAT:
            yield f"{name} grew to {ratio:.2f} times"
    longest = max(one.wal for one in samples)
    if longest > _LONGEST_WAL_MIB:
        yield f"the write-ahead log grew to {longest:.0f} MiB"


def main() -> int:
    """0 if all is well."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0, help="how long the fleet is busy")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        findings = list(soak(given.minutes, Path(scratch)))
    for finding in findings:
        sys.stdout.write(f"WRONG: {finding}\n")
    sys.stdout.write(f"{given.minutes:g} minutes, {len(findings)} things wrong\n")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
