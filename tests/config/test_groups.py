"""Node groups: every rule between their keys, and the words that belong to Kubernetes."""

import pytest

from app.config.groups import NodeGroup
from app.domain.nodegroup.spec import GROUP_NAME

from .harness import GROUP, Desk

GPU = "node_groups.gpu"


def group_of(desk: Desk, more: str) -> NodeGroup:
    """The group `gpu` of a file with more lines in it."""
    group = desk.load(GROUP + more).config.node_groups["gpu"]
    assert isinstance(group, NodeGroup)
    return group


def test_bad_names_are_told_together_each_with_a_valid_one(desk: Desk) -> None:
    """F14: a hostname the kubelet refuses is a paid machine that never joins."""
    body = "{instance_type: x, image: y, max_size: 1, location: z}"
    names = ["GPU_Nodes", "-gpu", "gpu.a", "gpü", "1V100.6V-FIN-03", "a" * 60, "gpu", "///"]
    text = "node_groups:\n" + "".join(f"  {name}: {body}\n" for name in names)
    told = desk.told(text)
    assert [(line, path) for line, path, _ in told] == [
        (2, "node_groups.GPU_Nodes"),
        (3, "node_groups.-gpu"),
        (4, 'node_groups["gpu.a"]'),
        (5, 'node_groups["gpü"]'),
        (6, 'node_groups["1V100.6V-FIN-03"]'),
        (7, f"node_groups.{'a' * 60}"),
        (9, 'node_groups["///"]'),
    ]
    suggested = [message.rpartition(": call it ")[2] for _, _, message in told]
    assert suggested == ["gpu-nodes", "gpu-2", "gpu-a", "gpu-3", "g-1v100-6v-fin-03", "a" * 50, "g"]
    assert all(GROUP_NAME.fullmatch(name) for name in suggested)
    assert all("lower-case letters, digits and hyphens" in message for _, _, message in told)


def test_a_badly_named_group_is_judged_all_the_same(desk: Desk) -> None:
    """One round of mending, not two."""
    told = desk.told(GROUP.replace("  gpu:", "  GPU:").replace("max_size: 3", "max_size: x"))
    assert [(line, path) for line, path, _ in told] == [(2, "node_groups.GPU"), (5, "node_groups.GPU.max_size")]


def test_groups_must_be_there(desk: Desk) -> None:
    """A template that lost its groups must not retire every machine."""
    assert [told[:2] for told in desk.told("cluster_name: a\n")] == [(None, "node_groups")]
    assert [told[:2] for told in desk.told("cluster_name: a\nnode_groups:\n")] == [(2, "node_groups")]
    assert desk.load("node_groups: {}\n").config.node_groups == {}


@pytest.mark.parametrize("written", ["[a, b]", "text", "3"])
def test_groups_are_a_mapping(desk: Desk, written: str) -> None:
    """Some write them as a list."""
    ((line, path, message),) = desk.told(f"node_groups: {written}\n")
    assert (line, path) == (1, "node_groups")
    assert "must be a mapping of keys and values" in message


@pytest.mark.parametrize("written", ["[a, b]", "text", "3"])
def test_a_group_is_a_mapping(desk: Desk, written: str) -> None:
    """Also on the next level."""
    ((line, path, message),) = desk.told(f"node_groups:\n  gpu: {written}\n")
    assert (line, path) == (2, GPU)
    assert "must be a mapping of keys and values" in message


def test_everything_missing_is_told_at_the_group(desk: Desk) -> None:
    """With what each key is."""
    assert desk.told("node_groups:\n  gpu: {}\n") == [
        (2, f"{GPU}.instance_type", "is missing: Verda's instance type, for example 1A100.22V."),
        (2, f"{GPU}.image", "is missing: Operating system image, by type or id; it must suit the instance type."),
        (2, f"{GPU}.max_size", "is missing: Most machines that will ever be ordered."),
        (2, f"{GPU}.location", "is missing: write for example FIN-01, or several as locations"),
    ]


def test_unknown_keys_name_the_nearest_one(desk: Desk) -> None:
    """On every level."""
    told = desk.told(GROUP + "    max_sise: 4\n    os_volume: {size: 3}\n    taints: [{kye: a, effect: NoExecute}]\n")
    assert told == [
        (7, f"{GPU}.max_sise", "is not a known key: did you mean max_size?"),
        (8, f"{GPU}.os_volume.size", "is not a known key: did you mean size_gb?"),
        (9, f"{GPU}.taints[0].key", "is missing: Key of the taint."),
        (9, f"{GPU}.taints[0].kye", "is not a known key: did you mean key?"),
    ]
    assert desk.told(GROUP + "    xyzzy: 4\n")[0][2] == "is not a known key: docs/configuration.md lists the known ones"


