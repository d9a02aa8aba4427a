"""Words with Kubernetes' own rules: taints, labels, quantities."""

import pytest

from app.config.groups import NodeGroup

from .harness import GROUP, Desk

GPU = "node_groups.gpu"


def group_of(desk: Desk, more: str) -> NodeGroup:
    """The group `gpu` of a file with more lines in it."""
    group = desk.load(GROUP + more).config.node_groups["gpu"]
    assert isinstance(group, NodeGroup)
    return group


@pytest.mark.parametrize(
    ("written", "taint"),
    [
        ('"gpu=true:NoSchedule"', ("gpu", "true", "NoSchedule")),
        ('"gpu:NoSchedule"', ("gpu", "", "NoSchedule")),
        ('"gpu=:NoExecute"', ("gpu", "", "NoExecute")),
        ("node.cilium.io/agent-not-ready=true:NoExecute", ("node.cilium.io/agent-not-ready", "true", "NoExecute")),
        ("{key: dedicated, value: ml, effect: PreferNoSchedule}", ("dedicated", "ml", "PreferNoSchedule")),
        ("{key: dedicated, effect: NoSchedule}", ("dedicated", "", "NoSchedule")),
        ("{key: dedicated, value: null, effect: NoSchedule}", ("dedicated", "", "NoSchedule")),
    ],
)
def test_taints(desk: Desk, written: str, taint: tuple[str, str, str]) -> None:
    """Both forms that kubectl and manifests use."""
    group = group_of(desk, f"    taints: [{written}]\n    startup_taints: [{written}]\n")
    assert [(one.key, one.value, one.effect.value) for one in group.taints] == [taint]
    assert [(one.key, one.value, one.effect.value) for one in group.startup_taints] == [taint]
    assert [one.until for one in group.startup_taints] == [None]


@pytest.mark.parametrize("until", ["ready", "gpus"])
def test_a_start_up_taint_may_say_until_when(desk: Desk, until: str) -> None:
    """Only as an object: the short form is Kubernetes' own."""
    taint = f"{{key: startup-taint.cluster-autoscaler.kubernetes.io/a, effect: NoSchedule, until: {until}}}"
    more = f"    startup_taints: [{taint}]\nkubernetes: {{enabled: true}}\n"
    assert [str(one.until) for one in group_of(desk, more).startup_taints] == [until]
    assert desk.warned(GROUP + more) == []


def test_nobody_takes_a_start_up_taint_off_while_the_cluster_side_is_off(desk: Desk) -> None:
    """Pods would wait for ever; taints that others take off are theirs."""
    more = "    startup_taints: ['cilium:NoExecute', {key: booting, effect: NoSchedule, until: gpus}]\n"
    warned = desk.warned(GROUP + more)
    assert [(line, path) for line, path, _ in warned] == [(7, f"{GPU}.startup_taints")] * 2
    assert "nobody takes the taint off while kubernetes.enabled is false" in warned[0][2]
    assert warned[1][2] == (
        "the autoscaler takes a node with booting for one that is ready, and may buy another for the same pod: begin "
        "the key with startup-taint.cluster-autoscaler.kubernetes.io/, or run it with --startup-taint=booting"
    )
    assert desk.warned(GROUP + "    startup_taints: ['cilium:NoExecute']\n") == []


def test_a_taint_that_stays_has_no_until(desk: Desk) -> None:
    """It would be taken off a node that the template says has it."""
    problems = desk.told(GROUP + "    taints: [{key: a, effect: NoSchedule, until: ready}]\n")
    assert [path for _, path, _ in problems] == [f"{GPU}.taints[0].until"]


def test_bad_taints_are_told_with_their_position(desk: Desk) -> None:
    """All of them."""
    more = """\
    taints:
      - gpu=true:NoSchedule
      - gpu=true:NoSchedulee
      - "=x:NoSchedule"
      - "a b=c:NoSchedule"
      - "a=b c:NoSchedule"
      - gpu
      - {key: x, effect: Never}
      - {key: "-", effect: NoSchedule}
      - 17
"""
    told = desk.told(GROUP + more)
    assert [(line, path) for line, path, _ in told] == [
        (9, f"{GPU}.taints[1]"),
        (10, f"{GPU}.taints[2]"),
        (11, f"{GPU}.taints[3]"),
        (12, f"{GPU}.taints[4]"),
        (13, f"{GPU}.taints[5]"),
        (14, f"{GPU}.taints[6].effect"),
        (15, f"{GPU}.taints[7].key"),
        (16, f"{GPU}.taints[8]"),
    ]
    words = [
        'its effect must be NoSchedule, PreferNoSchedule or NoExecute, is "gpu=true:NoSchedulee": did you mean NoSch',
        'must be a taint with a key, is "=x:NoSchedule": write it like "gpu=true:NoSchedule" or "gpu:NoSchedule"',
        "its key must be a Kubernetes label key",
        "its value must be a Kubernetes label value",
        'must be a taint with its effect, is "gpu"',
        'must be NoSchedule, PreferNoSchedule or NoExecute, is "Never"',
        'must be a Kubernetes label key, is "-"',
        "must be a mapping of keys and values, is 17",
    ]
    for (_, _, message), expected in zip(told, words, strict=True):
        assert expected in message


def test_a_taint_stands_once(desk: Desk) -> None:
    """Kubernetes refuses a node that has it twice."""
    ((line, path, message),) = desk.told(GROUP + '    taints: ["a=1:NoSchedule", "a=2:NoSchedule"]\n')
    assert (line, path) == (7, f"{GPU}.taints")
    assert "must not hold a with NoSchedule twice" in message
    group_of(desk, '    taints: ["a:NoSchedule", "a:NoExecute"]\n')


