"""From the in-tree DataCrunch provider: its `--nodes`, its variables, its JSON, accepted as they are. F74."""

import base64
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from app.config.assemble import LoadedConfig
from app.config.datacrunch import JSON_BASE64, JSON_FILE, JSON_TEXT, SCRIPT_URL, load, parse_nodes
from app.config.scripts import sources
from app.config.specs import to_specs
from app.domain.nodegroup.spec import NodeGroupSpec, Taint, TaintEffect
from app.domain.offering import Contract
from app.errors import ConfigurationError

SCRIPT = base64.b64encode(b"#!/bin/bash\necho ${#list[@]} '{{ not ours }}' {% raw\n").decode()
CONFIG: Mapping[str, Any] = {
    "node_configs": {
        "gpu": {
            "image_type": "ubuntu-24.04-cuda-12.8-open-docker",
            "ssh_key_ids": ["key-1"],
            "instance_option": "prefer_spot",
            "disk_size_gb": 200,
            "override_num_gpus": 7,
            "pricing_option": "dynamic",
            "startup_script_base64": SCRIPT,
            "taints": [
                {"key": "gpu", "value": "true", "effect": "NoSchedule"},
                {"key": "dedicated", "effect": "NoExecute"},
            ],
            "labels": {"example.com/team": "ml"},
        }
    }
}
FLAG = "0:4:1A100.22V:FIN-01:gpu"


def loaded(nodes: Sequence[str] = (FLAG,), config: Any = CONFIG, **environ: str) -> LoadedConfig:
    """What the flags with this JSON mean."""
    text = config if isinstance(config, str) else json.dumps(config, indent=1)
    return load(nodes, None, environ={JSON_TEXT: text} | environ)


def told(
    nodes: Sequence[str] = (FLAG,), config: Any = CONFIG, **environ: str
) -> list[tuple[str, int | None, str, str]]:
    """Every problem: where it was written, and what it is."""
    with pytest.raises(ConfigurationError) as refusal:
        loaded(nodes, config, **environ)
    return [(problem.source, problem.line, problem.path, problem.message) for problem in refusal.value.problems]


def test_the_documented_configuration_means_the_same_group() -> None:
    """Every field that the tool has, and running nodes stay matched by their provider ids."""
    result = loaded(DATACRUNCH_CLIENT_ID="id", DATACRUNCH_CLIENT_SECRET="secret")
    (spec,) = to_specs(result.config)
    assert spec == NodeGroupSpec(
        name="gpu",
        min_size=0,
        max_size=4,
        instance_type="1A100.22V",
        image="ubuntu-24.04-cuda-12.8-open-docker",
        locations=("FIN-01",),
        contracts=(Contract.SPOT, Contract.ON_DEMAND),
        ssh_key_ids=("key-1",),
        startup_script="base64",
        os_volume_size_gb=200,
        labels={"example.com/team": "ml"},
        taints=(
            Taint(key="gpu", value="true", effect=TaintEffect.NO_SCHEDULE),
            Taint(key="dedicated", effect=TaintEffect.NO_EXECUTE),
        ),
        provider_id_template="datacrunch://{instance_id}",
        override_num_gpus=7,
    )
    assert result.config.verda.missing_credentials() == ()
    (warning,) = (one for one in result.warnings if "pricing" in one.path)
    assert warning.message == "has no effect: Verda has no dynamic prices any more, the price is fixed"


def test_its_scripts_stay_what_they_are() -> None:
    """They were no templates: braces in them are the shell's, or Kubernetes', or somebody's."""
    (source,) = sources(loaded().config).values()
    from app.startup.template import render  # noqa: PLC0415 - the one place

    assert render(source.template, {}, {}) == base64.b64decode(SCRIPT).decode()


def test_the_json_may_come_in_three_ways(tmp_path: Path) -> None:
    """Text, base64 and a file are the same; two of them at once are refused."""
    text = json.dumps(CONFIG)
    file = tmp_path / "cluster.json"
    file.write_text(text, "utf-8")
    ways = ({JSON_TEXT: text}, {JSON_BASE64: base64.b64encode(text.encode()).decode()}, {JSON_FILE: str(file)})
    first, *others = (to_specs(load([FLAG], None, environ=way).config) for way in ways)
    assert others == [first, first]
    with pytest.raises(ConfigurationError, match=f"{JSON_TEXT} and {JSON_FILE} are set together: keep one of them"):
        load([FLAG], None, environ={JSON_TEXT: text, JSON_FILE: str(file)})