def test_min_size_above_max_size(desk: Desk) -> None:
    """Told at max_size, the line that is more often wrong."""
    told = desk.told(GROUP + "    min_size: 4\n")
    assert told == [(5, f"{GPU}.max_size", "max_size is 3 and min_size 4: max_size must be at least min_size")]


def test_a_rule_between_two_keys_is_silent_while_one_is_wrong(desk: Desk) -> None:
    """Nothing follows from a value that makes no sense."""
    assert [told[1] for told in desk.told(GROUP + "    min_size: many\n")] == [f"{GPU}.min_size"]


@pytest.mark.parametrize(
    ("more", "line", "path", "words"),
    [
        ("    min_size: -1\n", 7, "min_size", "must be at least 0, is -1"),
        ("    min_size: two\n", 7, "min_size", 'must be a whole number, is "two"'),
        ("    locations: [FIN-01]\n", 7, "locations", "location and locations are both given: keep one of them"),
        ("    contract: LONG_TERM\n", 7, "contract", "cannot be LONG_TERM: such machines are bought for months ahead"),
        ("    contract: SPOTT\n", 7, "contract", "must be PAY_AS_YOU_GO, SPOT or LONG_TERM"),
        ("    pricing: FREE\n", 7, "pricing", "must be FIXED_PRICE or DYNAMIC_PRICE"),
        ("    instance_option: spot\n", 7, "instance_option", "did you mean spot_only?"),
        ("    kind: wehbook\n", 7, "kind", 'must be verda or webhook, is "wehbook": did you mean webhook?'),
        ("    hourly_price: cheap\n", 7, "hourly_price", "must be a number"),
        ("    ssh_key_ids: one\n", 7, "ssh_key_ids", 'must be a list, is "one"'),
        ("    ssh_key_ids: [a, b c]\n", 7, "ssh_key_ids[1]", "must be one word of letters, digits and . _ ~ -"),
        ("    ssh_key_ids:\n    - a\n    - ''\n", 9, "ssh_key_ids[1]", "must be one word"),
        ("    ssh_key_ids: [null]\n", 7, "ssh_key_ids[0]", "must be text, is null"),
        ("    startup_script_id: a/b\n", 7, "startup_script_id", "must be one word"),
        ("    os_volume: {size_gb: 0}\n", 7, "os_volume.size_gb", "must be at least 1, is 0"),
        ("    os_volume: {policy: keep}\n", 7, "os_volume.policy", "must be permanent or trash"),
        ("    stopped: {action: start}\n", 7, "stopped.action", "must be alarm or delete"),
        ("    stopped: {after: 0s}\n", 7, "stopped.after", "must be longer than 0s"),
        ("    override_num_gpus: -1\n", 7, "override_num_gpus", "must be at least 0"),
        ("    max_hourly_cost: 0\n", 7, "max_hourly_cost", "must be more than 0"),
        ("    resources: {cpu: lots}\n", 7, "resources.cpu", "write it like 4, 500m, 16Gi or 100G"),
        ("    resources: {memory: 16GiB}\n", 7, "resources.memory", "must be a Kubernetes quantity"),
        ("    resources: {memory: -1Gi}\n", 7, "resources.memory", "not negative"),
        ("    resources: {memory: [1]}\n", 7, "resources.memory", "must be a Kubernetes quantity"),
        ("    resources: {mem: 1Gi}\n", 7, "resources.mem", "is not a resource of Kubernetes: did you mean memory?"),
        ("    resources: {gpu: 1}\n", 7, "resources.gpu", "known are cpu, memory, ephemeral-storage, pods and "),
        ("    resources: {A B/x: 1}\n", 7, 'resources["A B/x"]', "must be a Kubernetes label key"),
        ("    resources: 5\n", 7, "resources", "must be a mapping of keys and values, is 5"),
        ("    reserved: {pods: 5}\n", 7, "reserved.pods", "must be one of cpu, memory, ephemeral-storage"),
        ("    reserved: {cpu: x}\n", 7, "reserved.cpu", "must be a Kubernetes quantity"),
        (
            "    autoscaling_options: {scale_down_unneeded_time: 10}\n",
            7, "autoscaling_options.scale_down_unneeded_time", "must be a duration with its unit, is 10",
        ),
        (
            "    autoscaling_options: {scale_down_utilization_threshold: 1.1}\n",
            7, "autoscaling_options.scale_down_utilization_threshold", "must be at most 1, is 1.1",
        ),
        ("    create_timeout: 30m\n", 7, "create_timeout", "create_timeout is 30m and provision_timeout 30m"),
        ("    provision_timeout: 5m\n", 7, "provision_timeout", "create_timeout is 10m and provision_timeout 5m"),
    ],
)  # fmt: skip
def test_rules_of_a_group(desk: Desk, more: str, line: int, path: str, words: str) -> None:
    """Each rule, at its own line and key, and nothing besides."""
    ((told_line, told_path, message),) = desk.told(GROUP + more)
    assert (told_line, told_path) == (line, f"{GPU}.{path}")
    assert words in message


