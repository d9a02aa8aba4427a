"""`config convert`: another tool's settings as a file of ours, and a line for each of what became of it."""

import base64
import json
from pathlib import Path

import yaml

from app.config.convert import from_datacrunch, from_file, report
from app.config.datacrunch import JSON_TEXT, SCRIPT_URL
from app.config.load import load
from app.config.scripts import sources
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


def converted_text(path: Path, text: str, environ: dict[str, str]) -> str:
    """A file of ours, converted, in a directory of its own."""
    path.write_text(text, "utf-8")
    return from_file(path, environ).text


REFERENCES = """\
cluster_name: ${CLUSTER}
verda: {client_secret: "${SECRET}"}
defaults:
  location: FIN-01
  script_values: {join_token: {env: JOIN_TOKEN}, other: "${OTHER}", plain: text}
node_groups:
  a: {instance_type: CPU.4V.16G, image: ubuntu, max_size: "${MOST}", startup_script_base64: "${B64}"}
  b:
    instance_type: CPU.4V.16G
    image: ubuntu
    max_size: 1
    disk_size_gb: ${DISK}
    contract: ${CONTRACT}
    resources: {memory_gb: "${MEMORY}"}
    taints: {dedicated: "${TAINT}:NoSchedule"}
    startup_taints: ["${STARTING}"]
  c:
    kind: webhook
    machines: [{name: m, scale_up_endpoint: "${ON}", scale_down_endpoint: "https://m.example/off"}]
"""


def test_what_the_environment_gave_stays_in_the_environment(tmp_path: Path) -> None:
    """The new file may be shown to anybody who could see the older one: it names variables and holds no content."""
    script = base64.b64encode(b"#!/bin/sh\necho {{ join_token }} {{ other }} {{ plain }}\n").decode()
    environ = {
        "CLUSTER": "prod",
        "SECRET": "hunter1",
        "JOIN_TOKEN": "hunter2",
        "OTHER": "hunter3",
        "MOST": "3",
        "B64": script,
        "DISK": "150",
        "CONTRACT": "SPOT",
        "MEMORY": "16",
        "TAINT": "gpu",
        "STARTING": "starting:NoExecute",
        "ON": "https://m.example/on?key=hunter4",
        "VERDA_BASE_URL": "https://hunter5.example/v1",
    }
    text = converted_text(tmp_path / "older.yaml", REFERENCES, environ)
    assert "hunter" not in text
    assert script not in text
    data = yaml.safe_load(text)
    a, b, c = data["node_groups"].values()
    values = {"join_token": {"env": "JOIN_TOKEN"}, "other": "${OTHER}", "plain": {"value": "text"}}
    assert (data["cluster_name"], a["script_values"], b["script_values"]) == ("${CLUSTER}", values, values)
    assert (a["max_size"], a["startup_script_base64"]) == ("${MOST}", "${B64}")
    assert c["machines"][0]["scale_up_endpoint"] == "${ON}"
    # Forms that are not today's have their content, which is no secret.
    assert (b["os_volume"], b["instance_option"]) == ({"size_gb": "${DISK}"}, "spot_only")
    assert b["resources"] == {"memory": "16G"}
    assert b["taints"] == [{"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}]
    assert b["startup_taints"] == ["${STARTING}"]
    new = tmp_path / "new.yaml"
    new.write_text(text, "utf-8")
    older, newer = (load(path, environ=environ).config for path in (tmp_path / "older.yaml", new))
    assert to_specs(newer) == to_specs(older)
    assert newer.node_groups["a"] == older.node_groups["a"]
    assert newer.verda.base_url == older.verda.base_url


def test_the_two_characters_that_begin_a_reference_stay_two_characters(tmp_path: Path) -> None:
    """`$${` in the older file means `${`, which in the new one would be a reference; a shell's stays the shell's."""
    script = "#!/bin/sh\necho ${HOME} {{ third }}\n"
    group = {"instance_type": "CPU.4V.16G", "image": "ubuntu", "max_size": 1, "location": "FIN-01"}
    group |= {"startup_script": script, "script_values": {"third": "a$${b}"}}
    environ = {"b": "another"}
    text = converted_text(tmp_path / "older.yaml", json.dumps({"node_groups": {"gpu": group}}), environ)
    written = yaml.safe_load(text)["node_groups"]["gpu"]
    assert written["script_values"] == {"third": {"value": "a$${b}"}}
    assert written["startup_script"] == script
    new = tmp_path / "new.yaml"
    new.write_text(text, "utf-8")
    (source,) = sources(load(new, environ=environ).config).values()
    assert source.values["third"]() == "a${b}"


def test_a_reference_s_beginning_in_another_tool_s_settings_is_no_reference(tmp_path: Path) -> None:
    """Helm and the in-tree provider know no references: an address is an address."""
    url = "https://m.example/${HOME}"
    machine = {"name": "m", "gpuCount": 1, "scaleUpEndpoint": url, "scaleDownEndpoint": url}
    helm = converted_text(tmp_path / "values.yaml", json.dumps({"nodeGroups": [machine]}), {})
    (written,) = yaml.safe_load(helm)["node_groups"].values()
    assert written["machines"][0]["scale_up_endpoint"] == "https://m.example/$${HOME}"
    config = {"node_configs": {"gpu": {"image_type": "ubuntu-24.04"}}}
    flags = from_datacrunch([FLAG], None, {JSON_TEXT: json.dumps(config), SCRIPT_URL: url})
    assert yaml.safe_load(flags.text)["node_groups"]["gpu"]["startup_script_url"] == "https://m.example/$${HOME}"
