"""The image, as far as it can be proven without an engine to build it: its steps, and its limits in force."""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import pytest
import yaml

from app.cli.ports import free_port
from app.rpc.client import CallFailed, Client
from tests.e2e.harness import GROUP, clean_environment, simulator, until

from .rendered import DEPLOY

ROOT = DEPLOY.parent
DOCKERFILE = DEPLOY / "Dockerfile"
USER = 10001

# The image's limits: process number 1, a root that nobody can write but for one directory, and a user without
# privileges or a way to new ones. An interpreter in a home that others may not enter is shown at its own path on an
# empty file system. `env` looks the program up: setpriv itself still has its powers when it does.
_CONFINED = """
set -e
mount --make-rprivate /
if [ -n "$HIDDEN" ]; then
  mount --bind "$PYTHON" "$STAGE"
  mount -t tmpfs -o mode=755 tmpfs "$HIDDEN"
  mkdir -p "$PYTHON"
  mount --bind "$STAGE" "$PYTHON"
fi
mount --bind "$DATA" "$DATA"
mount -o remount,bind,ro /
exec setpriv --reuid 10001 --regid 10001 --clear-groups --no-new-privs --bounding-set=-all -- env "$@"
"""


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A directory that every user may enter, unlike pytest's own."""
    with tempfile.TemporaryDirectory(prefix="image-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def installed(place: Path) -> Path:
    """A clean environment outside the checkout with the wheel in it, as the Dockerfile makes one.

    The dependencies are those of the tests' own environment, by path: fetching them again is the lock file's business.
    """
    source = place / "src"
    source.mkdir()
    for name in copied():
        original = ROOT / name
        if original.is_dir():
            shutil.copytree(original, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(original, source / name)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(place / "dist")],
        cwd=source,
        check=True,
        capture_output=True,
        timeout=120,
    )
    shutil.rmtree(source)
    (wheel,) = (place / "dist").glob("*.whl")
    venv.create(place / "provider", symlinks=True)
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"),
            *("--python", str(place / "provider" / "bin" / "python")),
            *("install", "--no-deps", "--no-index", str(wheel)),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    (site,) = (place / "provider" / "lib").glob("python*/site-packages")
    # A path line in a .pth file is a directory and no more: the editable install of the checkout does not come along.
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return place


def copied() -> list[str]:
    """What the Dockerfile copies into its build, apart from the lock files."""
    lines = [line.split() for line in DOCKERFILE.read_text().splitlines() if line.startswith("COPY ")]
    names = [word for line in lines if "--from=build" not in line for word in line[1:-1]]
    return [name for name in names if not name.endswith(".lock")]


