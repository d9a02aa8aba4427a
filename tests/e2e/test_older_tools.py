"""Users of older tools: what their documentation shows starts here, scales 0 → 3 → 0, and leaves nothing behind."""

import base64
import json
import re
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import yaml

from app.cli.ports import free_port
from app.simulator.http import Simulator
from examples.power_api import PowerApi
from tests.e2e.harness import FAST, ROOT, Provider, alive, clean_environment, control, simulator, until, volumes

QUICK = {"intervals": {"observe": "500ms", "housekeeping": "2s"}, "verda": {"list_lag": "3s", "rate_share": 1}}
"""What only a test needs: looking more often than the API allows a client beside others."""

SCRIPT = "#!/bin/bash\ncurl -sfL https://get.k3s.io | K3S_TOKEN=hunter2-token sh -\necho ${#HOSTNAME}\n"
CLUSTER = {
    "node_configs": {
        "gpu": {
            "image_type": "ubuntu-24.04-cuda-12.8-open-docker",
            "ssh_key_ids": [],
            "instance_option": "prefer_spot",
            "disk_size_gb": 100,
            "pricing_option": "dynamic",
            "startup_script_base64": base64.b64encode(SCRIPT.encode()).decode(),
            "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}],
            "labels": {"example.com/pool": "gpu"},
        }
    }
}
SPOT_IS_OUT = {
    "match": {"method": "POST", "path": "/v1/instances", "body": {"contract": "SPOT"}},
    "times": -1,
    "phase": "before_commit",
    "action": {"kind": "bend", "steer": {"sold_out": True}},
}


class Older(Provider):
    """A provider that is started with another tool's words."""

    def __init__(
        self, directory: Path, sim: Simulator, words: Sequence[str], settings: Mapping[str, object], **environ: str
    ) -> None:
        super().__init__(directory, sim, {})
        self.config.write_text(yaml.safe_dump(dict(settings)), "utf-8")
        self._words = words
        self._environ = {
            "VERDA_BASE_URL": sim.base_url,
            "DATACRUNCH_CLIENT_ID": "simulator",
            "DATACRUNCH_CLIENT_SECRET": "simulator",
            **environ,
        }

    def start(self) -> None:
        """Start and wait until RPCs are answered, with patience for a busy machine."""
        self.launch()
        until(self._answers, timeout_s=90, what="the provider answers")

    def launch(self) -> None:
        """Start, without waiting."""
        ours = ("--port", str(self.grpc_port), "--http-port", str(self.http_port), "--database", str(self.database))
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "app.cli.main", "--config", str(self.config), *ours, *self._words],
                stdout=log,
                stderr=log,
                cwd=ROOT,
                env=clean_environment() | self._environ,
            )

    def up_and_down(self, sim: Simulator, group: str) -> list[str]:
        """0 → 3 → 0; the provider ids of the three. Nothing is left at the cloud."""
        assert self.client.target_size(group) == 0
        self.client.increase_size(group, 3)
        until(lambda: self.states(group) == [1, 1, 1], timeout_s=90, what="three running")
        ids = sorted(instance.id for instance in self.client.instances(group))
        self.client.delete_nodes(group, ids)
        until(lambda: self.states(group) == [], timeout_s=90, what="all gone")
        assert self.client.target_size(group) == 0
        until(lambda: alive(sim) == [], timeout_s=60, what="no machine left")
        until(lambda: volumes(sim) == [], timeout_s=60, what="no volume left")
        return ids


@contextmanager
def left_clean(settings: Mapping[str, Any] = FAST, own_scripts: int = 0) -> Iterator[Simulator]:
    """A simulated cloud in which nothing is left in the end but the operator's own scripts."""
    with simulator(settings) as sim:
        yield sim
        assert (alive(sim), volumes(sim), stored_scripts(sim)) == ([], [], own_scripts)


