"""What is still to be done to a node of ours once it has registered: labels that its kubelet may not set, and taints.

Each change is made once for each node and then left alone: whoever undoes it had a reason.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.domain.books import Books
from app.domain.cluster.joins import is_older
from app.domain.cluster.node import Node, NodeTaint
from app.domain.envelope import Decision
from app.domain.instance.events import NodePreparationAttempted, NodePrepared
from app.domain.instance.state import Instance
from app.domain.labels import is_reserved_label
from app.domain.nodegroup.spec import LiftedWhen, NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.quantity import parse_quantity
from app.domain.template import CONTRACT_LABEL, REGION_LABEL, ZONE_LABEL, build_template, kubelet_labels


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """What to do to one node. `changes` says it in words, and tells a change from one that was made before."""

    node: Node
    instance: str
    labels: Mapping[str, str]
    lifted: tuple[NodeTaint, ...]

    @property
    def changes(self) -> tuple[str, ...]:
        """One sentence for each."""
        labels = (_label_text(key, value) for key, value in self.labels.items())
        return (*labels, *(_taint_text(taint) for taint in self.lifted))


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptNodePreparation:
    """This is about to be done to a node."""

    preparation: Preparation


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordNodePrepared:
    """What was attempted has been done to the node of this instance."""

    instance: str
    node: str


def _label_text(key: str, value: str) -> str:
    return f"label {key}={value}"


def _taint_text(taint: NodeTaint) -> str:
    return f"without taint {taint.key}={taint.value}:{taint.effect}"


def preparation_of(node: Node, instance: Instance, books: Books, *, labels: bool) -> Preparation | None:
    """What is to be done to the one node of a live instance and was not done to it before; None if nothing is."""
    spec = books.groups[instance.node_group].spec
    kind = books.cloud.catalogue.get(instance.instance_type or spec.instance_type)
    if kind is None or instance.node_registered_at is None or not instance.state.is_live or is_older(node, instance):
        return None
    before = instance.node_prepared if instance.prepared_uid == node.uid else ()
    wanted = _missing_labels(node, instance, spec, kind) if labels else {}
    found = Preparation(
        node=node,
        instance=instance.name,
        labels={key: value for key, value in wanted.items() if _label_text(key, value) not in before},
        lifted=tuple(taint for taint in _over(node, instance, spec, kind) if _taint_text(taint) not in before),
    )
    return found if found.labels or found.lifted else None


def _missing_labels(node: Node, instance: Instance, spec: NodeGroupSpec, kind: InstanceType) -> dict[str, str]:
    """The group's labels that a kubelet may not set, unless somebody did; and what was obtained, which is a fact."""
    told = kubelet_labels(spec, kind, instance.contract or spec.contracts[0], instance.location)
    facts = {CONTRACT_LABEL} if instance.contract is not None else set()
    facts |= {REGION_LABEL, ZONE_LABEL} - set(spec.labels) if instance.location is not None else set()
    return {
        key: value
        for key, value in sorted(told.items())
        if (key in facts and node.labels.get(key) != value) or (is_reserved_label(key) and key not in node.labels)
    }


def _over(node: Node, instance: Instance, spec: NodeGroupSpec, kind: InstanceType) -> Sequence[NodeTaint]:
    """The start-up taints on the node whose time is over."""
    ours = {
        NodeTaint(key=taint.key, value=taint.value, effect=taint.effect): taint.until
        for taint in spec.startup_taints
        if taint.until is not None
    }
    return [taint for taint in node.taints if taint in ours and _is_met(ours[taint], node, instance, spec, kind)]


def _is_met(until: LiftedWhen, node: Node, instance: Instance, spec: NodeGroupSpec, kind: InstanceType) -> bool:
    if not node.ready or until is LiftedWhen.READY:
        return node.ready
    promised = build_template(spec, kind, instance.contract or Contract.ON_DEMAND, instance.location).allocatable
    devices = [resource for resource, size in promised.items() if "/" in resource and size]
    return all(_is_there(resource, node) for resource in devices)


def _is_there(resource: str, node: Node) -> bool:
    try:
        return parse_quantity(node.allocatable.get(resource, "0")) > 0
    except ValueError:
        return False


def attempt_node_preparation(command: AttemptNodePreparation, books: Books) -> Decision:
    """Write down the intent, once until there is another."""
    preparation = command.preparation
    instance = books.instances.get(preparation.instance)
    if instance is None or not instance.state.is_live:
        return Decision()
    if (instance.prepared_uid, instance.node_preparing) == (preparation.node.uid, preparation.changes):
        return Decision()
    attempted = NodePreparationAttempted(
        instance=instance.name,
        node_group=instance.node_group,
        node=preparation.node.name,
        uid=preparation.node.uid,
        changes=preparation.changes,
    )
    return Decision((attempted,))


def record_node_prepared(command: RecordNodePrepared, books: Books) -> Decision:
    """The outcome, once."""
    instance = books.instances.get(command.instance)
    if instance is None or not instance.state.is_live or not instance.node_preparing:
        return Decision()
    prepared = NodePrepared(
        instance=instance.name, node_group=instance.node_group, node=command.node, changes=instance.node_preparing
    )
    return Decision((prepared,))