def test_locations_in_order(desk: Desk) -> None:
    """Tried from left to right, each once."""
    text = GROUP.replace("location: FIN-01", "locations: [FIN-03, FIN-01]")
    assert group_of_text(desk, text).locations == ("FIN-03", "FIN-01")
    twice = desk.told(text.replace("[FIN-03, FIN-01]", "[FIN-03, FIN-03]"))
    assert twice == [(6, f"{GPU}.locations", "must not name a location twice")]
    assert [told[1] for told in desk.told(text.replace("[FIN-03, FIN-01]", "[]"))] == [f"{GPU}.locations"]


def group_of_text(desk: Desk, text: str) -> NodeGroup:
    """The group `gpu` of a text."""
    group = desk.load(text).config.node_groups["gpu"]
    assert isinstance(group, NodeGroup)
    return group


@pytest.mark.parametrize(("contract", "option"), [("PAY_AS_YOU_GO", "on_demand_only"), ("SPOT", "spot_only")])
def test_the_older_contract_may_agree_with_todays_key(desk: Desk, contract: str, option: str) -> None:
    """Said twice the same way is not wrong."""
    group_of(desk, f"    contract: {contract}\n    instance_option: {option}\n")


def test_the_older_contract_must_not_contradict_todays_key(desk: Desk) -> None:
    """Whoever reads the file must not have to know which one wins."""
    assert desk.told(GROUP + "    contract: SPOT\n    instance_option: prefer_spot\n") == [
        (
            8,
            f"{GPU}.instance_option",
            "instance_option is prefer_spot, but contract SPOT means spot_only: remove contract, the older key",
        )
    ]


def test_the_older_disk_size_must_not_contradict_todays_key(desk: Desk) -> None:
    """Likewise."""
    group_of(desk, "    disk_size_gb: 50\n    os_volume: {size_gb: 50}\n")
    group_of(desk, "    disk_size_gb: 50\n    os_volume: {policy: trash}\n")
    told = desk.told(GROUP + "    disk_size_gb: 60\n    os_volume: {size_gb: 50}\n")
    assert told == [
        (7, f"{GPU}.disk_size_gb", "disk_size_gb is 60 and os_volume.size_gb 50: remove disk_size_gb, the older key")
    ]


def test_only_one_startup_script(desk: Desk) -> None:
    """Which one would it be?"""
    told = desk.told(GROUP + "    startup_script_id: a\n    startup_script_file: b\n    startup_script: c\n")
    both = [one for one in told if "together" in one[2]]
    assert both == [
        (
            8,
            f"{GPU}.startup_script_file",
            "startup_script_id and startup_script and startup_script_file are given together: keep one of them",
        )
    ]


def test_several_locations_are_warned_of(desk: Desk) -> None:
    """A pod that selects a zone would wait at the wrong group."""
    text = GROUP.replace("location: FIN-01", "locations: [FIN-01, FIN-03]")
    ((line, path, message),) = desk.warned(text)
    assert (line, path) == (6, f"{GPU}.locations")
    assert "make one group per location" in message
    assert len(desk.warned(text + 'provider_id_template: "verda://{location}/{hostname}"\n')) == 2
    assert desk.warned(GROUP + 'provider_id_template: "verda://{location}/{hostname}"\n') == []


def test_options_that_new_autoscalers_misread_are_told(desk: Desk) -> None:
    """The protocol cannot carry their start-up time, and they take it for zero."""
    options = "    autoscaling_options: {scale_down_unneeded_time: 30m%s}\n"
    assert desk.warned(GROUP + options % "") == []
    ((line, path, message),) = desk.warned(GROUP + options % ", force_for_new_autoscalers: true")
    assert (line, path) == (7, f"{GPU}.autoscaling_options.force_for_new_autoscalers")
    assert "may buy a second: prefer its flags" in message


def test_timeouts_are_compared_with_the_autoscalers(desk: Desk) -> None:
    """Its own patience is 15 minutes, unless the group's options say otherwise."""
    create = desk.warned(GROUP + "    create_timeout: 15m\n")
    assert [told[:2] for told in create] == [(7, f"{GPU}.create_timeout")]
    assert "is not shorter than Cluster Autoscaler's max-node-provision-time, 15m" in create[0][2]
    provision = desk.warned(GROUP + "    provision_timeout: 12m\n")
    assert [told[:2] for told in provision] == [(7, f"{GPU}.provision_timeout")]
    options = "    autoscaling_options: {max_node_provision_time: 40m}\n    provision_timeout: 45m\n"
    assert desk.warned(GROUP + options + "    create_timeout: 20m\n") == []