@contextmanager
def powered() -> Iterator[PowerApi]:
    """The reference power API on a free port."""
    with PowerApi() as api:
        thread = threading.Thread(target=api.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield api
        finally:
            api.shutdown()
            thread.join(10)


def orders(sim: Simulator) -> list[tuple[bool, str]]:
    """Whether spot, and the place, of every machine that there was."""
    with sim.world.lock:
        records = list(sim.world.state.instances.values())
    return [(record.is_spot, record.location) for record in records]


def stored_scripts(sim: Simulator) -> int:
    """How many startup scripts the project has."""
    with sim.world.lock:
        return len(sim.world.scripts)


def test_the_python_provider_s_example(tmp_path: Path) -> None:
    """Its documented file, its command: nothing has to be changed."""
    text = (ROOT / "examples" / "from-python-provider.yaml").read_text("utf-8")
    settings = yaml.safe_load(text) | QUICK
    group = settings["node_groups"]["cpu-workers"]
    keys = [{"id": key, "name": "key", "text": "ssh-ed25519 AAAA"} for key in group["ssh_key_ids"]]
    script = [{"id": group["startup_script_id"], "name": "join", "text": "#!/bin/sh\n"}]
    with left_clean({**FAST, "ssh_keys": keys, "scripts": script}, own_scripts=1) as sim:
        with Older(tmp_path, sim, ("--log-level", "INFO"), settings) as provider:
            names = {item.id for item in provider.client.node_groups()}
            assert names == {"gpu-workers", "cpu-workers"}
            provider.up_and_down(sim, "cpu-workers")
        assert orders(sim) == [(True, "FIN-03")] * 3


def test_the_datacrunch_provider_s_example(tmp_path: Path) -> None:
    """Flags and JSON; spot is out, so `prefer_spot` gets on demand and says so everywhere; no script is left."""
    environ = {"DATACRUNCH_CLUSTER_CONFIG": base64.b64encode(json.dumps(CLUSTER).encode()).decode()}
    with left_clean() as sim:
        control(sim, "POST", "/faults", SPOT_IS_OUT)
        words = ("--nodes=0:4:1A100.22V:FIN-01:gpu", "--log-level", "DEBUG")
        with Older(tmp_path, sim, words, QUICK, **environ) as provider:
            ids = provider.up_and_down(sim, "gpu")
            assert all(provider_id.startswith("datacrunch://") for provider_id in ids)
            until(lambda: stored_scripts(sim) == 0, timeout_s=60, what="no script left")
            pages = everything_told(provider)
        assert orders(sim) == [(False, "FIN-01")] * 3
        assert pages.count("hunter2") == 0
        assert b"hunter2" not in database(tmp_path)
        sent = requests(sim)
        assert [row["route"] for row in sent if "hunter2" in json.dumps(row)] == [
            "POST /scripts"
        ]  # shared by all three
        asked = [row["body"] for row in sent if row["route"] == "POST /instances"]
        ladder = [(body["is_spot"], body["contract"], body["location_code"]) for body in asked]
        assert set(ladder) == {(True, "SPOT", "FIN-01"), (False, "PAY_AS_YOU_GO", "FIN-01")}
        assert ladder.count((False, "PAY_AS_YOU_GO", "FIN-01")) == 3
        assert all(
            body["os_volume"]["on_spot_discontinue"] == "delete_permanently" for body in asked if body["is_spot"]
        )


def everything_told(provider: Provider) -> str:
    """Log, metrics, readiness, the dashboard, and every page of a group and an instance."""
    pages = [provider.get(path)[1] for path in ("/metrics", "/readyz", "/", "/instances", "/events", "/costs")]
    return "\n".join((provider.log.read_text("utf-8"), *pages))


def database(directory: Path) -> bytes:
    """The database with what lies beside it."""
    return b"".join(path.read_bytes() for path in directory.glob("provider.db*") if path.is_file())


def requests(sim: Simulator) -> list[dict[str, Any]]:
    """Everything that was asked of the cloud."""
    rows: list[dict[str, Any]] = control(sim, "GET", "/requests")
    return rows


def test_with_the_script_server_no_secret_ever_reaches_the_cloud(tmp_path: Path) -> None:
    """The older tool's own script, fetched from us once: what is uploaded is a stub, and nothing tells its token."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/script"
    settings = QUICK | {"startup_script_server": {"listen": f"127.0.0.1:{port}", "url": url}}
    environ = {"DATACRUNCH_CLUSTER_CONFIG": base64.b64encode(json.dumps(CLUSTER).encode()).decode()}
    with left_clean() as sim:
        words = ("--nodes=0:4:1A100.22V:FIN-01:gpu", "--log-level", "DEBUG")
        with Older(tmp_path, sim, words, settings, **environ) as provider:
            provider.client.increase_size("gpu", 1)
            until(lambda: stored_scripts(sim) == 1, timeout_s=90, what="the stub is stored")
            (stub,) = (row["body"]["script"] for row in requests(sim) if row["route"] == "POST /scripts")
            found = re.search(r"Bearer ([a-z2-7]{32})", stub)
            assert found is not None
            token = found[1]
            assert fetched(url, token) == (200, SCRIPT)
            assert fetched(url, token)[0] == 410
            assert fetched(url, "x" * 32)[0] == 403
            provider.client.delete_nodes("gpu", [instance.id for instance in provider.client.instances("gpu")])
            until(lambda: provider.states("gpu") == [], timeout_s=90, what="all gone")
            until(lambda: (volumes(sim), stored_scripts(sim)) == ([], 0), timeout_s=60, what="no disk, no stub left")
            pages = everything_told(provider)
        assert "hunter2" not in pages
        assert token not in pages
        assert "hunter2" not in json.dumps(requests(sim))
        assert b"hunter2" not in database(tmp_path)
        assert token.encode() not in database(tmp_path)


def fetched(url: str, token: str) -> tuple[int, str]:
    """What a machine's curl gets."""
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})  # noqa: S310 - loopback
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_the_power_controller_s_example(tmp_path: Path) -> None:
    """Its variables, no account at Verda, and one call a machine up and down."""
    with powered() as api, left_clean() as sim:
        environ = {"VERDA_BASE_URL": "", "DATACRUNCH_CLIENT_ID": "", "DATACRUNCH_CLIENT_SECRET": ""}
        for number, (name, gpus) in enumerate((("gpu-worker-1", 4), ("gpu-worker-2", 8), ("GPU-Worker-3", 1)), start=1):
            environ |= {
                f"GPU_NODE_{number}_NAME": name,
                f"GPU_NODE_{number}_GPU_COUNT": str(gpus),
                f"GPU_NODE_{number}_SCALE_UP_ENDPOINT": f"{api.url}/{name}/start",
                f"GPU_NODE_{number}_SCALE_DOWN_ENDPOINT": f"{api.url}/{name}/stop",
            }
        settings = {"intervals": QUICK["intervals"], "node_groups": {}}
        with Older(tmp_path, sim, (), settings, **environ) as provider:
            provider.client.increase_size("gpu-nodes", 3)
            until(lambda: len(api.started) == 3, timeout_s=90, what="three on")
            until(lambda: all(known(provider)), timeout_s=60, what="three known")
            ids = sorted(instance.id for instance in provider.client.instances("gpu-nodes"))
            assert ids == [f"webhook://gpu-nodes/{name}" for name in ("GPU-Worker-3", "gpu-worker-1", "gpu-worker-2")]
            provider.client.delete_nodes("gpu-nodes", ids)
            until(lambda: api.started == {}, timeout_s=90, what="all off")
            until(lambda: provider.states("gpu-nodes") == [], timeout_s=90, what="all gone")
        assert sorted(api.calls) == sorted(
            (name, action) for name in ("gpu-worker-1", "gpu-worker-2", "GPU-Worker-3") for action in ("start", "stop")
        )


def known(provider: Provider) -> list[bool]:
    """Whether the provider id of each machine is known."""
    return ["pending" not in instance.id for instance in provider.client.instances("gpu-nodes")]
