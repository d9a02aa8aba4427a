"""`defaults`, and the form of the older Python provider."""

from decimal import Decimal

import pytest

from app.config.groups import NodeGroup
from app.config.specs import to_specs

from .harness import GROUP, Desk

TWO = """\
node_groups:
  a: {instance_type: 1A100.22V, max_size: 3}
  b: {instance_type: CPU.4V.16G, max_size: 4}
"""


def test_defaults_fill_what_a_group_does_not_say(desk: Desk) -> None:
    """And a group's own key wins."""
    text = "defaults: {image: ubuntu, location: FIN-01, max_size: 9, min_size: 1}\n" + TWO
    groups = desk.load(text).config.node_groups
    assert [group.model_dump(include={"image", "location", "min_size", "max_size"}) for group in groups.values()] == [
        {"image": "ubuntu", "location": "FIN-01", "min_size": 1, "max_size": 3},
        {"image": "ubuntu", "location": "FIN-01", "min_size": 1, "max_size": 4},
    ]


def test_a_groups_own_mapping_wins_as_a_whole(desk: Desk) -> None:
    """So that a group can also be without a label that the others have."""
    text = "defaults: {image: x, location: y, labels: {a: b}, taints: ['a:NoSchedule']}\n" + TWO.replace(
        "max_size: 3", "max_size: 3, labels: {c: d}, taints: []"
    )
    a, b = desk.load(text).config.node_groups.values()
    assert (a.labels, len(a.taints)) == ({"c": "d"}, 0)
    assert (b.labels, len(b.taints)) == ({"a": "b"}, 1)


def test_an_own_null_means_the_key_is_not_set(desk: Desk) -> None:
    """The way out of a default."""
    text = "defaults: {image: x, location: y, max_hourly_cost: 5}\n" + TWO.replace(
        "max_size: 3", "max_size: 3, max_hourly_cost: null"
    )
    costs = [spec.max_hourly_cost for spec in to_specs(desk.load(text).config)]
    assert costs == [None, Decimal(5)]


@pytest.mark.parametrize(
    ("shared", "own"),
    [
        ("location: FIN-01", "locations: [FIN-02, FIN-03]"),
        ("locations: [FIN-02, FIN-03]", "location: FIN-01"),
        ("contract: SPOT", "instance_option: prefer_spot"),
        ("instance_option: prefer_spot", "contract: SPOT"),
        ("disk_size_gb: 50", "os_volume: {size_gb: 60}"),
        ("os_volume: {size_gb: 60}", "disk_size_gb: 50"),
    ],
)
def test_two_keys_for_one_thing_do_not_clash_across_levels(desk: Desk, shared: str, own: str) -> None:
    """The group's way of saying it wins."""
    text = f"defaults:\n  {shared}\n" + GROUP.replace("    location: FIN-01\n", "") + f"    {own}\n"
    where = "" if "location" in shared else "    location: FIN-01\n"
    assert desk.told(text + where) == []


@pytest.mark.parametrize(("own", "size_gb"), [("disk_size_gb: 50", 50), ("disk_size_gb: null", 100), ("", 60)])
def test_an_own_disk_size_leaves_the_policy_of_the_defaults(desk: Desk, own: str, size_gb: int) -> None:
    """A disk that was to be kept in the trash must not be deleted for good because its size is written otherwise."""
    text = "defaults: {os_volume: {size_gb: 60, policy: trash}}\n" + GROUP + f"    {own}\n"
    (spec,) = to_specs(desk.load(text).config)
    assert (spec.os_volume_size_gb, spec.os_volume_permanent) == (size_gb, False)


def test_a_wrong_policy_of_the_defaults_is_told_there_once(desk: Desk) -> None:
    """Also where a group has a disk size of its own."""
    text = "defaults: {os_volume: {policy: bin}}\n" + GROUP + "    disk_size_gb: 50\n"
    told = desk.told(text)
    assert [one[:2] for one in told] == [(1, "defaults.os_volume.policy")]


def test_a_problem_in_defaults_is_told_once_at_its_line(desk: Desk) -> None:
    """Not once for each of a hundred groups."""
    text = "defaults:\n  image: x\n  location: y\n  taints: ['a:Never']\n  maxsize: 4\n  labels: {a: 1}\n" + TWO
    told = desk.told(text)
    assert [(line, path) for line, path, _ in told] == [
        (4, "defaults.taints[0]"),
        (5, "defaults.maxsize"),
        (6, "defaults.labels.a"),
    ]
    assert told[1][2] == "is not a known key: did you mean max_size?"
    assert told[2][2] == "must be text, is 1: put it in quotes"


def test_a_problem_in_defaults_is_told_without_any_group(desk: Desk) -> None:
    """Or when every group says otherwise."""
    assert desk.told("defaults: {max_size: x}\nnode_groups: {}\n") == [
        (1, "defaults.max_size", 'must be a whole number, is "x"')
    ]


def test_defaults_need_not_be_complete(desk: Desk) -> None:
    """Nothing is missing there."""
    assert desk.told("defaults: {min_size: 1}\nnode_groups: {}\n") == []
    assert desk.told(GROUP + "defaults:\n") == []


def test_defaults_are_a_mapping(desk: Desk) -> None:
    """Told as such, with no sequel."""
    assert desk.told(GROUP + "defaults: [a]\n") == [
        (7, "defaults", "must be a mapping: keys of a node group with their values")
    ]


