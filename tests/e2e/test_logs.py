"""One id through everything, the level while it runs, no secret anywhere: a real process, looked at from outside."""

import json
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from app.domain.ids import Mark
from tests.e2e.harness import GROUP, ROOT, Provider, clean_environment, control, simulator, until

SECRET = "k9-horse-battery-staple"
TOKEN = "kube-token-of-the-older-kind"
JOIN_TOKEN = "abcdef.0123456789abcdef"
PAGE_TOKEN = "0a1b2c3d4e5f60718293"


def changed(provider: Provider, **sections: dict[str, Any]) -> None:
    """Other settings than the usual ones, before the start."""
    settings = yaml.safe_load(provider.config.read_text())
    for name, section in sections.items():
        settings[name] = {**settings.get(name, {}), **section}
    provider.config.write_text(yaml.safe_dump(settings))


def logged(provider: Provider) -> list[dict[str, Any]]:
    """The log's lines, without the one that people see at start."""
    return [json.loads(line) for line in provider.log.read_text().splitlines() if line.startswith("{")]


def seen(provider: Provider, event: str, **keys: str) -> list[dict[str, Any]]:
    """The lines with this message and these values."""
    return [line for line in logged(provider) if line["event"] == event and keys.items() <= line.items()]


def test_one_id_leads_from_the_autoscalers_call_to_the_machine(tmp_path: Path) -> None:
    """Call, events, job, call of the API, and the description that Verda's console shows."""
    with simulator() as sim, Provider(tmp_path, sim, {"gpu-workers": GROUP}) as provider:
        provider.client.increase_size("gpu-workers", 1)
        until(lambda: seen(provider, "instance ordered"), what="the order is logged")
        (call,) = seen(provider, "rpc answered", rpc="NodeGroupIncreaseSize")
        request = call["correlation_id"]
        (ordered,) = seen(provider, "instance ordered", correlation_id=request)
        assert [line["outcome"] for line in seen(provider, "api call", correlation_id=request)] == ["ok"]
        (machine,) = control(sim, "GET", "/truth")["instances"]
        assert machine["description"].endswith(f" request={request}")
        mark = Mark.parse(machine["description"])
        assert mark is not None
        assert (mark.cluster, mark.group) == ("e2e", "gpu-workers")
    shell = sqlite3.connect(provider.database)
    try:
        told = shell.execute("SELECT type FROM events WHERE correlation_id = ? ORDER BY position", (request,))
        assert [row[0] for row in told] == [
            "nodegroup.scale-up-requested",
            "instance.requested",
            "instance.create-attempted",
            "instance.created",
        ]
    finally:
        shell.close()
    assert ordered["instance"] == machine["hostname"]


def test_a_signal_turns_the_debug_log_on_and_off(tmp_path: Path) -> None:
    """Without a restart, which might change what is to be seen."""
    with simulator() as sim:
        provider = Provider(tmp_path, sim, {"gpu-workers": GROUP})
        changed(provider, logging={"level": "info"})
        with provider:
            assert seen(provider, "rpc answered", level="debug") == []
            provider.send(signal.SIGUSR1)
            until(lambda: seen(provider, "log level changed by a signal", level="warning"), what="it says so")
            provider.client.target_size("gpu-workers")
            until(lambda: seen(provider, "rpc answered", level="debug"), what="every call is logged")
            provider.send(signal.SIGUSR1)
            until(lambda: len(seen(provider, "log level changed by a signal")) == 2, what="and again")
            before = len(seen(provider, "rpc answered", rpc="NodeGroupTargetSize"))
            provider.client.target_size("gpu-workers")
            provider.client.increase_size("gpu-workers", 1)
            until(lambda: seen(provider, "rpc answered", rpc="NodeGroupIncreaseSize"), what="writes are logged at info")
            assert len(seen(provider, "rpc answered", rpc="NodeGroupTargetSize")) == before


def test_no_secret_is_anywhere_that_people_look(tmp_path: Path) -> None:
    """F68: log at its loudest, database, metrics, pages, every command, `ps`: with orders, refusals, a join token."""
    settings = {
        "durations": {"preset": "fast"},
        "limits": {"enabled": False},
        "auth": {"clients": {"simulator": SECRET}, "token_ttl_s": 2},
    }
    with simulator(settings) as sim:
        (tmp_path / "join").write_text(JOIN_TOKEN)
        (tmp_path / "page_token").write_text(PAGE_TOKEN)
        values = {"server_url": "https://10.0.0.10:6443", "join_token": {"file": str(tmp_path / "join")}}
        joining = {**GROUP, "startup_script_template": "k3s", "script_values": values}
        groups = {"gpu-workers": joining, "wrong": {**GROUP, "image": "ubuntu-99.04"}}
        provider = Provider(tmp_path, sim, groups)
        http = {"token_file": str(tmp_path / "page_token")}
        changed(provider, kubernetes={"token": TOKEN}, verda={"client_secret": SECRET}, http=http)
        with provider:
            provider.client.increase_size("gpu-workers", 1)
            provider.client.increase_size("wrong", 1)
            until(lambda: provider.states("gpu-workers") == [1], what="one running")
            until(lambda: provider.client.instances("wrong")[0].status.errorInfo.errorCode, what="one refused")
            assert provider.get("/metrics/")[0] == 401
            pages = [provider.get(path, token=PAGE_TOKEN)[1] for path in ("/metrics/", "/readyz", "/healthz", "/")]
            pages.append(provider.command_line())
            assert JOIN_TOKEN in "".join(script.text for script in sim.world.state.scripts.values())
            tokens = {*sim.world.state.tokens, *sim.world.state.refresh_tokens}
        told = [
            asked(provider, *command)
            for command in (
                ("status",),
                ("events", "-n", "1000", "-o", "json"),
                ("export",),
                ("config", "show"),
                ("config", "check"),
                ("doctor",),
            )
        ]
    assert tokens
    everything = "\n".join([provider.log.read_text(), *pages, *told])
    stored = b"".join(path.read_bytes() for path in tmp_path.glob("provider.db*") if path.is_file())
    for secret in (SECRET, TOKEN, JOIN_TOKEN, PAGE_TOKEN, *tokens):
        assert secret not in everything
        assert secret.encode() not in stored
    assert "Bearer " not in everything


def asked(provider: Provider, *command: str) -> str:
    """Everything that a command prints."""
    option = "--config" if command[0] in {"config", "doctor"} else "--database"
    file = provider.config if option == "--config" else provider.database
    done = subprocess.run(
        [sys.executable, "-m", "app.cli.main", *command, option, str(file)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=clean_environment(),
        timeout=100,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    return done.stdout + done.stderr
