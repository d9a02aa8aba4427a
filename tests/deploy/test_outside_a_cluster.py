"""The systemd unit and the compose file."""

import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml

from app.config.load import load

from . import foreign
from .rendered import DEPLOY

UNIT = DEPLOY / "systemd" / "verda-cloud-provider.service"
COMPOSE = DEPLOY / "compose" / "compose.yaml"


def test_systemd_understands_every_line(tmp_path: Path) -> None:
    """With a program in place of ours, because systemd also looks whether that exists."""
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd-analyze on this machine")
    unit = tmp_path / UNIT.name
    unit.write_text(
        UNIT.read_text().replace("/opt/verda-cloud-provider/bin/verda-cloud-provider", shutil.which("true") or "")
    )
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False, timeout=60)
    ours = [line for line in done.stderr.splitlines() if UNIT.stem in line]
    assert (done.returncode, ours) == (0, [])


def test_unit_gives_up_on_what_only_a_person_can_mend() -> None:
    """A wrong configuration and a held database; everything else is tried again."""
    lines = UNIT.read_text().splitlines()
    assert "Restart=on-failure" in lines
    assert "RestartPreventExitStatus=2 4" in lines


def test_compose_publishes_on_this_machine_alone() -> None:
    """The configuration beside it speaks plain text and says so."""
    service = yaml.safe_load(COMPOSE.read_text())["services"]["provider"]
    assert service["ports"] == ["127.0.0.1:8086:8086", "127.0.0.1:8087:8087"]
    assert (service["read_only"], service["user"], service["cap_drop"]) == (True, "10001:10001", ["ALL"])
    assert service["command"][:2] == ["--config", "/config/config.yaml"]
    assert (DEPLOY / "compose" / service["build"]["context"] / service["build"]["dockerfile"]).is_file()
    loaded = load(DEPLOY / "compose" / "config.yaml", environ={}, dotenv=None)
    assert [warning.path for warning in loaded.warnings] == ["listen", "http.listen"]
    assert "data:/data" in service["volumes"]
    assert str(loaded.config.database) == "/data/provider.db"


def test_compose_file_has_no_key_that_compose_would_not_know() -> None:
    """Neither as it stands nor with the lines for the real Verda, which are comments in it."""
    text = COMPOSE.read_text()
    real = re.sub(
        r"^( *)# (?= *(?:environment|VERDA_CLIENT_ID|secrets|client_secret|file):)", r"\1", text, flags=re.MULTILINE
    )
    assert yaml.safe_load(real)["secrets"] == {"client_secret": {"file": "./client_secret"}}
    for form in (text, real):
        jsonschema.validate(yaml.safe_load(form), foreign.COMPOSE)