def test_dockerfile_passes_its_linter() -> None:
    """The program hadolint has nothing to say."""
    done = subprocess.run(
        [Path(sys.executable).with_name("hadolint"), str(DOCKERFILE)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")


def test_build_context_holds_what_is_copied_and_nothing_else() -> None:
    """Everything is ignored first, so that neither `.env` nor a database can slip into a layer."""
    ignored, *rules = [
        line for line in (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines() if line and line[0] != "#"
    ]
    assert ignored == "*"
    allowed = {rule[1:] for rule in rules if rule.startswith("!")}
    assert allowed == {*copied(), "requirements.lock", "requirements-build.lock"}


def test_image_runs_as_nobody_in_particular() -> None:
    """The last stage: the same user as the manifests', exec forms only, the base named once."""
    text = DOCKERFILE.read_text()
    stages = text.split("\nFROM ")
    assert len(stages) == 3
    assert f"\nUSER {USER}:{USER}\n" in stages[-1]
    assert '\nENTRYPOINT ["verda-cloud-provider"]\n' in stages[-1]
    assert 'CMD ["python", "-c", ' in stages[-1]
    assert all(stage.startswith("${PYTHON_IMAGE}") for stage in stages[1:])


def test_the_wheel_brings_its_migrations_and_templates(installed: Path) -> None:
    """From outside the checkout, with nothing of it on the path."""
    code = "import app, app.store.migrate as m; print(app.__file__); print(m.migrations_directory())"
    done = subprocess.run(
        [installed / "provider" / "bin" / "python", "-c", code],
        cwd=installed,
        env=clean_environment() | {"PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    package, migrations = (Path(line) for line in done.stdout.split())
    assert package.is_relative_to(installed / "provider")
    assert migrations == package.parent / "migrations"
    wanted = {path.name for path in (ROOT / "migrations" / "versions").glob("*.py")}
    assert {path.name for path in (migrations / "versions").glob("*.py")} == wanted
    for folder in ("templates", "static"):
        wanted = {path.name for path in (ROOT / "app" / "web" / folder).iterdir()}
        assert {path.name for path in (package.parent / "web" / folder).iterdir()} == wanted


class Confinement:
    """How to run something within the image's limits, with one directory to write to."""

    def __init__(self, place: Path) -> None:
        self.data = place / "data"
        self.data.mkdir(mode=0o700, exist_ok=True)
        os.chown(self.data, USER, USER)
        stage = place / "stage"
        stage.mkdir(exist_ok=True)
        python = Path(sys.base_prefix)
        closed = [parent for parent in python.parents if not parent.stat().st_mode & 0o001]
        self.environment = clean_environment() | {
            "DATA": str(self.data),
            "HIDDEN": str(closed[-1]) if closed else "",
            "STAGE": str(stage),
            "PYTHON": str(python),
            "PYTHONDONTWRITEBYTECODE": "1",
            "PYTHONPATH": "",
        }

    def start(self, command: Sequence[str | Path], out: IO[bytes]) -> subprocess.Popen[bytes]:
        """Begin to run it."""
        return subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", _CONFINED, "confined", *command],
            cwd=self.data,
            env=self.environment,
            stdout=out,
            stderr=out,
        )

    def run(self, *command: str | Path) -> tuple[int, str]:
        """Run it to its end; exit code and all it printed."""
        with tempfile.TemporaryFile() as out:
            code = self.start(command, out).wait(60)
            out.seek(0)
            return code, out.read().decode()


@pytest.fixture
def confinement(place: Path, installed: Path) -> Confinement:
    """Skips where the machine makes no such limits, or where the tests' own files lie in somebody's closed home."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or shutil.which("setpriv") is None:
        pytest.skip("a read-only root needs root, unshare and setpriv")
    made = Confinement(place)
    code, said = made.run("true")
    if code != 0:
        pytest.skip(f"this machine makes no mount namespaces: {said}")
    code, said = made.run(installed / "provider" / "bin" / "python", "-c", "import grpc")
    if code != 0:
        pytest.skip(f"another user cannot reach the interpreter or the dependencies: {said}")
    return made


def test_installed_program_serves_with_a_read_only_root_and_no_privileges(
    installed: Path, confinement: Confinement
) -> None:
    """Only its data directory can be written; it migrates, orders a machine, and a SIGTERM ends it with 0 (F72).

    It is process number 1, as in a container: the kernel gives that one only the signals that it handles.
    """
    port = free_port()
    database = confinement.data / "provider.db"
    log = installed / "out.log"
    with simulator() as sim, Client(f"127.0.0.1:{port}") as client, log.open("wb") as out:
        settings = {
            "cluster_name": "image",
            "listen": f"127.0.0.1:{port}",
            "http": {"listen": f"127.0.0.1:{free_port()}"},
            "database": str(database),
            "verda": {"base_url": sim.base_url, "client_id": "simulator", "client_secret": "simulator"},
            "node_groups": {"gpu": GROUP},
        }
        config = installed / "config.yaml"
        config.write_text(yaml.safe_dump(settings))
        program = installed / "provider" / "bin" / "verda-cloud-provider"
        process = confinement.start([program, "--config", config], out)
        try:
            until(lambda: serves(client, process, log), timeout_s=60, what="the provider answers")
            first = int(Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text())
            status = dict(line.split(":\t") for line in Path(f"/proc/{first}/status").read_text().splitlines())
            assert status["NSpid"].split()[-1] == "1"
            assert status["Uid"].split() == [str(USER)] * 4
            assert (status["CapEff"], status["CapBnd"], status["NoNewPrivs"]) == ("0" * 16, "0" * 16, "1")
            client.increase_size("gpu", 1)
            assert client.target_size("gpu") == 1
            os.kill(first, signal.SIGTERM)
            assert process.wait(30) == 0, log.read_text()[-2000:]
        finally:
            process.kill()
            process.wait(10)
    assert database.stat().st_uid == USER


def serves(client: Client, process: subprocess.Popen[bytes], log: Path) -> bool:
    """RPCs are answered."""
    assert process.poll() is None, log.read_text()[-2000:]
    try:
        return bool(client.node_groups())
    except CallFailed:
        return False


def test_confinement_is_one(confinement: Confinement) -> None:
    """Outside the data directory nothing can be written: the test above is not passed by a root that is open."""
    script = 'touch "$DATA/yes" && ! touch /no "$DATA/../no" /root/no 2>/dev/null && id -u'
    assert confinement.run("sh", "-c", script) == (0, f"{USER}\n")
    code, said = confinement.run("sh", "-c", "echo x > /proc/sys/kernel/hostname")
    assert code != 0, said
