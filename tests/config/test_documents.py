"""The examples load, and the reference page is what the model says."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import BaseModel

from app.config import reference
from app.config.groups import NodeGroup, WebhookGroup
from app.config.load import load
from app.config.model import Config
from app.config.shape import alternatives
from app.config.specs import to_specs
from app.domain.offering import Contract

from .harness import Desk

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "config.yaml"
OLDER = ROOT / "examples" / "from-python-provider.yaml"


def test_the_example_loads_without_a_warning() -> None:
    """It is the first thing that anybody sees."""
    loaded = load(EXAMPLE, environ={}, dotenv=None)
    assert loaded.warnings == ()
    workers, spot, cpu = to_specs(loaded.config)
    assert (workers.name, workers.instance_type, workers.max_size) == ("gpu-workers", "1A100.22V", 10)
    assert (workers.locations, workers.image) == (("FIN-01",), "ubuntu-24.04-cuda-12.8-open-docker")
    assert (spot.name, spot.instance_type, spot.contracts) == ("gpu-spot", "1H100.80S.30V", (Contract.SPOT,))
    assert (cpu.name, cpu.labels) == ("cpu", {})
    assert loaded.config.intervals.observe.total_seconds() == 2
    assert loaded.config.intervals.catalog.total_seconds() == 30
    assert str(loaded.config.database) == "var/provider.db"


def test_the_older_providers_form_loads() -> None:
    """With a warning for each thing that has no effect any more, and its token never shown."""
    loaded = load(OLDER, environ={}, dotenv=None)
    gpu, cpu = to_specs(loaded.config)
    assert (gpu.contracts, cpu.contracts) == ((Contract.ON_DEMAND,), (Contract.SPOT,))
    assert (str(gpu.hourly_price), gpu.locations) == ("0.60", ("FIN-03",))
    assert (cpu.resources, cpu.override_num_gpus) == ({"cpu": "4", "memory": "16G"}, 0)
    assert (loaded.config.listen.port, str(loaded.config.database)) == (8086, "var/provider.db")
    assert [warning.path for warning in loaded.warnings] == [
        "kubernetes.endpoint",
        "kubernetes.token",
        "kubernetes.ca_hash",
        'node_groups.gpu-workers.labels["node-role.kubernetes.io/gpu"]',
        "node_groups.cpu-workers.pricing",
        'node_groups.cpu-workers.labels["k8s.io/role"]',
        "node_groups.cpu-workers.resources.memory_gb",
    ]
    assert "0123456789abcdef" not in repr(loaded).replace(str(loaded.config.kubernetes.ca_hash), "")


def test_names_the_older_provider_allowed_are_refused_with_valid_ones(desk: Desk) -> None:
    """Dots and capitals make hostnames that a kubelet refuses."""
    text = OLDER.read_text().replace("  gpu-workers:", "  1V100.6V-FIN-03:")
    ((_, path, message),) = desk.told(text)
    assert path == 'node_groups["1V100.6V-FIN-03"]'
    assert message.endswith("call it g-1v100-6v-fin-03")


def test_the_page_is_what_the_model_says() -> None:
    """Made anew by `python -m app.config.reference > docs/configuration.md`."""
    assert (ROOT / "docs" / "configuration.md").read_text() == reference.page()


def test_the_page_can_be_made_from_the_command_line() -> None:
    """As its first line says."""
    made = subprocess.run(
        [sys.executable, "-m", "app.config.reference"], cwd=ROOT, capture_output=True, check=True, text=True, timeout=60
    )
    assert made.stdout == reference.page()


def keys(section: type[BaseModel], prefix: str = "") -> list[str]:
    """Every key of a section, by path."""
    found = []
    for name, field in section.model_fields.items():
        found.append(f"{prefix}{name}")
        for kind in alternatives(field.annotation):
            if isinstance(kind, type) and issubclass(kind, BaseModel):
                found += keys(kind, f"{prefix}{name}.")
    return found


@pytest.mark.parametrize(
    ("section", "prefix"), [(Config, ""), (NodeGroup, "node_groups.<name>."), (WebhookGroup, "node_groups.<name>.")]
)
def test_every_key_is_on_the_page_with_a_description(section: type[BaseModel], prefix: str) -> None:
    """A key nobody describes is a key nobody can use."""
    rows = dict(re.findall(r"^\| `([^`]+)` \|.*\| ([^|]*) \|$", reference.page(), re.MULTILINE))
    for key in keys(section, prefix):
        assert len(rows[key]) > 10, key


def test_the_page_has_the_defaults_key() -> None:
    """It is no part of the model: the loader resolves it."""
    assert "| `defaults` | section |" in reference.page()


def test_tables_have_four_cells() -> None:
    """A bar in a description would break its row."""
    rows = [line for line in reference.page().splitlines() if line.startswith("| `") and "DATACRUNCH" not in line]
    for row in rows:
        assert len(re.findall(r"(?<!\\)\|", row)) in {3, 5}, row
