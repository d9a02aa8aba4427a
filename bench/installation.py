"""A simulated cloud and a provider as real processes."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from app.cli.ports import free_port
from app.rpc.client import CallFailed, Client
from app.simulator.remote import control

_START_S = 120.0
_STOP_S = 60.0


class Installation:
    """Both in one directory; leaving the context ends both. `cloud` are the simulator's own settings."""

    def __init__(self, directory: Path, cloud: Mapping[str, Any], provider: Mapping[str, Any]) -> None:
        self.directory = directory
        self.database = directory / "provider.db"
        self.address = f"127.0.0.1:{free_port()}"
        self.client = Client(self.address)
        self._http = f"http://127.0.0.1:{free_port()}"
        self._cloud, self._settings = cloud, provider
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        (self.directory / "cloud.yaml").write_text(yaml.safe_dump(dict(self._cloud)), encoding="utf-8")
        simulator = self._spawn("simulate", "--port", "0", "--config", str(self.directory / "cloud.yaml"))
        assert simulator.stdout is not None
        words = simulator.stdout.readline().replace(",", "").split()
        self._control = words[words.index("control") + 1]
        verda = {"base_url": words[words.index("url") + 1], "client_id": "simulator", "client_secret": "simulator"}
        settings = {
            "cluster_name": "bench",
            "listen": self.address,
            "http": {"listen": self._http.removeprefix("http://")},
            "database": str(self.database),
            "logging": {"level": "warning", "format": "json"},
            **self._settings,
            "verda": {**verda, **self._settings.get("verda", {})},
        }
        path = self.directory / "config.yaml"
        path.write_text(yaml.safe_dump(settings), encoding="utf-8")
        self.provider = self._spawn("--config", str(path))
        until(self._serves, _START_S, "the provider answers")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.client.close()
        self._exit.close()

    def _spawn(self, *arguments: str) -> "subprocess.Popen[str]":
        errors = self._exit.enter_context((self.directory / "errors.log").open("a"))
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("VERDA_", "DATA"))}
        process = subprocess.Popen(
            [sys.executable, "-m", "app.cli.main", *arguments],
            stdout=subprocess.PIPE if arguments[0] == "simulate" else errors,
            stderr=errors,
            env=environment,
            text=True,
        )
        self._exit.callback(_end, process)
        return process

    def _serves(self) -> bool:
        assert self.provider.poll() is None, (self.directory / "errors.log").read_text(encoding="utf-8")[-3000:]
        try:
            return bool(self.client.node_groups())
        except CallFailed:
            return False

    def stop(self) -> int:
        """Ask the provider to end; its exit code."""
        self.provider.terminate()
        return self.provider.wait(_STOP_S)

    def control(self, method: str, path: str, body: object = None) -> Any:
        """A call of the simulator's control plane."""
        return control(self._control, method, path, body)

    def truth(self) -> Mapping[str, Any]:
        """What really exists and existed."""
        found: Mapping[str, Any] = self.control("GET", "/truth")
        return found

    def resident_mib(self) -> float:
        """Memory that the provider occupies."""
        pages = int(Path(f"/proc/{self.provider.pid}/statm").read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def until(condition: Callable[[], bool], longest_s: float, what: str, pause_s: float = 0.1) -> None:
    """Wait for something to become true. Raises: TimeoutError."""
    end = time.monotonic() + longest_s
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError(f"{what}: not within {longest_s:g} s")
        time.sleep(pause_s)  # noqa: TID251 - other processes are at work


def _end(process: "subprocess.Popen[str]") -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()
