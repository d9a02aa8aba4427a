"""A hundred machines wanted at once of a real installation, in real time: how fast they are ordered and seen."""

import math
import sqlite3
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Any

from app.cloud.ratelimit import PATH_QUOTA, WINDOW_S
from app.rpc.gen import externalgrpc_pb2 as pb
from bench.figures import Figure, of_values
from bench.history import Histories
from bench.installation import Installation, until
from bench.scale import Scale

_RUNS = pb.InstanceStatus.instanceRunning
_SHARE = 0.8
_OBSERVE_S = 10.0
_GROUP = {
    "instance_type": "1A100.22V",
    "image": "ubuntu-24.04-cuda-12.8-open-docker",
    "location": "FIN-01",
    "max_size": 1000,
}
_PROVIDER: Mapping[str, Any] = {
    "verda": {"rate_share": _SHARE},
    "intervals": {"observe": f"{_OBSERVE_S:g}s"},
    "node_groups": {"gpu": _GROUP},
}
_CLOUD: Mapping[str, Any] = {
    "durations": {"preset": "demo"},
    "billing": {"balance": 1e6},
    "capacity": {"mode": "fixed", "pools": {"FIN-01": {"A100": 10_000}}},
}
_ASKED = "SELECT recorded_at FROM events WHERE type = 'nodegroup.scale-up-requested'"
_RUNNING = """
SELECT json_extract(data, '$.instance') AS instance, min(recorded_at) AS at FROM events
WHERE type = 'instance.state-observed' AND json_extract(data, '$.state') = 'running' GROUP BY instance
"""


def figures(scale: Scale, _histories: Histories) -> Iterator[Figure]:
    """From the log and the simulator's truth. Takes minutes, nearly all of them waiting for the rate limit."""
    if not scale.wanted:
        return
    with tempfile.TemporaryDirectory() as scratch, Installation(Path(scratch), _CLOUD, _PROVIDER) as house:
        house.client.increase_size("gpu", scale.wanted)

        def all_run() -> bool:
            return sum(one.status.instanceState == _RUNS for one in house.client.instances("gpu")) == scale.wanted

        until(all_run, 1800, "all machines run", pause_s=1.0)
        with closing(sqlite3.connect(f"file:{house.database}?mode=ro", uri=True)) as connection:
            ((asked,),) = connection.execute(
                "SELECT recorded_at FROM events WHERE type = 'nodegroup.scale-up-requested'"
            )
            seen = dict(connection.execute(_RUNNING).fetchall())
        machines = house.truth()["instances"]
    took = max(_at(machine["created"]) for machine in machines) - _at(asked)
    budget = math.floor(PATH_QUOTA * _SHARE)
    least = (math.ceil(scale.wanted / budget) - 1) * WINDOW_S
    yield of_values(f"{scale.wanted} machines wanted, all ordered", "the least by the limit", 1.1, took, least, "s")
    late = [_at(seen[machine["hostname"]]) - _at(machine["first_running"]) for machine in machines]
    name = f"a machine runs until the autoscaler can see it, the longest of {len(late)}"
    yield of_values(name, "one interval of looking", 1.2, max(late), _OBSERVE_S, "s", len(late))


def _at(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
