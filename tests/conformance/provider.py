"""The provider under test as a process of its own, and the stage it plays on."""

import os
import re
import signal
import sqlite3
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

from app.cli.ports import free_port

from .cloud import Cloud
from .settings import verda_settings
from .until import until

ROOT: Final = Path(__file__).parents[2]
SERVE: Final = (sys.executable, "-m", "app.cli.main", "serve")

_START_TIMEOUT_S = 40.0


class NotStartedError(RuntimeError):
    """The provider ended or hung before it was ready."""


class Provider:
    """`serve` with a database in a directory of its own; can be killed and started again on it."""

    def __init__(self, directory: Path, base_url: str, settings: Mapping[str, Any], command: Sequence[str]) -> None:
        self.directory = directory
        self.address = f"127.0.0.1:{free_port()}"
        self.http = f"127.0.0.1:{free_port()}"
        self.settings = dict(settings)
        self._base_url = base_url
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """Everything it has said, over all its lives."""
        return self.directory / "serve.log"

    def start(self) -> None:
        """Start and wait until it says that it is ready."""
        config = self.directory / "config.yaml"
        addresses = {"listen": self.address, "http": {"listen": self.http}}
        database = {"database": str(self.directory / "provider.db")}
        config.write_text(
            yaml.safe_dump(
                {**addresses, **database, "verda": verda_settings(self._base_url), **self.settings}, sort_keys=False
            )
        )
        said = self.log.stat().st_size if self.log.exists() else 0
        with self.log.open("ab") as log:
            process = subprocess.Popen([*self._command, "--config", str(config)], cwd=ROOT, stdout=log, stderr=log)
        self._process = process
        until("the provider is ready", lambda: self._is_ready(process, said), _START_TIMEOUT_S)

    def _is_ready(self, process: "subprocess.Popen[bytes]", said: int) -> bool:
        words = self.log.read_bytes()[said:]
        if process.poll() is not None:
            raise NotStartedError(f"exit code {process.returncode}: {words[-2000:].decode(errors='replace')}")
        return b"\nready: " in b"\n" + words

    def kill(self) -> None:
        """SIGKILL: no chance to finish anything."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()

    def stop(self) -> None:
        """SIGTERM, then SIGKILL for one that does not obey."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self.kill()

    @contextmanager
    def database_locked(self) -> Iterator[None]:
        """Nobody can write the database while the block lasts: somebody's shell holds its lock."""
        shell = sqlite3.connect(self.directory / "provider.db", isolation_level=None)
        try:
            shell.execute("BEGIN IMMEDIATE")
            yield
            shell.execute("ROLLBACK")
        finally:
            shell.close()

    def metrics(self, name: str, **labels: str) -> float:
        """The sum of a metric's samples that carry these labels."""
        with urllib.request.urlopen(f"http://{self.http}/metrics/", timeout=5) as answer:
            text = answer.read().decode()
        wanted = [f'{key}="{value}"' for key, value in labels.items()]
        samples = re.findall(rf"^{name}(?:\{{(.*)\}})? (\S+)$", text, re.MULTILINE)
        return sum(float(value) for found, value in samples if all(pair in found for pair in wanted))

    def instances(self, state: str, *groups: str) -> int:
        """How many listed instances of these groups the books have in one of our own states."""
        return sum(round(self.metrics("verda_ca_instances", node_group=group, state=state)) for group in groups)


class Stage:
    """A cloud and a provider. Leaving the context ends both."""

    def __init__(
        self, directory: Path, settings: Mapping[str, Any], command: Sequence[str] = SERVE, **cloud: Any
    ) -> None:
        self.cloud = Cloud(**cloud)
        self.provider = Provider(directory, self.cloud.base_url, settings, command)

    @property
    def address(self) -> str:
        """Where the provider answers."""
        return self.provider.address

    def __enter__(self) -> Self:
        try:
            self.provider.start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def _end(self) -> None:
        self.provider.kill()
        self.cloud.stop()


def command_for(fault: str | None) -> tuple[str, ...]:
    """How the provider is started: as it is, or with one deliberate fault."""
    return SERVE if fault is None else (sys.executable, "-m", "tests.conformance.faults", fault, "serve")


assert os.access(ROOT / "app", os.R_OK), "the suite stands two directories below the project's root"