def test_type_names_have_dots_and_groups_have_what_theirs_could() -> None:
    """Capitals, underscores and the `-vm-` of hostnames; the new name is told."""
    configs = {"node_configs": {name: {"image_type": "ubuntu-24.04"} for name in ("My_Group", "a-vm-b")}}
    result = loaded(["0:1:1H100.80S.30V:FIN-01:My_Group", "1:2:8H100.80S.176V:ICE-01:a-vm-b"], configs)
    assert [
        (spec.name, spec.min_size, spec.max_size, spec.instance_type, spec.locations)
        for spec in to_specs(result.config)
    ] == [
        ("my-group", 0, 1, "1H100.80S.30V", ("FIN-01",)),
        ("a-vm-b", 1, 2, "8H100.80S.176V", ("ICE-01",)),
    ]
    assert [warning.message for warning in result.warnings] == [
        "the group is called my-group here: names are lower case, with digits and hyphens"
    ]


def test_a_later_provider_s_flags_have_a_hostname_prefix(tmp_path: Path) -> None:
    """`min:max:type:group:prefix` has no region: it comes from the file beside."""
    assert parse_nodes("0:4:1A100.22V:gpu:my-vm-prefix").group == "gpu"
    file = tmp_path / "rest.yaml"
    file.write_text("cluster_name: prod\ndefaults: {location: FIN-03, image: ubuntu-24.04}\n", "utf-8")
    result = load(["0:4:1A100.22V:gpu:my-vm-prefix"], file, environ={})
    (spec,) = to_specs(result.config)
    assert (spec.name, spec.locations, spec.image) == ("gpu", ("FIN-03",), "ubuntu-24.04")
    assert result.config.cluster_name == "prod"


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("a:b", "must be min:max:instance-type:region:group: for example 0:4:1A100.22V:FIN-01:gpu"),
        (
            "a:4:1A100.22V:FIN-01:gpu",
            "must begin with two whole numbers, min is 'a': the form is min:max:instance-type:region:group",
        ),
        ("0:4::FIN-01:gpu", "must have no empty part: the form is min:max:instance-type:region:group"),
        ("0:4:1A100.22V:FIN-01:gpu:x", "must be min:max:instance-type:region:group: for example "),
        ("4:0:1A100.22V:FIN-01:gpu", "max_size is 0 and min_size 4: max_size must be at least min_size"),
    ],
)
def test_a_bad_flag_is_one_error_with_its_text(flag: str, message: str) -> None:
    """F74: where it is, what is wrong, how it should be."""
    ((source, line, path, words),) = told([flag])
    assert (source, line, path) == ("command line", None, f"--nodes={flag}")
    assert words.startswith(message)


def test_all_mistakes_are_told_at_once_with_their_lines() -> None:
    """F74: an unknown key, a comment, a wrong word, a group twice, a group without an image."""
    config = {"node_configs": {"gpu": {"image_typ": "x", "instance_option": "spot"}, "other": {}}}
    problems = told([FLAG, FLAG, "0:1:1A100.22V:FIN-01:lonely"], config)
    assert (JSON_TEXT, 4, "node_configs.gpu.image_typ", "is not a known key: did you mean image_type?") in problems
    assert any(path == "node_configs.gpu.instance_option" and line == 5 for _, line, path, _ in problems)
    assert any("a second time" in message for *_, message in problems)
    assert any(path == "--nodes[2].image" and message.startswith("is missing") for _, _, path, message in problems)
    source, line, _, message = next(one for one in told(config='{\n  // no\n "node_configs": {}}') if one[1])
    assert (source, line) == (JSON_TEXT, 2)
    assert message == "is not JSON, at column 3: comments are no part of JSON: remove it"


def test_no_secret_of_the_json_is_in_an_error() -> None:
    """Base64 that is none, and JSON that breaks off in the middle of a script."""
    for config in (
        '{"node_configs": {"gpu": {"startup_script_base64": "hunter2 hunter2',
        {"node_configs": {"gpu": {"image_type": "x", "startup_script_base64": "hunter2!"}}},
    ):
        assert "hunter2" not in str(told(config=config))
    with pytest.raises(ConfigurationError) as refusal:
        load([FLAG], None, environ={JSON_BASE64: "hunter2 ***"})
    assert "hunter2" not in str(refusal.value.problems)


def test_the_address_of_a_script_server_is_taken_over() -> None:
    """For groups that have no script of their own."""
    config = {"node_configs": {"gpu": {"image_type": "ubuntu-24.04"}}}
    (source,) = sources(loaded(config=config, **{SCRIPT_URL: "https://a.example/script"}).config).values()
    assert source.values["fetch_url"]() == "https://a.example/script"


def test_node_groups_in_the_file_and_in_flags_are_refused(tmp_path: Path) -> None:
    """Nobody could say which ones count."""
    file = tmp_path / "config.yaml"
    file.write_text("node_groups:\n  a: {instance_type: b}\n", "utf-8")
    with pytest.raises(ConfigurationError, match="stand in the file and in --nodes: keep one of them"):
        load([FLAG], file, environ={JSON_TEXT: json.dumps(CONFIG)})
