"""`config convert`: another tool's settings as a file of ours, and a line for each of what became of it."""

import json
from pathlib import Path

import yaml

from app.config.convert import from_datacrunch, from_file, report
from app.config.datacrunch import JSON_TEXT
from app.config.load import load
from app.config.specs import to_specs

from .test_datacrunch import CONFIG, FLAG

ROOT = Path(__file__).resolve().parents[2]
PYTHON = ROOT / "examples" / "from-python-provider.yaml"
LATER = """\
node_groups:
  gpu:
    instance_type: 1A100.22V
    image: ubuntu-24.04
    max_size: 2
    location: FIN-01
    contract: SPOT
    disk_size_gb: 150
    taints: {gpu: "true:NoSchedule", starting: ":NoExecute"}
    override_resources: {memory: 100Gi}
"""


def test_the_python_provider_s_file_becomes_ours(tmp_path: Path) -> None:
    """The same groups, in today's keys; what is lost is told with the reason."""
    converted = from_file(PYTHON, {})
    path = tmp_path / "config.yaml"
    path.write_text(converted.text, "utf-8")
    assert to_specs(load(path, environ={}).config) == to_specs(load(PYTHON, environ={}).config)
    groups = yaml.safe_load(converted.text)["node_groups"]
    assert groups["cpu-workers"]["instance_option"] == "spot_only"
    assert not {"contract", "pricing", "min_size"} & {*groups["cpu-workers"], *groups["gpu-workers"]}
    lines = list(report(converted.steps))
    assert "node_groups.cpu-workers.contract -> node_groups.cpu-workers.instance_option" in lines
    assert "node_groups.cpu-workers.resources.memory_gb -> node_groups.cpu-workers.resources.memory" in lines
    assert "node_groups.gpu-workers.pricing -> (nothing): Verda has fixed prices only" in lines
    assert "abcdef.0123456789abcdef" not in converted.text + "".join(lines)


def test_its_later_forms_are_read_too(tmp_path: Path) -> None:
    """Taints as a mapping, resources that override, the disk's size."""
    path = tmp_path / "config.yaml"
    path.write_text(LATER, "utf-8")
    (spec,) = to_specs(load(path, environ={}).config)
    assert [(taint.key, taint.value, taint.effect.value) for taint in spec.taints] == [
        ("gpu", "true", "NoSchedule"),
        ("starting", "", "NoExecute"),
    ]
    assert (spec.resources, spec.os_volume_size_gb) == ({"memory": "100Gi"}, 150)
    group = yaml.safe_load(from_file(path, {}).text)["node_groups"]["gpu"]
    assert (group["resources"], group["os_volume"]) == ({"memory": "100Gi"}, {"size_gb": 150})


def test_the_datacrunch_provider_s_settings_become_ours(tmp_path: Path) -> None:
    """Each flag and each key has its line; credentials stay where they are."""
    environ = {JSON_TEXT: json.dumps(CONFIG), "DATACRUNCH_CLIENT_ID": "id", "DATACRUNCH_CLIENT_SECRET": "hunter2"}
    converted = from_datacrunch([FLAG], None, environ)
    path = tmp_path / "config.yaml"
    path.write_text(converted.text, "utf-8")
    assert to_specs(load(path, environ={}).config) == to_specs(converted.loaded.config)
    assert list(report(converted.steps)) == [
        "--nodes=0:4:1A100.22V:FIN-01:gpu -> node_groups.gpu",
        "node_configs.gpu.image_type -> node_groups.gpu.image",
        "node_configs.gpu.ssh_key_ids -> node_groups.gpu.ssh_key_ids",
        "node_configs.gpu.instance_option -> node_groups.gpu.instance_option",
        "node_configs.gpu.disk_size_gb -> node_groups.gpu.disk_size_gb",
        "node_configs.gpu.override_num_gpus -> node_groups.gpu.override_num_gpus",
        "node_configs.gpu.startup_script_base64 -> node_groups.gpu.startup_script_base64",
        "node_configs.gpu.taints -> node_groups.gpu.taints",
        "node_configs.gpu.labels -> node_groups.gpu.labels",
        "(its provider ids) -> provider_id_template: datacrunch://{instance_id}",
        "node_configs.gpu.pricing_option -> (nothing): Verda has fixed prices only",
    ]
    assert "hunter2" not in converted.text


def test_a_conversion_of_ours_is_the_same_again() -> None:
    """Nothing is lost on the way."""
    example = ROOT / "examples" / "config.yaml"
    converted = from_file(example, {})
    assert to_specs(converted.loaded.config) == to_specs(load(example, environ={}).config)
