"""F36, F39: real nodes correct the template of their kind, and none raises it above what a node really has."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from app.domain.cluster.events import TemplateLearned, TemplatesDiscarded
from app.domain.cluster.joins import ObserveNodes
from app.domain.cluster.learning import DiscardTemplates, MeasureNodes, corrected, kind_of
from app.domain.cluster.node import Figures, Node
from app.domain.instance.events import NodeMeasured
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract
from app.domain.template import TemplateNode, build_template

from .facts import A_ID, B_ID, H100, H100_TYPE, IMAGE, A, B, h100, running
from .scenario import NOON, Scenario

GIB = 2**30
KIND = f"1H100.80S.32V, {IMAGE}"
MINUTE = timedelta(minutes=1)
CAPACITY = {"cpu": "32", "memory": "172Gi", "ephemeral-storage": "40Gi", "pods": "110", "nvidia.com/gpu": "1"}
ALLOCATABLE = {"cpu": "31500m", "memory": "160Gi", "ephemeral-storage": "36Gi", "pods": "110", "nvidia.com/gpu": "1"}
"""What its kubelet says of a machine of 32 cores and 185 GB; each less than promised but pods and GPU."""


def node(name: str = A, **more: Any) -> Node:
    """A ready node of an instance."""
    values: dict[str, Any] = {
        "name": name,
        "uid": f"uid-of-{name}",
        "resource_version": "1",
        "created_at": NOON,
        "provider_id": f"verda://{name}",
        "ready": True,
        "capacity": CAPACITY,
        "allocatable": ALLOCATABLE,
    }
    return Node(**(values | more))


def joined(*nodes: Node, story: Scenario = h100) -> Scenario:
    """Machines that run, and whose nodes have been ready for a minute."""
    for item, instance_id in zip(nodes, (A_ID, B_ID), strict=False):
        story = story.given(*running(item.name, instance_id))
    return story.given(ObserveNodes(nodes=nodes, repairs=True), MINUTE)


def learned(story: Scenario) -> dict[str, Figures]:
    """What the books know, by kind."""
    return {kind: one.figures for kind, one in story.books.cluster.learned.items()}


def promised(spec: NodeGroupSpec = H100) -> TemplateNode:
    """The computed template."""
    return build_template(spec, H100_TYPE, Contract.ON_DEMAND)


def test_the_first_ready_node_teaches_its_kind() -> None:
    """Once, with the figures by which it is less: the template had promised 31.85 cores, 168.9 GiB, 85.5 GB."""
    outcome = joined(node()).when(MeasureNodes(nodes=(node(),)))
    measured, taught = outcome.events
    assert isinstance(measured, NodeMeasured)
    assert isinstance(taught, TemplateLearned)
    assert [text.partition(":")[0] for text in measured.differences] == ["cpu", "memory", "ephemeral-storage"]
    assert measured.differences[0] == "cpu: 31.5 of 31.85"
    assert taught.kind == KIND
    assert taught.figures == Figures(capacity=CAPACITY, allocatable=ALLOCATABLE, labels={})
    outcome.after.when(MeasureNodes(nodes=(node(),))).then_nothing()


def test_the_template_becomes_what_the_node_is() -> None:
    """Less where it is less, more where the computed one was too careful; and never more than the node has."""
    roomy = node(allocatable=ALLOCATABLE | {"memory": "170Gi"})
    story = joined(roomy).given(MeasureNodes(nodes=(roomy,)))
    template = corrected(promised(), learned(story)[KIND], H100)
    assert template.allocatable["cpu"] == Decimal("31.5")
    assert template.allocatable["memory"] == 170 * GIB
    assert template.capacity["memory"] == 172 * GIB
    assert template.allocatable["nvidia.com/gpu"] == 1
    assert all(size <= template.capacity[resource] for resource, size in template.allocatable.items())


def test_without_a_lesson_the_template_is_the_computed_one() -> None:
    """The very same object."""
    template = promised()
    assert corrected(template, None, H100) is template


def test_sizes_only_ever_fall() -> None:
    """F36. The second node has less memory and more CPU: the next one is promised the least of both."""
    second = node(B, allocatable=ALLOCATABLE | {"memory": "150Gi", "cpu": "31900m"})
    story = joined(node(), second).given(MeasureNodes(nodes=(node(),)))
    story = story.given(MeasureNodes(nodes=(node(), second)))
    figures = learned(story)[KIND]
    assert (figures.allocatable["memory"], figures.allocatable["cpu"]) == ("150Gi", "31500m")


def test_a_node_that_teaches_nothing_new_is_no_lesson() -> None:
    """It is measured all the same."""
    story = joined(node(), node(B)).given(MeasureNodes(nodes=(node(),)))
    (measured,) = story.when(MeasureNodes(nodes=(node(), node(B)))).events
    assert isinstance(measured, NodeMeasured)


EIGHT = H100_TYPE.model_copy(update={"gpus": 8})


def eight(story: Scenario = h100) -> Scenario:
    """The type has eight GPUs."""
    view = replace(story.books.cloud, catalogue=story.books.cloud.catalogue.insert(EIGHT.name, EIGHT))
    return replace(story, books=replace(story.books, cloud=view))


def with_gpus(count: int, name: str = A) -> Node:
    """A node that shows so many."""
    shown = {"nvidia.com/gpu": str(count)}
    return node(name, allocatable=ALLOCATABLE | shown, capacity=CAPACITY | shown)


def test_a_first_node_with_seven_of_eight_gpus_is_reality() -> None:
    """F39. Recorded once with figures; nothing is killed; the next node is not promised eight."""
    story = joined(with_gpus(7), story=eight())
    outcome = story.when(MeasureNodes(nodes=(with_gpus(7),)))
    (measured, _) = outcome.events
    assert isinstance(measured, NodeMeasured)
    assert "nvidia.com/gpu: 7 of 8" in measured.differences
    template = build_template(H100, EIGHT, Contract.ON_DEMAND)
    assert corrected(template, learned(outcome.after)[KIND], H100).allocatable["nvidia.com/gpu"] == 7
    assert outcome.after.instance(A).state == "running"


def test_a_later_node_with_seven_is_that_machines_defect() -> None:
    """F39. Another one had eight: that is told, and pods that want eight still get the next machine."""
    story = joined(with_gpus(8), with_gpus(7, B), story=eight()).given(MeasureNodes(nodes=(with_gpus(8),)))
    outcome = story.when(MeasureNodes(nodes=(with_gpus(8), with_gpus(7, B))))
    (measured,) = outcome.events
    assert isinstance(measured, NodeMeasured)
    assert "nvidia.com/gpu: 7 of 8" in measured.differences
    assert learned(outcome.after)[KIND].allocatable["nvidia.com/gpu"] == "8"


def test_a_node_is_not_measured_before_it_has_settled() -> None:
    """A minute after it was ready; not while its driver is being installed; at the latest after twenty minutes."""
    bare = node(allocatable={key: value for key, value in ALLOCATABLE.items() if key != "nvidia.com/gpu"})
    story = h100.given(*running(), ObserveNodes(nodes=(bare,), repairs=True), timedelta(seconds=59))
    story.when(MeasureNodes(nodes=(node(),))).then_nothing()
    story = story.given(timedelta(minutes=19))
    story.when(MeasureNodes(nodes=(bare,))).then_nothing()
    outcome = story.given(timedelta(seconds=1)).when(MeasureNodes(nodes=(bare,)))
    (measured,) = outcome.events
    assert isinstance(measured, NodeMeasured)
    assert "nvidia.com/gpu: 0 of 1" in measured.differences
    assert learned(outcome.after) == {}


@pytest.mark.parametrize("why", ["not ready", "claimed twice", "another image"])
def test_who_teaches_nothing(why: str) -> None:
    """Nobody knows what it would say once it is well, which of two it is, or it is of an older configuration."""
    story = joined(node())
    shown: tuple[Node, ...] = (node(),)
    if why == "not ready":
        shown = (node(ready=False),)
    elif why == "claimed twice":
        shown = (node(), node("other", provider_id=f"verda://{A}"))
    else:
        changed = replace(story.books.instances[A], image="ubuntu-22.04")
        story = replace(story, books=story.books.with_instance(changed))
    story.when(MeasureNodes(nodes=shown)).then_nothing()


def test_what_the_operator_set_stays_unless_no_node_has_it() -> None:
    """`resources` below reality is meant; above reality it would make the autoscaler buy for ever."""
    spec = H100.model_copy(update={"resources": {"cpu": "16", "memory": "180Gi"}})
    figures = Figures(capacity=CAPACITY, allocatable=ALLOCATABLE, labels={})
    template = corrected(promised(spec), figures, spec)
    assert template.capacity["cpu"] == 16
    assert template.capacity["memory"] == 172 * GIB
    assert template.allocatable["memory"] == 160 * GIB


def test_what_was_not_promised_and_is_there_is_promised() -> None:
    """Devices of other plugins; nothing that a node only mentions."""
    more = {"rdma/hca": "4", "hugepages-1Gi": "0", "example.com/none": "0"}
    figures = Figures(capacity=CAPACITY | more, allocatable=ALLOCATABLE | more, labels={})
    template = corrected(promised(), figures, H100)
    assert set(template.allocatable) - set(promised().allocatable) == {"rdma/hca"}


def test_labels_of_the_hardware_are_learned() -> None:
    """What discovery says of the GPU; nothing that belongs to the one machine or its group, and no time stamp."""
    labels = {
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-v2",
        "nvidia.com/gfd.timestamp": "1767571200",
        "kubernetes.io/hostname": A,
        "team": "ml",
    }
    shown = node(labels=labels)
    story = joined(shown).given(MeasureNodes(nodes=(shown,)))
    template = corrected(promised(), learned(story)[KIND], H100)
    assert template.labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-v2"
    assert template.labels == {**promised().labels, "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3-v2"}


@pytest.mark.parametrize(
    "change", [{"os_volume_size_gb": 500}, {"override_num_gpus": 4}, {"mig_profile": "all-1g.10gb"}, {"image": "other"}]
)
def test_groups_that_differ_in_sizes_do_not_teach_each_other(change: dict[str, object]) -> None:
    """One type and image is not enough: another disk, or shared GPUs, is another node."""
    assert kind_of(H100.model_copy(update=change)) != kind_of(H100)
    assert kind_of(H100.model_copy(update={"name": "other", "max_size": 9})) == kind_of(H100)


def test_the_operator_has_it_all_forgotten() -> None:
    """`learn_templates: false`; once."""
    story = joined(node()).given(MeasureNodes(nodes=(node(),)))
    after = story.when(DiscardTemplates()).then(TemplatesDiscarded(kinds=(KIND,)))
    assert learned(after) == {}
    after.when(DiscardTemplates()).then_nothing()
