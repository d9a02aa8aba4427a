"""The books are lost, or older ones are put back: with real processes and the commands that operators type."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from app.rpc.client import CallFailed
from app.simulator.http import Simulator
from tests.e2e.harness import GROUP, ROOT, Provider, alive, clean_environment, control, simulator, until


def type_(*words: object) -> tuple[int, str]:
    """A command: its exit code and all it says."""
    command = [sys.executable, "-m", "app.cli.main", *(str(word) for word in words)]
    done = subprocess.run(
        command, cwd=ROOT, env=clean_environment(), capture_output=True, text=True, check=False, timeout=100
    )
    return done.returncode, done.stdout + done.stderr


def truth(sim: Simulator) -> dict[str, Any]:
    """What the cloud knows."""
    found: dict[str, Any] = control(sim, "GET", "/truth")
    return found


def listed(provider: Provider) -> list[str]:
    """Names of the group's instances."""
    return sorted(instance.id.removeprefix("verda://") for instance in provider.client.instances("gpu-workers"))


def test_an_older_backup_is_put_back_and_nothing_is_bought_twice(tmp_path: Path) -> None:
    """§7: made while it runs, refused while it runs, put back after a kill; books and cloud agree again."""
    with simulator() as sim, Provider(tmp_path, sim, {"gpu-workers": GROUP}) as provider:
        provider.client.increase_size("gpu-workers", 2)
        until(lambda: provider.states("gpu-workers") == [1, 1], what="two running")
        code, out = type_("backup", "--database", provider.database)
        assert code == 0, out
        old = listed(provider)
        provider.client.increase_size("gpu-workers", 1)
        provider.client.delete_nodes("gpu-workers", [f"verda://{old[0]}"])
        until(lambda: provider.states("gpu-workers") == [1, 1], what="one came, one went")
        now = listed(provider)
        code, out = type_("restore", "newest", "--database", provider.database, "--discard-newer")
        assert (code, "in use by process" in out) == (4, True), out
        provider.kill()
        code, out = type_("restore", "newest", "--database", provider.database, "--discard-newer")
        assert code == 0, out
        provider.start()
        until(lambda: listed(provider) == now == alive(sim), what="the books are up to date")
        assert provider.states("gpu-workers") == [1, 1]
        assert truth(sim)["creates_committed"] == 3
        assert truth(sim)["foreign_deletes"] == 0
        code, out = type_("verify", "--database", provider.database)
        assert code == 0, out


def test_a_lost_database_waits_for_a_claim_and_then_serves_what_runs(tmp_path: Path) -> None:
    """F51: readiness says which machines, what they cost and what to type; typing it is all there is to do."""
    with simulator() as sim, Provider(tmp_path, sim, {"gpu-workers": GROUP}) as provider:
        provider.client.increase_size("gpu-workers", 2)
        until(lambda: provider.states("gpu-workers") == [1, 1], what="two running")
        names = listed(provider)
        provider.kill()
        for file in tmp_path.glob("provider.db*"):
            file.unlink()
        provider.launch()
        until(lambda: "claim-needed" in provider.get("/readyz")[1], what="readiness says why")
        status, body = provider.get("/readyz")
        assert status == 503
        assert "; they cost 2.58 an hour" in body
        assert all(name in body for name in names)
        with pytest.raises(CallFailed, match="UNAVAILABLE"):
            provider.client.node_groups()
        command = body.partition("run `verda-cloud-provider ")[2].partition("`")[0].split()
        assert command[0] == "claim"
        code, out = type_(*command, "--database", provider.database)
        assert code == 0, out
        until(lambda: provider.get("/readyz")[0] == 200, what="ready")
        until(lambda: listed(provider) == names, what="all are taken in")
        assert provider.client.target_size("gpu-workers") == 2
        assert truth(sim)["creates_committed"] == 2
