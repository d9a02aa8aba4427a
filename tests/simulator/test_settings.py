"""The configuration: presets, overrides, files, mistakes, and who may listen where."""

import statistics
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import requests

from app.clock import FakeClock
from app.errors import ConfigurationError
from app.simulator.chance import Chance
from app.simulator.config import SimulatorConfig, load_config, parse_config
from app.simulator.http import Simulator
from app.simulator.span import Span
from app.simulator.world import World
from tests.simulator.harness import Harness, order

Make = Callable[..., Harness]


def test_every_duration_can_be_overridden_alone() -> None:
    """A preset fills what is not given."""
    config = parse_config({"durations": {"preset": "demo", "deleting": 1}})
    assert config.durations.deleting.seconds == 1
    assert (config.durations.ordering.low, config.durations.ordering.high) == (2, 4)
    assert SimulatorConfig().durations.provisioning.median == 110


def test_a_demo_machine_runs_after_about_twenty_seconds() -> None:
    """POST to running in the demo preset: between 17 and 24 s, whatever the draw."""
    times = []
    for seed in range(20):
        config = parse_config({"seed": seed, "clock": {"mode": "manual"}, "durations": {"preset": "demo"}})
        world = World(config, FakeClock())
        item = world.instances.create(order(), world.scripts, world.keys)
        world.advance(timedelta(minutes=1))
        assert item.first_running_ms is not None
        times.append((item.first_running_ms - item.created_ms) / 1000)
    assert min(times) >= 17
    assert max(times) <= 24
    assert 18 <= statistics.mean(times) <= 22


def test_realistic_durations_have_the_documented_spread() -> None:
    """A thousand draws of provisioning: median near 110 s, 95 % near 360 s, none beyond the clips."""
    span = SimulatorConfig().durations.provisioning
    drawn = sorted(span.draw(Chance(1).stream("provisioning", number)) for number in range(1000))
    assert 95 <= drawn[500] <= 125
    assert 300 <= drawn[950] <= 430
    assert drawn[0] >= 30
    assert drawn[-1] <= 900


def test_profiles_fill_the_chances() -> None:
    """Calm is quiet; hostile spoils one request in five of each kind, and a single chance can be taken back."""
    calm, hostile = SimulatorConfig(), parse_config({"profile": "hostile", "chances": {"stuck": 0}})
    assert (calm.capacity_mode, calm.price_walk, calm.chances.requests) == ("fixed", False, {})
    assert (calm.latency_scale, hostile.latency_scale) == (0, 1)
    assert (hostile.capacity_mode, hostile.price_walk, hostile.chances.stuck) == ("walk", True, 0)
    for kind in ("create_", "list_"):
        total = sum(share for name, share in hostile.chances.requests.items() if name.startswith(kind))
        assert total == pytest.approx(0.2, abs=0.05)


def test_a_file_is_read(tmp_path: Path) -> None:
    """YAML with sections; durations as number, range or distribution."""
    path = tmp_path / "simulator.yaml"
    path.write_text(
        "seed: 5\n"
        "clock: {mode: scaled, factor: 60}\n"
        "durations:\n  preset: fast\n  deleting: {low: 1, high: 2}\n"
        "auth: {clients: {me: secret}}\n"
        "scripts: [{name: join, text: '#!/bin/sh', id: 11111111-0000-4000-8000-000000000001}]\n"
        "ssh_keys: [{name: me, text: ssh-ed25519 AAAA}]\n",
        encoding="utf-8",
    )
    config = load_config(path)
    assert (config.seed, config.clock.factor, config.durations.deleting.high) == (5, 60, 2)
    assert "secret" not in repr(config)
    world = World(config, FakeClock())
    assert world.scripts.get("11111111-0000-4000-8000-000000000001").name == "join"
    assert len(world.keys) == 1


@pytest.mark.parametrize(
    ("data", "path"),
    [
        ({"sead": 1}, "sead"),
        ({"profile": "kind"}, "profile"),
        ({"clock": {"factor": 0}}, "clock.factor"),
        ({"durations": {"deleting": {"low": 3}}}, "durations.deleting"),
        ({"durations": {"deleting": {"low": 3, "high": 2}}}, "durations.deleting"),
        ({"durations": {"deleting": {"median": 3}}}, "durations.deleting"),
        ({"durations": {"preset": "slow"}}, "durations.preset"),
        ({"chances": {"requests": {"nonsense": 0.1}}}, "chances"),
    ],
)
def test_mistakes_are_named(data: dict[str, Any], path: str) -> None:
    """Unknown keys and senseless values are errors with their place."""
    with pytest.raises(ConfigurationError) as caught:
        parse_config(data)
    assert path in {problem.path for problem in caught.value.problems}


