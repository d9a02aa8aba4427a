"""A real provider process over a simulated cloud in the test's own process, so that its truth can be read."""

import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from app.cli.ports import free_port
from app.rpc.client import CallFailed, Client
from app.simulator import remote
from app.simulator.config import SimulatorConfig
from app.simulator.http import Simulator

ROOT = Path(__file__).resolve().parents[2]
GROUP = {
    "instance_type": "1A100.22V",
    "image": "ubuntu-24.04-cuda-12.8-open-docker",
    "location": "FIN-01",
    "min_size": 0,
    "max_size": 10,
}
FAST = {"durations": {"preset": "fast"}, "limits": {"enabled": False}}


def clean_environment() -> dict[str, str]:
    """The environment without anybody's credentials."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("VERDA_", "DATACRUNCH_"))}


def until(condition: Callable[[], object], timeout_s: float = 30.0, what: str = "condition") -> None:
    """Wait for something to become true, at most so long."""
    end = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {timeout_s} s"
        time.sleep(0.02)  # noqa: TID251 - polling another process


class Provider:
    """One installation: a configuration, a database, a process that can be killed and started again."""

    def __init__(
        self, directory: Path, simulator: Simulator, groups: Mapping[str, Mapping[str, Any]], **more: object
    ) -> None:
        self.database = directory / "provider.db"
        self.log = directory / "provider.log"
        self.config = directory / "config.yaml"
        self.grpc_port = free_port()
        self.http_port = free_port()
        settings = {
            "cluster_name": "e2e",
            "listen": f"127.0.0.1:{self.grpc_port}",
            "http": {"listen": f"127.0.0.1:{self.http_port}"},
            "database": str(self.database),
            "verda": {
                "base_url": simulator.base_url,
                "client_id": "simulator",
                "client_secret": "simulator",
                "list_lag": "3s",
                "rate_share": 1,
            },
            # As fast as the API allows one client: 120 listings a minute.
            "intervals": {"observe": "500ms"},
            "logging": {"level": "debug", "format": "json"},
            "node_groups": groups,
            **more,
        }
        self.config.write_text(yaml.safe_dump(settings))
        self.client = Client(f"127.0.0.1:{self.grpc_port}")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:  # nobody calls __exit__ then, and the process would live on
            self.kill()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self.kill()

    def start(self) -> None:
        """Start and wait until RPCs are answered."""
        self.launch()
        until(self._answers, 90.0, what="the provider answers")

    def launch(self) -> None:
        """Start, without waiting."""
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app.cli.main", "--config", str(self.config)],
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=clean_environment(),
            )

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self.log.read_text()[-2000:]
        try:
            return bool(self.client.node_groups())
        except CallFailed:
            return False

    def kill(self) -> None:
        """SIGKILL, unless it is not running."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
        if self._process is not None:
            self._process.wait(10)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, float]:
        """Ask it to stop; exit code and seconds it took."""
        assert self._process is not None
        began = time.monotonic()
        self._process.send_signal(number)
        code = self._process.wait(30)
        return code, time.monotonic() - began

    def command_line(self) -> str:
        """What `ps` shows of it."""
        assert self._process is not None
        return Path(f"/proc/{self._process.pid}/cmdline").read_text().replace("\0", " ")

    def get(self, path: str, token: str = "") -> tuple[int, str]:
        """Status and body of a page."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        url = f"http://127.0.0.1:{self.http_port}{path}"
        request = urllib.request.Request(url, headers=headers)
        try:
            with urllib.request.urlopen(request, timeout=5) as answer:  # noqa: S310 - likewise
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError as error:
            return 0, str(error)

    def states(self, group: str) -> list[int]:
        """The wire states of a group's instances, sorted: 1 running, 2 creating, 3 deleting."""
        return sorted(instance.status.instanceState for instance in self.client.instances(group))


def simulator(settings: Mapping[str, Any] = FAST) -> Simulator:
    """A simulated cloud on a free port."""
    return Simulator(SimulatorConfig.model_validate(dict(settings)))


def control(sim: Simulator, method: str, path: str, body: object = None) -> Any:
    """A call of the simulator's control plane."""
    return remote.control(sim.control_url, method, path, body)


def alive(sim: Simulator) -> list[str]:
    """Host names of the machines that exist, sorted, a name twice if two machines have it."""
    return sorted(item["hostname"] for item in control(sim, "GET", "/truth")["instances"] if item["ended"] is None)


def volumes(sim: Simulator) -> list[dict[str, Any]]:
    """Volumes that exist, in the trash or not."""
    found: list[dict[str, Any]] = control(sim, "GET", "/truth")["volumes"]
    return found
