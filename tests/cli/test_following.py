"""Commands that go on until Ctrl-C, while somebody writes."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from tests.e2e.harness import ROOT
from tests.store.harness import CA, one_more, opened, start


@contextmanager
def going_on(*arguments: str | Path) -> Iterator[IO[str]]:
    """What a command prints, line by line; it must end by itself once it is interrupted."""
    command = [sys.executable, "-m", "app.cli.main", *map(str, arguments)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout
            process.send_signal(signal.SIGINT)
            process.stdout.read()
            assert process.wait(60) == 0
        finally:
            process.kill()


def test_events_are_followed_while_they_are_written(tmp_path: Path) -> None:
    """First what there is, then each new one, as JSON lines for those who pipe it on."""
    database = tmp_path / "provider.db"
    with opened(database) as ledger:
        start(ledger)
        with going_on("events", "--follow", "--limit", "1", "--output", "json", "--database", database) as told:
            assert json.loads(told.readline())["type"] == "cloud.reachable"
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
            assert json.loads(told.readline())["what"] == "1 more wanted in gpu: target size 1"
            assert json.loads(told.readline())["what"] == "gpu-aaaaaaaa wanted"


def test_a_table_is_watched_until_the_world_has_changed(tmp_path: Path) -> None:
    """The same question again and again, each time to the database of that moment."""
    database = tmp_path / "provider.db"
    with opened(database) as ledger:
        start(ledger)
        with going_on("groups", "--watch", "--database", database) as told:
            assert told.readline().split()[:4] == ["node_group", "target_size", "running", "creating"]
            assert told.readline().split()[:4] == ["gpu", "0", "0", "0"]
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
            changed = next(line for line in told if line.startswith("gpu ") and line.split()[1] == "1")
            assert changed.split()[2:4] == ["0", "1"]


def test_an_explanation_is_watched(tmp_path: Path) -> None:
    """Why does it not grow, until it does."""
    database = tmp_path / "provider.db"
    with opened(database) as ledger:
        start(ledger)
        with going_on("explain", "gpu", "--watch", "--database", database) as told:
            assert next(line for line in told if "Target size" in line).strip() == "Target size 0, no instances."
            ledger.execute(one_more("gpu-aaaaaaaa"), CA)
            assert next(line for line in told if "Target size 1" in line).strip() == "Target size 1: 1 requested."
