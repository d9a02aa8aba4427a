"""A world that goes on where it stopped."""

import json
import os
import signal
import subprocess
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from app.clock import FakeClock
from app.errors import ConfigurationError
from app.simulator.config import SimulatorConfig, parse_config
from app.simulator.http import Simulator
from app.simulator.runner import run
from app.simulator.storage import StateFile
from app.simulator.world import World
from tests.simulator.harness import TIMED, order

_RUN = """
import sys, threading
from pathlib import Path
from app.simulator.config import parse_config
from app.simulator.runner import run
config = parse_config({"durations": {"preset": "fast"}, "state_file": sys.argv[1]})
run(config, "127.0.0.1", 0, threading.Event())
"""


def _config(path: Path, **changes: Any) -> SimulatorConfig:
    return parse_config({**TIMED, "clock": {"mode": "real"}, "state_file": path, **changes})


def _create(simulator: Simulator, hostname: str) -> str:
    with simulator.world.lock:
        simulator.world.catch_up()
        world = simulator.world
        created = world.instances.create(order(hostname), world.scripts, world.keys)
        world.touch()
        return created.id


def test_a_stopped_world_goes_on(tmp_path: Path) -> None:
    """Stopped at 50 s and started an hour later: the hour has passed, the machine runs and was paid for."""
    clock = FakeClock()
    path = tmp_path / "deep" / "world.json"
    first = Simulator(_config(path), clock=clock)
    with first:
        instance_id = _create(first, "gpu-1")
        clock.advance(50)
    clock.advance(3600)
    with Simulator(_config(path, seed=99), clock=clock) as second:
        second.world.catch_up()
        item = second.world.state.instances[instance_id]
        assert item.status == "running"
        assert item.first_running_ms == item.created_ms + 105_000
        assert second.world.state.now_ms == item.created_ms + 3_650_000
        assert item.meter.bought == 3650 // 600 + 1
        assert second.world.state.seed == 7


def test_a_manual_clock_stands_still_while_stopped(tmp_path: Path) -> None:
    """Only a real clock goes on by itself."""
    clock = FakeClock()
    config = _config(tmp_path / "world.json", clock={"mode": "manual"})
    with Simulator(config, clock=clock) as first:
        first.world.advance(timedelta(seconds=50))
        now = first.world.state.now_ms
    clock.advance(3600)
    with Simulator(config, clock=clock) as second:
        second.world.catch_up()
        assert second.world.state.now_ms == now


def test_a_wall_clock_set_back_loses_nothing(tmp_path: Path) -> None:
    """The world does not go back in time."""
    clock = FakeClock()
    config = _config(tmp_path / "world.json")
    with Simulator(config, clock=clock) as first:
        clock.advance(50)
        first.world.catch_up()
        now = first.world.state.now_ms
    clock.step_wall(timedelta(days=-1))
    with Simulator(config, clock=clock) as second:
        second.world.catch_up()
        assert second.world.state.now_ms == now


def test_it_is_saved_in_the_background(tmp_path: Path) -> None:
    """A change reaches the file without a stop, and nothing is written when nothing changes."""
    path = tmp_path / "world.json"
    with Simulator(_config(path), clock=FakeClock()) as simulator:
        instance_id = _create(simulator, "gpu-1")
        for _ in range(300):
            if path.exists() and instance_id in path.read_text(encoding="utf-8"):
                break
            threading.Event().wait(0.02)
        else:
            pytest.fail("not saved")


def test_a_save_can_be_waited_for(tmp_path: Path) -> None:
    """What is confirmed to a client is on disk first."""
    path = tmp_path / "world.json"
    world = World(_config(path), FakeClock())
    store = StateFile(path, world)
    store.start()
    world.touch()
    store.save_now()
    assert json.loads(path.read_text(encoding="utf-8"))["format"] == 1
    store.stop()


def _start(path: Path) -> tuple[subprocess.Popen[str], str]:
    process = subprocess.Popen([sys.executable, "-c", _RUN, str(path)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    line = process.stdout.readline()
    return process, line.partition("base url ")[2].partition(",")[0]


def test_kill_dash_nine_forgets_nothing_that_was_answered(tmp_path: Path) -> None:
    """A machine whose id was answered a moment before the kill is there after the next start."""
    path = tmp_path / "world.json"
    process, base = _start(path)
    credentials = {"grant_type": "client_credentials", "client_id": "simulator", "client_secret": "simulator"}
    token = requests.post(f"{base}/oauth2/token", json=credentials, timeout=10).json()["access_token"]
    headers = {"Authorization": f"Bearer {token}"}
    answer = requests.post(f"{base}/instances", json=order(), headers=headers, timeout=10)
    os.kill(process.pid, signal.SIGKILL)
    process.communicate(timeout=10)
    process, base = _start(path)
    try:
        listed = requests.get(f"{base}/instances", headers=headers, timeout=10).json()
        assert [item["id"] for item in listed] == [answer.text]
    finally:
        process.kill()
        process.communicate(timeout=10)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"format": 2, "written_at": "2026-01-01T00:00:00Z", "world": {}}'])
def test_a_file_that_is_no_world_is_refused(tmp_path: Path, text: str) -> None:
    """It says which file, and is left alone."""
    path = tmp_path / "world.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError) as caught:
        Simulator(_config(path))
    assert caught.value.problems[0].source == str(path)
    assert path.read_text(encoding="utf-8") == text


def test_run_announces_itself_and_stops_when_told() -> None:
    """One ready line with the base url, then it serves until the event is set."""
    lines: list[str] = []
    ready, stop = threading.Event(), threading.Event()

    def announce(line: str) -> None:
        lines.append(line)
        ready.set()

    thread = threading.Thread(target=run, args=(SimulatorConfig(), "127.0.0.1", 0, stop, announce))
    thread.start()
    assert ready.wait(10)
    base = lines[0].partition("base url ")[2].partition(",")[0]
    assert requests.get(f"{base}/instance-types", timeout=5).status_code == 200
    stop.set()
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert len(lines) == 1
