"""The stage: the simulated cloud as a process of its own, a mother of provider processes, and a directory."""

import contextlib
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import yaml

from app.cli.ports import free_port
from app.rpc.client import CallFailed, Client
from app.simulator.remote import control
from tests.e2e.harness import ROOT, clean_environment

_LONGEST_START_S = 120.0
_IMAGE = "ubuntu-24.04-cuda-12.8-open-docker"
_PATIENCE: Mapping[str, Any] = {"create_timeout": "20s", "provision_timeout": "40s"}

GROUPS: Mapping[str, Mapping[str, Any]] = {
    "gpu": {
        "instance_type": "1H100.80S.30V",
        "image": _IMAGE,
        "locations": ["FIN-01", "FIN-02"],
        "max_size": 6,
        **_PATIENCE,
    },
    "gpu-spot": {
        "instance_type": "1H100.80S.30V",
        "image": _IMAGE,
        "locations": ["FIN-02", "FIN-01"],
        "instance_option": "prefer_spot",
        "max_size": 6,
        **_PATIENCE,
    },
    "cpu": {
        "instance_type": "CPU.4V.16G",
        "image": "ubuntu-24.04",
        "location": "FIN-03",
        "max_size": 4,
        **_PATIENCE,
    },
}
TIME_FACTOR = 10
"""Simulated seconds a second: what the cloud takes minutes for takes seconds here."""
LIST_LAG_S = 5
"""Lists are up to 30 simulated seconds old."""
CLOUD: Mapping[str, Any] = {
    "profile": "hostile",
    "clock": {"mode": "scaled", "factor": TIME_FACTOR},
    "latency": {"scale": 0.2},
    "limits": {"enabled": False},
    "durations": {
        "preset": "demo",
        "provisioning": {"low": 5, "high": 30},
        "deleting": {"low": 1, "high": 40},
    },
}


class DiedByItself(AssertionError):
    """The provider's process ended although nobody had killed it."""


class Stage:
    """Everything with a process id. Leaving the context ends all of it."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.database = directory / "provider.db"
        self.log = directory / "provider.log"
        self.config = directory / "config.yaml"
        self.copies = directory / "backups"
        self.address = f"127.0.0.1:{free_port()}"
        self._directory = directory
        self._seed = seed
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        cloud = self._directory / "cloud.yaml"
        cloud.write_text(yaml.safe_dump({**CLOUD, "seed": self._seed}))
        simulator = self._spawn("-m", "app.cli.main", "simulate", "--port", "0", "--config", str(cloud))
        self._mother = self._spawn("-m", "tests.torture.mother")
        ready = self._line(simulator)
        words = ready.replace(",", "").split()
        base_url, self._control_url = words[words.index("url") + 1], words[words.index("control") + 1]
        self.config.write_text(yaml.safe_dump(self._settings(base_url)))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._exit.close()

    def _settings(self, base_url: str) -> Mapping[str, Any]:
        return {
            "cluster_name": "torture",
            "listen": self.address,
            "http": {"listen": f"127.0.0.1:{free_port()}"},
            "database": str(self.database),
            "verda": {
                "base_url": base_url,
                "client_id": "simulator",
                "client_secret": "simulator",
                "timeout": "2s",
                "list_lag": f"{LIST_LAG_S}s",
                "rate_share": 1,
            },
            # As fast as the API allows one client; housekeeping checkpoints the write-ahead log.
            "intervals": {"observe": "500ms", "catalog": "5s", "housekeeping": "1s"},
            "backup": {"every": "1s", "keep": 5},
            "logging": {"level": "warning", "format": "json"},
            "node_groups": GROUPS,
        }

    def _spawn(self, *arguments: str) -> "subprocess.Popen[str]":
        errors = self._exit.enter_context((self._directory / "errors.log").open("a"))
        process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            cwd=ROOT,
            env=clean_environment(),
            text=True,
        )
        self._exit.callback(_end, process)
        return process

    @staticmethod
    def _line(process: "subprocess.Popen[str]") -> str:
        assert process.stdout is not None
        line = process.stdout.readline().strip()
        assert line, f"{process.args!r} ended without a word"
        return line

    def _tell_mother(self, command: str) -> str:
        assert self._mother.stdin is not None
        self._mother.stdin.write(command + "\n")
        self._mother.stdin.flush()
        return self._line(self._mother)

    # --- lives of the provider

    def start(self) -> None:
        """A life begins; it is not waited for."""
        self._tell_mother(f"start {self.log} {self.config}")

    def kill(self) -> None:
        """SIGKILL. Raises: DiedByItself."""
        self._ended(self._tell_mother("kill"), allowed="killed")

    def kill_while_stopping(self, after_s: float) -> None:
        """SIGTERM, and a moment later SIGKILL, if it still lives. Raises: DiedByItself."""
        self._tell_mother("stop")
        pause(after_s)
        answer = self._tell_mother("kill")
        if answer != "ended 0":
            self._ended(answer, allowed="killed")

    def stop(self) -> None:
        """SIGTERM, and wait. Raises: DiedByItself, if it does not end well."""
        self._tell_mother("stop")
        self._ended(self._tell_mother("wait"), allowed="ended 0")

    def _ended(self, answer: str, *, allowed: str) -> None:
        if answer != allowed:
            tail = self.log.read_text()[-3000:] if self.log.exists() else ""
            raise DiedByItself(f"the provider {answer}, not {allowed}: {tail}")

    def answers(self) -> bool:
        """RPCs are answered."""
        try:
            with Client(self.address) as client:
                return bool(client.node_groups())
        except CallFailed:
            return False

    # --- the cloud

    def control(self, method: str, path: str, body: object = None) -> Any:
        """A call of the simulator's control plane."""
        return control(self._control_url, method, path, body)

    def truth(self) -> Mapping[str, Any]:
        """What really exists."""
        found: Mapping[str, Any] = self.control("GET", "/truth")
        return found

    def machines(self) -> Sequence[Mapping[str, Any]]:
        """Machines that exist."""
        return [item for item in self.truth()["instances"] if item["ended"] is None]

    def calm(self) -> None:
        """No more faults, and what is stuck goes on."""
        self.control("DELETE", "/faults")
        for item in self.machines():
            if item["status"] in {"ordered", "provisioning", "validating", "deleting"}:
                with contextlib.suppress(urllib.error.HTTPError):  # it is gone meanwhile
                    self.control("POST", f"/instances/{item['id']}/unstick", {})


def pause(seconds: float) -> None:
    """Let the other processes run."""
    time.sleep(seconds)  # noqa: TID251 - a kill comes at a random instant


def until(condition: Callable[[], bool], what: str, longest_s: float = _LONGEST_START_S) -> None:
    """Wait for something to become true. Raises: AssertionError, if it does not."""
    end = time.monotonic() + longest_s
    while not condition():
        assert time.monotonic() < end, f"{what}: not within {longest_s:g} s"
        pause(0.02)


def _end(process: "subprocess.Popen[str]") -> None:
    """Its input ends, and if it does not care, it is told."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.close()
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    process.stdout.close()
