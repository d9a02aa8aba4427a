"""The ledger and every job over the real SDK and the simulated API, one clock for both, no thread but the server's."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from app.clock import FakeClock
from app.cloud.port import Cloud
from app.cloud.verda import Limits, VerdaCloud
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.observation import ObserveMachines
from app.domain.service import StartService
from app.reconcile.jobs.job import Job
from app.simulator.config import parse_config
from app.simulator.http import Simulator
from tests.e2e.harness import control
from tests.reconcile.house import House
from tests.reconcile.house import spec as any_spec

TYPE = "1H100.80S.30V"
PRICE = "2.29"
CONFIG: Mapping[str, Any] = {
    "seed": 7,
    "clock": {"mode": "manual"},
    "auth": {"token_clock": "real"},
    "limits": {"enabled": False},
    "chances": {"validating": 0},
    "durations": {
        "preset": "fast",
        "ordering": 5,
        "provisioning": 20,
        "guest": 5,
        "shutting_down": 5,
        "booting": 5,
        "deleting": 5,
        "no_capacity": 5,
        "detaching": 2,
    },
}
"""A machine runs 25 s after its order, so that the third listing after it shows it running; a deletion takes 5 s."""
PATIENCE = timedelta(seconds=30)
IMPATIENCE = timedelta(seconds=3)
"""How long a call may take where a fault makes it hang, because it really does."""


def spec(name: str = "h100", **settings: Any) -> NodeGroupSpec:
    """A node group of what the simulated API sells."""
    values: dict[str, Any] = {
        "instance_type": TYPE,
        "image": "ubuntu-24.04-cuda-12.8-open-docker",
        "locations": ("FIN-01", "FIN-02"),
    }
    return any_spec(name, **(values | settings))


@dataclass(frozen=True, slots=True)
class BothClocks:
    """For the client: the time of the tests, and within a call the seconds that really pass, or nothing would end."""

    told: FakeClock

    def now(self) -> datetime:
        """The time of the tests."""
        return self.told.now()

    def monotonic(self) -> float:
        """Both together."""
        return self.told.monotonic() + time.monotonic()


@dataclass(kw_only=True)
class Rig(House):
    """A house over the simulated API."""

    simulator: Simulator
    api: VerdaCloud = field(init=False)

    def __post_init__(self) -> None:
        """Connect, and open."""
        self.api = self._connected(PATIENCE)
        super().__post_init__()

    def _connected(self, patience: timedelta) -> VerdaCloud:
        return VerdaCloud(
            base_url=self.simulator.base_url,
            client_id="simulator",
            client_secret="simulator",
            limits=Limits(timeout=patience, silence_timeout=patience, rate_share=1, breaker_threshold=1000),
            backend="simulator",
            clock=BothClocks(self.clock),
        )

    def lose_patience(self, seconds: float = IMPATIENCE.total_seconds()) -> None:
        """A new process that waits for no answer longer than a fault's test takes."""
        self.api.close()
        self.api = self._connected(timedelta(seconds=seconds))
        self.restart()
        self.observe.run()

    @property
    def cloud(self) -> Cloud:
        """The real client."""
        return self.api

    def begin(self, *groups: NodeGroupSpec) -> None:
        """As a first start: the catalogue, one listing."""
        self.execute(
            StartService(
                installation_id="inst1", version="1", host="pod-0", pid=1, sqlite_version="3", backend="simulator"
            )
        )
        self.configure(*(groups or (spec(),)))
        self.catalog.run()
        self.execute(ObserveMachines(machines=(), backend="simulator", claim=False))

    def tick(self, *jobs: Job) -> None:
        """Every job once, as often as what it recorded would wake it; then ten seconds pass, here and there."""
        super().tick(*jobs)
        self.control("POST", "/clock/advance", {"seconds": 10})

    def running(self, count: int = 1, group: str = "h100") -> tuple[str, ...]:
        """Scale up and wait until all run."""
        names = self.grow(count, group)
        self.ticks(5)
        assert {self.state(name) for name in names} == {"running"}
        return names

    def control(self, method: str, path: str, body: object = None) -> Any:
        """A call to the control plane."""
        return control(self.simulator, method, path, body)

    def preset(self, name: str, **args: Any) -> Any:
        """Install a named fault, or do a named act."""
        return self.control("POST", "/faults", {"preset": name, "args": args})

    def truth(self) -> dict[str, Any]:
        """What really is."""
        return dict(self.control("GET", "/truth"))

    @property
    def alive(self) -> list[str]:
        """Host names of the machines that exist, a name twice if two machines have it."""
        return sorted(item["hostname"] for item in self.truth()["instances"] if item["ended"] is None)

    @property
    def volumes(self) -> list[str]:
        """Names of the volumes that exist and are billed, in the trash or not."""
        return sorted(item["name"] for item in self.truth()["volumes"])

    def shut_down(self) -> None:
        """Let go of everything."""
        self.close()
        self.api.close()


def simulator(**config: Any) -> Simulator:
    """A simulated API on a free port."""
    return Simulator(parse_config({**CONFIG, **config}))


def rig(directory: Path, sim: Simulator, *groups: NodeGroupSpec) -> Rig:
    """A house that has just started for the first time."""
    made = Rig(path=directory / "provider.db", simulator=sim)
    made.begin(*groups)
    return made
