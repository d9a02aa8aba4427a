"""The real process between a simulated cloud and a scripted API server: what bootstrap puts together works together."""

import base64
import json
import sqlite3
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from tests.kube.apiserver import ApiServer, node_json

from .harness import GROUP, Provider, alive, control, simulator, until


@pytest.fixture
def api() -> Iterator[ApiServer]:
    """A scripted API server that answers."""
    server = ApiServer()
    server.start()
    yield server
    server.stop()


def settings(directory: Path, api: ApiServer) -> dict[str, object]:
    """The section `kubernetes` with a kubeconfig that leads to it."""
    path = directory / "kubeconfig"
    kubeconfig = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [{"name": "here", "context": {"cluster": "scripted", "user": "provider"}}],
        "clusters": [{"name": "scripted", "cluster": {"server": api.url, "insecure-skip-tls-verify": True}}],
        "users": [{"name": "provider", "user": {"token": "s3cr3t-t0k3n"}}],
    }
    path.write_text(yaml.safe_dump(kubeconfig))
    return {"enabled": True, "kubeconfig": str(path)}


def told(provider: Provider, kind: str) -> list[str]:
    """The sentences of the log about events of this type."""
    with sqlite3.connect(f"file:{provider.database}?mode=ro", uri=True) as connection:
        rows = connection.execute("SELECT what FROM v_events WHERE type = ? ORDER BY position", (kind,)).fetchall()
    return [row[0] for row in rows]


def test_a_machine_joins_and_its_node_goes_when_the_machine_is_gone(tmp_path: Path, api: ApiServer) -> None:
    """No provider id, repaired; ready, counted; taken away by the cloud and silent: removed, with everything logged.

    It joins with a token of its own, which is gone from then on, and was never in a log or in the database.
    """
    script = "#!/bin/sh\nkubeadm join --token {{ join_token }}\n"
    minted = {"startup_script": script, "script_values": {"join_token": {"bootstrap_token": "1h"}}}
    with (
        simulator() as sim,
        Provider(tmp_path, sim, {"gpu-workers": GROUP | minted}, kubernetes=settings(tmp_path, api)) as provider,
    ):
        provider.client.increase_size("gpu-workers", 1)
        until(lambda: provider.states("gpu-workers") == [1], what="one running")
        (name,) = alive(sim)
        (secret,) = api.secrets.values()
        assert secret["type"] == "bootstrap.kubernetes.io/token"
        half = base64.b64decode(secret["data"]["token-secret"]).decode()
        with sim.world.lock:
            texts = [stored.text for stored in sim.world.scripts.newest_first()]
        assert [half in text for text in texts] == [True]
        node = node_json(name)
        node["metadata"]["creationTimestamp"] = "2126-01-01T00:00:00Z"  # after the machine ran, whatever today is
        api.put(node)
        until(lambda: told(provider, "instance.node-joined"), what="the node is seen ready")
        until(lambda: not api.secrets, what="the join token is deleted")
        assert api.object(name)[1]["spec"]["providerID"] == f"verda://{name}"
        assert "verda_ca_node_joining_seconds_count" in provider.get("/metrics")[1]

        control(sim, "POST", "/faults", {"preset": "vanish"})
        until(lambda: provider.states("gpu-workers") == [], what="the machine is believed lost")
        assert api.names() == [name]
        silent = json.loads(json.dumps(api.object(name)[1]))
        silent["status"]["conditions"] = node_json(name, ready="Unknown")["status"]["conditions"]
        api.put(silent)
        until(lambda: api.names() == [], what="the node is removed")
        until(lambda: told(provider, "cluster.node-removed") == [f"node {name} is removed: its machine was vanished"])
        assert provider.stop()[0] == 0
        assert "s3cr3t" not in provider.log.read_text()
        assert half not in provider.log.read_text()
        database = b"".join(path.read_bytes() for path in tmp_path.glob("provider.db*") if path.is_file())
        assert half.encode() not in database


def test_a_hung_api_server_delays_nothing(tmp_path: Path, api: ApiServer) -> None:
    """It takes connections and never answers: up and down as without the module, and a prompt end."""
    api.hold.clear()
    with (
        simulator() as sim,
        Provider(tmp_path, sim, {"gpu-workers": GROUP}, kubernetes=settings(tmp_path, api)) as provider,
    ):
        provider.client.increase_size("gpu-workers", 1)
        until(lambda: provider.states("gpu-workers") == [1], what="one running")
        (instance,) = provider.client.instances("gpu-workers")
        until(lambda: "list" in api.verbs(), what="the API server was asked")
        provider.client.delete_nodes("gpu-workers", [instance.id])
        until(lambda: provider.states("gpu-workers") == [], what="all gone")
        codes = [remark["code"] for remark in json.loads(provider.get("/readyz")[1])["remarks"]]
        assert codes.count("cluster-unavailable") == 1
        assert api.answered == 0
        assert provider.stop()[0] == 0
        assert provider.log.read_text().count("cluster side hindered") == 1


def test_without_rights_scaling_goes_on_and_one_remark_says_why(tmp_path: Path, api: ApiServer) -> None:
    """Ready all the same: a provider that is not ready would be cut off from the autoscaler."""
    words = 'nodes is forbidden: User "system:serviceaccount:kube-system:verda" cannot list resource "nodes"'
    api.refusals["list"] = (403, words)
    with (
        simulator() as sim,
        Provider(tmp_path, sim, {"gpu-workers": GROUP}, kubernetes=settings(tmp_path, api)) as provider,
    ):
        provider.client.increase_size("gpu-workers", 1)
        until(lambda: provider.states("gpu-workers") == [1], what="one running")

        def remarks() -> list[str]:
            body = json.loads(provider.get("/readyz")[1])
            return [remark["message"] for remark in body["remarks"] if remark["code"] == "cluster-forbidden"]

        until(remarks, what="the remark")
        ((message,), status) = remarks(), provider.get("/readyz")[0]
        assert status == 200
        assert message.endswith(f"{words}; scaling goes on without it")
        lines = [json.loads(line) for line in provider.log.read_text().splitlines() if line.startswith("{")]
        told_of = [(line["work"], line["code"]) for line in lines if line["event"].startswith("cluster side hindered")]
        assert ("list nodes", "cluster-forbidden") in told_of
        for work in {work for work, _ in told_of}:
            kinds = [kind for told_work, kind in told_of if told_work == work]
            assert all(one != other for one, other in pairwise(kinds))  # said once, however often it is tried
