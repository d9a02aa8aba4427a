"""The stage of the demonstration: a simulator and a provider as real processes, and the hands to work them."""

import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml
from rich.console import Console

from app.cli.ports import free_port
from app.clock import SystemClock
from app.errors import ProviderError
from app.rpc.client import CallFailed, Client
from app.simulator.remote import control

_POLL_S = 0.1
_START_TIMEOUT_S = 20.0

SIMULATOR_SETTINGS: dict[str, Any] = {
    "seed": 7,
    "durations": {
        "preset": "demo",
        "ordering": {"low": 0.5, "high": 1.0},
        "provisioning": {"low": 2.0, "high": 3.0},
        "validating": 0.2,
        "deleting": {"low": 0.5, "high": 1.0},
    },
}

_GROUP = {"image": "ubuntu-24.04-cuda-12.8-open-docker", "location": "FIN-01", "min_size": 0, "max_size": 10}

PROVIDER_SETTINGS: dict[str, Any] = {
    "cluster_name": "demo",
    "intervals": {"observe": "1s", "catalog": "30s", "housekeeping": "1m"},
    "logging": {"format": "json"},
    "node_groups": {
        "gpu-workers": {**_GROUP, "instance_type": "1A100.22V"},
        "gpu-spot": {**_GROUP, "instance_type": "1H100.80S.30V", "instance_option": "spot_only"},
        "sold-out": {**_GROUP, "instance_type": "1GB300.32V", "image": "ubuntu-24.04"},
    },
}


class DemoFailed(ProviderError):
    """Something did not happen in time."""


class Stage:
    """Both processes in one directory. Leaving the context stops them."""

    def __init__(self, directory: Path, console: Console) -> None:
        self.directory = directory
        self.console = console
        self.database = directory / "provider.db"
        self._ports = {name: free_port() for name in ("simulator", "grpc", "http")}
        self._exit = ExitStack()
        self._clock = SystemClock()
        self._provider: subprocess.Popen[bytes] | None = None
        self.client = Client(f"127.0.0.1:{self._ports['grpc']}")

    def __enter__(self) -> Self:
        (self.directory / "simulator.yaml").write_text(yaml.safe_dump(SIMULATOR_SETTINGS))
        settings = {
            **PROVIDER_SETTINGS,
            "listen": f"127.0.0.1:{self._ports['grpc']}",
            "http": {"listen": f"127.0.0.1:{self._ports['http']}"},
            "database": str(self.database),
            "verda": {
                "base_url": f"http://127.0.0.1:{self._ports['simulator']}/v1",
                "client_id": "simulator",
                "client_secret": "simulator",
                "rate_share": 1,
            },
        }
        (self.directory / "config.yaml").write_text(yaml.safe_dump(settings))
        self._exit.callback(self.client.close)
        config = str(self.directory / "simulator.yaml")
        self._exit.callback(_stop, self._spawn("simulate", "--port", str(self._ports["simulator"]), "--config", config))
        self.until("the simulator answers", lambda: self.sim("GET", "/health") is not None, _START_TIMEOUT_S)
        self.start_provider()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._provider is not None:
            _stop(self._provider)
        self._exit.close()

    def _spawn(self, command: str, *arguments: str) -> "subprocess.Popen[bytes]":
        log = self._exit.enter_context((self.directory / f"{command}.log").open("ab"))
        return subprocess.Popen(  # noqa: S603 - our own program with our own arguments
            [sys.executable, "-m", "app.cli.main", command, *arguments], stdout=log, stderr=log
        )

    def start_provider(self) -> None:
        """Start the provider and wait until it answers RPCs."""
        self._provider = self._spawn("serve", "--config", str(self.directory / "config.yaml"))
        self.until("the provider answers", self._answers, _START_TIMEOUT_S)

    def kill_provider(self) -> None:
        """SIGKILL: the process gets no chance to finish anything."""
        if self._provider is not None:
            self._provider.send_signal(signal.SIGKILL)
            self._provider.wait()

    def _answers(self) -> bool:
        if self._provider is not None and self._provider.poll() is not None:
            tail = (self.directory / "serve.log").read_text()[-600:]
            raise DemoFailed(f"the provider ended with exit code {self._provider.returncode}: {tail}")
        try:
            return bool(self.client.node_groups())
        except CallFailed:
            return False

    def sim(self, method: str, path: str, body: object = None) -> Any:
        """A call of the simulator's control plane; None while it does not answer."""
        try:
            return control(f"http://127.0.0.1:{self._ports['simulator']}/_sim", method, path, body)
        except urllib.error.HTTPError as error:
            raise DemoFailed(f"the simulator refused {method} {path}: {error.read()[:300]!r}") from error
        except OSError:
            return None

    def until(self, what: str, condition: Callable[[], bool], timeout_s: float = 15.0) -> float:
        """Wait for something; how long it took, in seconds.

        Raises:
            DemoFailed: it did not come about in time.
        """
        began = self._clock.monotonic()
        while not condition():
            if self._clock.monotonic() - began > timeout_s:
                raise DemoFailed(f"{what}: not within {timeout_s:.0f} s")
            time.sleep(_POLL_S)  # noqa: TID251 - a script for people, bounded by the timeout
        return self._clock.monotonic() - began


def _stop(process: "subprocess.Popen[bytes]") -> None:
    process.terminate()
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
