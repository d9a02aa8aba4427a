"""What real nodes teach about templates: the first ready one of a kind corrects it, and none ever raises it above that.

Prices do not follow: a machine costs the same whatever part of it its kubelet leaves to pods.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from decimal import Decimal

from app.domain.books import Books
from app.domain.cluster.events import TemplateLearned, TemplatesDiscarded
from app.domain.cluster.joins import sole_claims
from app.domain.cluster.node import Figures, Node
from app.domain.envelope import Decision, Event
from app.domain.instance.events import NodeMeasured
from app.domain.instance.state import Instance
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract
from app.domain.quantity import parse_quantity
from app.domain.template import GPU, TemplateNode, build_template

_SETTLED = timedelta(minutes=1)
"""Cluster Autoscaler, too, takes a node for a template only after a minute."""
_PLUGIN_PATIENCE = timedelta(minutes=20)
"""A driver that is still installing shows no GPUs; after this long it is not installing any more."""
_LEARNED_LABELS = "nvidia.com/gpu."
"""What GPU feature discovery says of the hardware, which is the same on every machine of a kind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureNodes:
    """A whole picture of the cluster's nodes, for what it says about sizes."""

    nodes: tuple[Node, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscardTemplates:
    """The operator wants templates as they are computed."""


def kind_of(spec: NodeGroupSpec) -> str:
    """What nodes must have in common to teach about each other: type, image, disk, and how their GPUs are shared."""
    parts = [spec.instance_type, spec.image]
    if spec.os_volume_size_gb is not None:
        parts.append(f"{spec.os_volume_size_gb} GB")
    if spec.mig_profile is not None:
        parts.append(f"MIG {spec.mig_profile}")
    if spec.override_num_gpus is not None:
        parts.append(f"{spec.override_num_gpus} GPUs")
    return ", ".join(parts)


def measure_nodes(command: MeasureNodes, books: Books, now: datetime) -> Decision:
    """Every node once, when it has settled: by how much it is less than promised, and what that changes."""
    events: list[Event] = []
    known = {kind: learned.figures for kind, learned in books.cluster.learned.items()}
    for instance, node in sole_claims(command.nodes, books):
        spec = books.groups[instance.node_group].spec
        promised = _promised(instance, spec, books)
        if promised is None or not _has_settled(instance, node, promised, now):
            continue
        differences = tuple(_differences(promised, node))
        events.append(NodeMeasured(instance=instance.name, node_group=spec.name, differences=differences))
        kind = kind_of(spec)
        figures = _learned(known.get(kind), node)
        if figures != known.get(kind) and _shows_what_it_must(node, promised):
            known[kind] = figures
            events.append(
                TemplateLearned(
                    kind=kind, node=node.name, instance=instance.name, figures=figures, differences=differences
                )
            )
    return Decision(tuple(events))


def _promised(instance: Instance, spec: NodeGroupSpec, books: Books) -> TemplateNode | None:
    """The computed template, if the machine is still what its group orders."""
    kind = books.cloud.catalogue.get(spec.instance_type)
    is_same = instance.instance_type == spec.instance_type and instance.image == spec.image
    if kind is None or not is_same or instance.node_measured_at is not None:
        return None
    return build_template(spec, kind, instance.contract or Contract.ON_DEMAND, instance.location)


def _has_settled(instance: Instance, node: Node, promised: TemplateNode, now: datetime) -> bool:
    if not node.ready or instance.node_ready_at is None or now - instance.node_ready_at < _SETTLED:
        return False
    return _shows_what_it_must(node, promised) or now - instance.node_ready_at >= _PLUGIN_PATIENCE


def _shows_what_it_must(node: Node, promised: TemplateNode) -> bool:
    """GPUs, if there are to be any. A node without them teaches nothing about its kind: its driver is broken."""
    return not promised.allocatable.get(GPU) or _size(node.allocatable, GPU) > 0


def _size(sizes: Mapping[str, str], resource: str) -> Decimal:
    """Zero for what is not there or makes no sense."""
    try:
        return parse_quantity(sizes.get(resource, "0"))
    except ValueError:
        return Decimal(0)


def _differences(promised: TemplateNode, node: Node) -> Iterable[str]:
    """In figures, where the node has less for pods than the template said."""
    for resource, size in promised.allocatable.items():
        real = _size(node.allocatable, resource)
        if real < size:
            yield f"{resource}: {real.normalize():f} of {size.normalize():f}"


def _learned(known: Figures | None, node: Node) -> Figures:
    """Sizes: the least of all nodes seen. Devices: the most, since one that is missing is that machine's own defect."""
    labels = {key: value for key, value in node.labels.items() if key.startswith(_LEARNED_LABELS)}
    seen = Figures(capacity=dict(node.capacity), allocatable=dict(node.allocatable), labels=labels)
    if known is None:
        return seen
    return Figures(
        capacity=_merged(known.capacity, seen.capacity),
        allocatable=_merged(known.allocatable, seen.allocatable),
        labels=known.labels,
    )


def _merged(known: Mapping[str, str], seen: Mapping[str, str]) -> dict[str, str]:
    merged = dict(known)
    for resource, text in seen.items():
        old, new = _size(known, resource), _size(seen, resource)
        if resource not in known or (new > old if "/" in resource else new < old):
            merged[resource] = text
    return merged


def discard_templates(_command: DiscardTemplates, books: Books) -> Decision:
    """Forget everything, if there is anything."""
    kinds = tuple(sorted(books.cluster.learned))
    return Decision((TemplatesDiscarded(kinds=kinds),) if kinds else ())


def corrected(template: TemplateNode, figures: Figures | None, spec: NodeGroupSpec) -> TemplateNode:
    """The template as real nodes of its kind are. What the operator set stays, unless no node has that much."""
    if figures is None:
        return template
    operators = set(spec.resources) | ({GPU} if spec.override_num_gpus is not None else set())
    capacity = _corrected(template.capacity, figures.capacity, operators)
    allocatable = _corrected(template.allocatable, figures.allocatable, operators)
    labels = {key: value for key, value in figures.labels.items() if key not in spec.labels}
    return replace(
        template,
        labels={**template.labels, **labels},
        capacity=capacity,
        allocatable={resource: min(size, capacity.get(resource, size)) for resource, size in allocatable.items()},
    )


def _corrected(
    computed: Mapping[str, Decimal], real: Mapping[str, str], operators: Iterable[str]
) -> dict[str, Decimal]:
    sizes = dict(computed)
    for resource in real:
        size = _size(real, resource)
        if resource in sizes:
            sizes[resource] = min(sizes[resource], size) if resource in operators else size
        elif "/" in resource and size > 0:
            sizes[resource] = size
    return sizes