@pytest.mark.parametrize("text", ["- 1\n", "a: [\n"])
def test_files_that_make_no_sense(tmp_path: Path, text: str) -> None:
    """No mapping, no YAML, no file."""
    path = tmp_path / "simulator.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError):
        load_config(path)
    with pytest.raises(ConfigurationError):
        load_config(tmp_path / "missing.yaml")


def test_an_empty_file_is_the_default(tmp_path: Path) -> None:
    """Nothing said, nothing changed."""
    path = tmp_path / "simulator.yaml"
    path.write_text("", encoding="utf-8")
    assert load_config(path) == SimulatorConfig()


def test_where_time_begins() -> None:
    """Now, unless the clock is manual or the configuration says otherwise."""
    now = datetime(2027, 3, 4, tzinfo=UTC)
    assert SimulatorConfig().epoch(now) == now
    assert parse_config({"clock": {"mode": "manual"}}).epoch(now) == datetime(2026, 1, 5, tzinfo=UTC)
    begin = datetime(2026, 6, 1, tzinfo=UTC)
    assert parse_config({"clock": {"epoch": begin}}).epoch(now) == begin


def test_beyond_loopback_needs_a_key() -> None:
    """A control plane that anybody can reach is refused; with a key, or without the control plane, it may be."""
    with pytest.raises(ConfigurationError, match="control_key"):
        Simulator(SimulatorConfig(), host="0.0.0.0")


def test_the_control_key_is_asked_for(make: Make) -> None:
    """401 without it; and `control: false` hides the control plane altogether."""
    sim = make(control_key="open-sesame")
    health = f"{sim.simulator.control_url}/health"
    assert requests.get(health, timeout=5).status_code == 401
    assert requests.get(health, headers={"X-Sim-Key": "open-sesame"}, timeout=5).status_code == 200
    hidden = make(control=False)
    assert requests.get(f"{hidden.simulator.control_url}/health", timeout=5).status_code == 404


def test_a_simulator_that_never_started_can_be_stopped(tmp_path: Path) -> None:
    """It lets go of its port; its world is kept all the same."""
    path = tmp_path / "world.json"
    simulator = Simulator(parse_config({"state_file": path}))
    simulator.stop()
    simulator.stop()
    assert path.exists()
    Simulator(SimulatorConfig(), port=simulator.port).stop()


def test_latency_takes_real_time(make: Make) -> None:
    """50 ms scaled by two."""
    sim = make(latency={"scale": 2, "read": 0.05, "token": 0, "write": 0})
    sim.login()
    assert sim.raw("GET", "/balance").elapsed.total_seconds() >= 0.1


def test_ids_may_be_quoted_for_all(make: Make) -> None:
    """Third parties report quoted ids; the switch makes every POST answer so."""
    sim = make(behaviour={"quoted_ids": True})
    assert sim.raw("POST", "/instances", json=order()).json() == sim.truth()["instances"][0]["id"]


def test_history_may_be_forgotten(make: Make) -> None:
    """An hour after its end GET by id no longer knows a machine."""
    sim = make(behaviour={"history_ttl_s": 3600})
    instance_id = sim.running()
    sim.client().instances.action(instance_id, "delete")
    sim.advance(10 + 3600)
    assert sim.status(instance_id) == "discontinued"
    sim.advance(1)
    assert sim.raw("GET", f"/instances/{instance_id}").status_code == 404


def test_new_comes_before_ordered_when_configured(make: Make) -> None:
    """A first status `new` of three seconds."""
    sim = make(durations={"preset": "fast", "new": 3, "ordering": 5})
    instance_id = sim.create()
    assert sim.status(instance_id) == "new"
    sim.advance(3)
    assert sim.status(instance_id) == "ordered"


def test_an_eviction_may_show_deleting_first(make: Make) -> None:
    """With evict_via_deleting the history has both statuses."""
    sim = make(behaviour={"evict_via_deleting": True})
    instance_id = sim.running(is_spot=True)
    sim.preset("evict")
    assert sim.status(instance_id) == "discontinued"
    journal = sim.raw("GET", f"/journal/compute/{instance_id}").json()
    assert "deleting" in {row["action_code"] for row in journal}


def test_bare_numbers_are_spans() -> None:
    """A number, drawn, is itself."""
    assert Span.model_validate(3).draw(Chance(1).stream("x", 1)) == 3