def test_a_clash_with_defaults_is_told_at_the_group(desk: Desk) -> None:
    """There is what made the difference."""
    text = "defaults: {min_size: 4, image: x, location: y}\n" + TWO
    assert desk.told(text) == [
        (3, "node_groups.a.max_size", "max_size is 3 and min_size 4: max_size must be at least min_size")
    ]
    text = "defaults: {max_size: 2}\n" + GROUP.replace("max_size: 3", "min_size: 3")
    assert desk.told(text) == [
        (6, "node_groups.gpu.min_size", "max_size is 2 and min_size 3: max_size must be at least min_size")
    ]


def test_a_clash_within_defaults_is_told_there(desk: Desk) -> None:
    """Once."""
    text = "defaults:\n  min_size: 4\n  max_size: 3\n  image: x\n  location: y\n" + TWO.replace(", max_size: 3", "")
    assert desk.told(text) == [
        (3, "defaults.max_size", "max_size is 3 and min_size 4: max_size must be at least min_size")
    ]


def test_the_gpu_label_in_defaults_is_told_once(desk: Desk) -> None:
    """The tempting place for it."""
    text = "defaults: {image: x, location: y, labels: {verda.com/gpu: 'true'}}\n" + TWO
    told = desk.told(text.replace("1A100.22V", "CPU.8V.32G"))
    assert [one[:2] for one in told] == [(1, 'defaults.labels["verda.com/gpu"]')]


def test_variables_work_in_defaults(desk: Desk) -> None:
    """They are values like any other."""
    text = "defaults: {image: '${IMAGE}', location: y}\n" + TWO
    assert {spec.image for spec in to_specs(desk.load(text, environ={"IMAGE": "x"}).config)} == {"x"}
    assert [told[:2] for told in desk.told(text)] == [(1, "defaults.image")]


def test_a_warning_about_defaults_is_told_once(desk: Desk) -> None:
    """As a problem is."""
    text = "defaults: {image: x, location: y, pricing: DYNAMIC_PRICE}\n" + TWO
    assert [told[:2] for told in desk.warned(text)] == [(1, "defaults.pricing")]


def test_the_older_sizes_find_their_place(desk: Desk) -> None:
    """Gigabytes are decimal ones: a machine of 16 GB never shows 16 Gi."""
    more = "    resources: {cpu: 4, memory_gb: 16, gpu_count: 2, gpu_model: V100, gpu_memory_gb: 16}\n"
    loaded = desk.load(GROUP + more)
    group = loaded.config.node_groups["gpu"]
    assert isinstance(group, NodeGroup)
    assert group.resources == {"cpu": "4", "memory": "16G"}
    assert group.override_num_gpus == 2
    assert [(warning.line, warning.path, warning.message) for warning in loaded.warnings] == [
        (7, "node_groups.gpu.resources.memory_gb", "is read as memory: 16G"),
        (7, "node_groups.gpu.resources.gpu_model", "is not used: Verda's catalogue describes the GPUs"),
        (7, "node_groups.gpu.resources.gpu_memory_gb", "is not used: Verda's catalogue describes the GPUs"),
    ]


@pytest.mark.parametrize(
    ("more", "path", "words"),
    [
        ("resources: {memory_gb: lots}", "resources.memory_gb", "must be a number of gigabytes"),
        ("resources: {memory_gb: -1}", "resources.memory_gb", "must be a Kubernetes quantity"),
        ("resources: {memory_gb: 1, memory: 1Gi}", "resources.memory_gb", "memory and memory_gb are both given"),
        ("resources: {gpu_count: x}", "resources.gpu_count", 'must be a whole number, is "x"'),
        ("resources: {gpu_count: [1]}", "resources.gpu_count", "must be a whole number, is a list"),
        (
            "override_num_gpus: 1\n    resources: {gpu_count: 2}",
            "resources.gpu_count",
            "differs from override_num_gpus",
        ),
    ],
)
def test_wrong_older_sizes_are_told_by_their_older_name(desk: Desk, more: str, path: str, words: str) -> None:
    """The only one that the file holds."""
    ((_, told_path, message),) = desk.told(GROUP + f"    {more}\n")
    assert told_path == f"node_groups.gpu.{path}"
    assert words in message


def test_the_older_sizes_work_in_defaults(desk: Desk) -> None:
    """And a mistake there is told there."""
    text = "defaults: {image: x, location: y, resources: {memory_gb: 8, gpu_count: 0}}\n" + TWO
    assert {tuple(spec.resources.items()) for spec in to_specs(desk.load(text).config)} == {(("memory", "8G"),)}
    assert {spec.override_num_gpus for spec in to_specs(desk.load(text).config)} == {0}
    told = desk.told(text.replace("memory_gb: 8", "memory_gb: -8"))
    assert [one[:2] for one in told] == [(1, "defaults.resources.memory_gb")]


def test_the_older_cluster_section_is_accepted_unused(desk: Desk) -> None:
    """Machines join through their script."""
    warned = desk.warned(GROUP + "kubernetes:\n  endpoint: 192.0.2.1:6443\n  token: a.b\n  ca_hash: 'sha256:0'\n")
    assert [told[:2] for told in warned] == [
        (8, "kubernetes.endpoint"),
        (9, "kubernetes.token"),
        (10, "kubernetes.ca_hash"),
    ]
    assert all("is not used" in message for _, _, message in warned)


def test_dynamic_prices_are_accepted_with_a_warning(desk: Desk) -> None:
    """They no longer exist."""
    assert desk.warned(GROUP + "    pricing: FIXED_PRICE\n") == []
    assert desk.warned(GROUP + "    pricing: DYNAMIC_PRICE\n") == [
        (7, "node_groups.gpu.pricing", "has no effect: Verda has no dynamic prices any more; remove it")
    ]