@pytest.mark.parametrize(
    ("label", "path", "words"),
    [
        ("a b: x", 'labels["a b"]', "must be a Kubernetes label key: its name is letters, digits"),
        ("Example.com/a: x", 'labels["Example.com/a"]', "before the / stands a lower-case DNS name"),
        ("/a: x", 'labels["/a"]', "before the / stands a lower-case DNS name"),
        ("a/b/c: x", 'labels["a/b/c"]', "before the / stands a lower-case DNS name"),
        (f"{'a' * 64}: x", f"labels.{'a' * 64}", "at most 63 characters"),
        ("'': x", 'labels[""]', "must be a Kubernetes label key"),
        ("a: b c", "labels.a", 'must be a Kubernetes label value, is "b c": empty, or letters, digits'),
        ("a: true", "labels.a", "must be text, is true: put it in quotes"),
        ("a: 1.10", "labels.a", "must be text, is 1.10: put it in quotes"),
        ("a: null", "labels.a", 'must be text, is null: write "" for an empty value'),
        ("a: [b]", "labels.a", "must be text, is a list"),
        (f"a: {'b' * 64}", "labels.a", "must be a Kubernetes label value"),
    ],
)
def test_bad_labels(desk: Desk, label: str, path: str, words: str) -> None:
    """Kubernetes would refuse them when the machine is paid for already."""
    ((line, told_path, message),) = desk.told(GROUP + f"    labels:\n      {label}\n")
    assert (line, told_path) == (8, f"{GPU}.{path}")
    assert words in message


def test_good_labels(desk: Desk) -> None:
    """Empty values and every allowed character."""
    labels = group_of(desk, '    labels: {a: "", example.com/b_.-c: x_.-Y, "1": "1"}\n').labels
    assert labels == {"a": "", "example.com/b_.-c": "x_.-Y", "1": "1"}


@pytest.mark.parametrize(
    "label", ["node-role.kubernetes.io/gpu", "kubernetes.io/role", "k8s.io/role", "node-restriction.kubernetes.io/a"]
)
def test_labels_a_kubelet_may_not_set_are_warned_of(desk: Desk, label: str) -> None:
    """With one of them in its flags a kubelet does not start."""
    ((line, path, message),) = desk.warned(GROUP + f'    labels:\n      {label}: "true"\n')
    assert (line, path) == (8, f'{GPU}.labels["{label}"]')
    assert "a kubelet may not give itself this label" in message
    on = "kubernetes: {enabled: true, label_nodes: true}\n"
    assert desk.warned(GROUP + f'    labels:\n      {label}: "true"\n' + on) == []


@pytest.mark.parametrize(
    "label",
    ["example.com/role", "kubernetes.io/arch", "topology.kubernetes.io/zone", "node.kubernetes.io/pool", "role"],
)
def test_labels_a_kubelet_may_set(desk: Desk, label: str) -> None:
    """No false alarm."""
    assert desk.warned(GROUP + f"    labels: {{{label}: a}}\n") == []


def test_labels_that_are_always_ours_are_warned_of(desk: Desk) -> None:
    """The template would not show what stands here."""
    ((line, path, message),) = desk.warned(GROUP + "    labels: {node.kubernetes.io/instance-type: mine}\n")
    assert (line, path) == (7, f'{GPU}.labels["node.kubernetes.io/instance-type"]')
    assert "has no effect" in message


@pytest.mark.parametrize("value", ['"false"', '"true"', "17"])
def test_no_gpu_label_on_a_cpu_group(desk: Desk, value: str) -> None:
    """Its presence makes the autoscaler wait for a GPU that never comes."""
    text = GROUP.replace("1A100.22V", "CPU.4V.16G") + f"    labels:\n      verda.com/gpu: {value}\n"
    ((line, path, message),) = desk.told(text)
    assert (line, path) == (8, f'{GPU}.labels["verda.com/gpu"]')
    assert "must not stand on a group without GPUs (CPU.4V.16G), with any value" in message


def test_the_gpu_label_is_the_one_that_is_configured(desk: Desk) -> None:
    """Another key is just a label."""
    text = GROUP.replace("1A100.22V", "CPU.4V.16G") + "    labels: {verda.com/gpu: a, x: b}\ngpu_label: x\n"
    assert [told[:2] for told in desk.told(text)] == [(7, f"{GPU}.labels.x")]
    assert desk.told(GROUP + "    labels: {verda.com/gpu: a100}\n") == []


def test_resources_and_reserved(desk: Desk) -> None:
    """Numbers are quantities too; nothing means what the catalogue or a kubelet says."""
    group = group_of(
        desk,
        "    resources: {cpu: 4, memory: 1.5Gi, nvidia.com/mig-1g.10gb: 7, ephemeral-storage: null, pods: '60'}\n"
        "    reserved: {cpu: null, memory: 1Gi, ephemeral-storage: 0.5}\n",
    )
    assert group.resources == {"cpu": "4", "memory": "1.5Gi", "nvidia.com/mig-1g.10gb": "7", "pods": "60"}
    assert group.reserved == {"memory": "1Gi", "ephemeral-storage": "0.5"}


def test_a_gpu_label_that_is_none(desk: Desk) -> None:
    """The group's labels are not to blame."""
    text = GROUP.replace("1A100.22V", "CPU.4V.16G") + "    labels: {verda.com/gpu: a}\ngpu_label: [a]\n"
    assert [told[:2] for told in desk.told(text)] == [(8, "gpu_label")]
