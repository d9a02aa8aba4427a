"""An operator at the door of a real server, and the autoscaler at its port."""

import subprocess
import sys
from pathlib import Path

import pytest

from app.rpc.client import CallFailed
from tests.e2e.harness import GROUP, ROOT, Provider, clean_environment, simulator, until


def typed(provider: Provider, *arguments: str) -> tuple[int, str]:
    """A command about this server: its exit code and what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", *arguments, "--database", str(provider.database)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=clean_environment(),
        timeout=100,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def test_a_pause_holds_the_autoscaler_off_over_a_restart_until_it_is_resumed(tmp_path: Path) -> None:
    """It is told that the group is full, and refused if it asks anyway."""
    with simulator() as sim, Provider(tmp_path, sim, {"gpu-workers": GROUP}) as provider:
        provider.client.increase_size("gpu-workers", 1)
        code, told = typed(provider, "pause", "gpu-workers", "--reason", "new driver")
        assert (code, "gpu-workers paused by" in told) == (0, True)
        assert [group.maxSize for group in provider.client.node_groups()] == [1]
        provider.kill()
        provider.start()
        with pytest.raises(CallFailed, match=r"FAILED_PRECONDITION: node group gpu-workers is paused .* new driver"):
            provider.client.increase_size("gpu-workers", 1)
        assert "Paused since" in typed(provider, "explain", "gpu-workers")[1]
        assert "served by process" in typed(provider, "status")[1]
        assert typed(provider, "resume", "gpu-workers", "--reason", "driver is out")[0] == 0
        assert [group.maxSize for group in provider.client.node_groups()] == [10]
        provider.client.increase_size("gpu-workers", 1)
        code, told = typed(provider, "pause", "gpu", "--reason", "a slip")
        assert (code, "there is no node group 'gpu': known are gpu-workers" in told) == (2, True)
        until(lambda: provider.states("gpu-workers") == [1, 1], what="both run")
        assert provider.stop()[0] == 0
        code, told = typed(provider, "pause", "gpu-workers", "--reason", "x")
        assert (code, "start it, or name its --database" in told) == (3, True)
