"""What people type: the older provider's command, the embedded simulator, wrong usage, the demonstration."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.cli.ports import free_port
from app.rpc.client import CallFailed, Client
from tests.e2e.harness import ROOT, clean_environment, simulator, until

OLDER = """\
node_groups:
  gpu-workers:
    instance_type: "1V100.6V"
    image: "ubuntu-24.04-cuda-12.8-open-docker"
    min_size: 0
    max_size: 10
    location: "FIN-03"
    ssh_key_ids:
      - "your-ssh-key-id"
    startup_script_id: "your-startup-script-id"
    hourly_price: 0.60
    contract: "PAY_AS_YOU_GO"
    pricing: "FIXED_PRICE"
    labels:
      verda.com/gpu: "v100"
      node-role.kubernetes.io/gpu: "true"
"""


def run(*arguments: str, cwd: Path, environment: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
    """The program in a directory, with the checkout on its path."""
    environment = {**clean_environment(), "PYTHONPATH": str(ROOT), **(environment or {})}
    with (cwd / "out.log").open("ab") as log:
        command = [sys.executable, "-m", "app.cli.main", *arguments]
        return subprocess.Popen(command, cwd=cwd, env=environment, stdout=log, stderr=log)


def serves(client: Client) -> bool:
    """RPCs are answered."""
    try:
        return bool(client.node_groups())
    except CallFailed:
        return False


def test_older_providers_configuration_starts_with_its_own_command(tmp_path: Path) -> None:
    """Its users switch by swapping the program; what Verda refuses is a failed creation in Verda's words, no crash."""
    (tmp_path / "config.yaml").write_text(OLDER)
    port = free_port()
    with simulator() as sim:
        process = run(
            *("--config", "config.yaml", "--port", str(port), "--http-port", str(free_port()), "--log-level", "INFO"),
            cwd=tmp_path,
            environment={
                "VERDA_CLIENT_ID": "simulator",
                "VERDA_CLIENT_SECRET": "simulator",
                "VERDA_BASE_URL": sim.base_url,
            },
        )
        try:
            with Client(f"127.0.0.1:{port}") as client:
                until(lambda: serves(client), what="serving")
                (group,) = client.node_groups()
                assert (group.id, group.minSize, group.maxSize) == ("gpu-workers", 0, 10)
                client.increase_size("gpu-workers", 1)
                until(lambda: client.instances("gpu-workers")[0].status.errorInfo.errorCode, what="Verda refused")
                (failed,) = client.instances("gpu-workers")
                assert failed.status.instanceState == 2
                assert failed.status.errorInfo.instanceErrorClass == 99
                # Types of this family are not offered at FIN-03, which the API checks before the image.
                assert failed.status.errorInfo.errorCode == "invalid-request"
                client.delete_nodes("gpu-workers", [failed.id])
                assert client.target_size("gpu-workers") == 0
        finally:
            process.terminate()
            assert process.wait(20) == 0


def test_run_with_the_simulator_ends_on_ctrl_c_and_continues_where_it_stopped(tmp_path: Path) -> None:
    """Machines and books of the first run are there in the second."""
    ports = {name: free_port() for name in ("grpc", "http", "simulator")}
    arguments = (
        *("serve", "--config", str(ROOT / "examples" / "config.yaml"), "--port", str(ports["grpc"])),
        *("--http-port", str(ports["http"]), "--with-simulator", f"127.0.0.1:{ports['simulator']}"),
    )
    # Somebody's real credentials must not be used when the simulator is asked for.
    credentials = {"VERDA_CLIENT_ID": "real", "VERDA_CLIENT_SECRET": "real"}
    with Client(f"127.0.0.1:{ports['grpc']}") as client:
        first = run(*arguments, cwd=tmp_path, environment=credentials)
        until(lambda: serves(client), what="serving")
        assert [group.id for group in client.node_groups()] == ["gpu-workers", "gpu-spot", "cpu"]
        client.increase_size("gpu-workers", 2)
        until(lambda: [i.status.instanceState for i in client.instances("gpu-workers")] == [1, 1], 60, "two running")
        names = [instance.id for instance in client.instances("gpu-workers")]
        began = time.monotonic()
        first.send_signal(signal.SIGINT)
        assert first.wait(20) == 0
        assert time.monotonic() - began < 5

        second = run(*arguments, cwd=tmp_path, environment=credentials)
        try:
            until(lambda: serves(client), what="serving again")
            time.sleep(6)  # noqa: TID251 - three listings, in which nothing may be found missing
            assert [instance.id for instance in client.instances("gpu-workers")] == names
            assert [i.status.instanceState for i in client.instances("gpu-workers")] == [1, 1]
        finally:
            second.send_signal(signal.SIGINT)
            assert second.wait(20) == 0
    out = (tmp_path / "out.log").read_text()
    assert f"ready: gRPC 127.0.0.1:{ports['grpc']}, http://127.0.0.1:{ports['http']}/readyz, cloud: simulator" in out


def test_demonstration_ends_well_within_a_minute(tmp_path: Path) -> None:
    """It plays the autoscaler, kills the provider and compares the books with the truth."""
    began = time.monotonic()
    process = run("demo", "--keep", str(tmp_path / "demo"), cwd=tmp_path)
    code = process.wait(110)
    out = (tmp_path / "out.log").read_text()
    assert code == 0, out
    assert time.monotonic() - began < 60, out
    assert "The books and the simulator's truth agree." in out
    assert "order refused, out-of-stock: No capacity available" in out
    assert "was lost (evicted)" in out
    assert "(looked-up)" in out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--config", "nowhere.yaml"), 2, "nowhere.yaml: there is no such file"),
        (("--config", "config.yaml"), 2, "set VERDA_CLIENT_ID and VERDA_CLIENT_SECRET"),
        (("--config", "config.yaml", "--port", "70000"), 2, "must be a port between 0 and 65535, is 70000"),
        (("--config", "config.yaml", "--with-simulator", "nonsense"), 2, "--with-simulator"),
        (("status", "--database", "nowhere.db"), 3, "there is no database at nowhere.db"),
        (("fly",), 2, "No such command 'fly'"),
    ],
)
def test_wrong_usage_is_told_and_changes_nothing(
    arguments: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    """One clear line, the right exit code, no database made."""
    (tmp_path / "config.yaml").write_text(OLDER)
    process = run(*arguments, cwd=tmp_path)
    assert process.wait(30) == code
    out = (tmp_path / "out.log").read_text()
    assert words in out
    assert "Traceback" not in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.yaml", "out.log"]
