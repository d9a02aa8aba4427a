"""Reading the nodes of the cluster against the books: which machines have become nodes, and what is odd about them.

Presence is evidence, absence is not: a wrong API server may miss every node there is. So a node that is missing is
told, and nothing follows from it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.books import Books
from app.domain.cluster.node import Node
from app.domain.envelope import Decision, Event
from app.domain.instance.commands import LearnProviderId
from app.domain.instance.decide import learn_provider_id
from app.domain.instance.events import NodeDoubt, NodeDoubted, NodeJoined, NodeRegistered, ProviderIdRepairAttempted
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.joining import boot_evidence, success

_CLOCKS_DIFFER = timedelta(minutes=2)
"""A node whose time of birth is further than this before its machine's order is somebody else's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObserveNodes:
    """A whole picture of the cluster's nodes. `repairs`: nodes without provider id are about to be given theirs."""

    nodes: tuple[Node, ...]
    repairs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptProviderIdRepair:
    """This node is about to be given the provider id of its instance."""

    repair: "Repair"


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A node without provider id that is ours: by its name, which nobody could guess, and one more witness."""

    node: Node
    instance: str
    provider_id: str
    evidence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claims:
    """The nodes that stand for a live instance by their provider id, and those that only have its name."""

    by_id: Mapping[str, Sequence[Node]]
    by_name: Mapping[str, Node]


def _claims(nodes: Iterable[Node], books: Books) -> _Claims:
    by_id: defaultdict[str, list[Node]] = defaultdict(list)
    by_name: dict[str, Node] = {}
    for node in nodes:
        key = books.node_key(node.provider_id, "") if node.provider_id else None
        owner = books.find_by_key(key) if key is not None else None
        if owner is not None:
            by_id[owner.name].append(node)
        elif node.name in books.instances:
            by_name[node.name] = node
    return _Claims(by_id=by_id, by_name=by_name)


def sole_claims(nodes: Iterable[Node], books: Books) -> Iterable[tuple[Instance, Node]]:
    """The live instances that exactly one node stands for, with that node."""
    for name, found in _claims(nodes, books).by_id.items():
        instance = books.instances[name]
        if len(found) == 1 and instance.state.is_live:
            yield instance, found[0]


def observe_nodes(command: ObserveNodes, books: Books, now: datetime) -> Decision:
    """Everything the picture adds to the books."""
    claims = _claims(command.nodes, books)
    events: list[Event] = []
    for instance in books.listed_instances():
        if not instance.state.is_live:
            continue
        found = claims.by_id.get(instance.name, ())
        namesake = claims.by_name.get(instance.name)
        if len(found) == 1:
            events.extend(_registered(instance, found[0], books, now))
        elif found:
            events.extend(_told(instance, NodeDoubt.CLAIMED_TWICE, _claimed_twice(instance, found)))
        elif namesake is not None:
            if not command.repairs or repair_of(namesake, instance) is None:
                events.extend(_doubtful_namesake(instance, namesake))
        elif _is_missed(instance, books, now):
            events.extend(_told(instance, NodeDoubt.MISSED, _missed(instance)))
    return Decision(tuple(events))


def _registered(instance: Instance, node: Node, books: Books, now: datetime) -> Iterable[Event]:
    """What one node says of its instance; one that is older than its machine was left behind by another."""
    if is_older(node, instance):
        message = (
            f"node {node.name} is older than the machine: if nothing runs there, kubectl delete node "
            f"{node.name}, and its kubelet registers anew"
        )
        yield from _told(instance, NodeDoubt.OLDER_THAN_MACHINE, message)
        return
    if instance.node_registered_at is None:
        yield NodeRegistered(
            instance=instance.name,
            node_group=instance.node_group,
            node=node.name,
            uid=node.uid,
            provider_id=node.provider_id,
            waited_s=_waited(instance, now),
        )
    if node.ready and instance.node_ready_at is None:
        yield NodeJoined(instance=instance.name, node_group=instance.node_group, waited_s=_waited(instance, now))
        yield from success(instance, books.groups[instance.node_group])
    yield from learn_provider_id(LearnProviderId(instance=instance.name, provider_id=node.provider_id), books).events


def is_older(node: Node, instance: Instance) -> bool:
    """The Node object was there before the machine: another one left it behind."""
    born = min(instance.created_at or instance.requested_at, instance.requested_at)
    return node.created_at + _CLOCKS_DIFFER < born


def _waited(instance: Instance, now: datetime) -> int:
    return max(int((now - (instance.running_at or now)).total_seconds()), 0)


def _claimed_twice(instance: Instance, nodes: Sequence[Node]) -> str:
    names = " and ".join(sorted(node.name for node in nodes))
    return (
        f"nodes {names} claim the provider id {instance.provider_id}: nothing is done to either; find out which is the "
        "machine, and start the other's kubelet with a --provider-id of its own"
    )


def _is_missed(instance: Instance, books: Books, now: datetime) -> bool:
    patience = books.groups[instance.node_group].spec.provision_timeout
    is_running = instance.state is InstanceState.RUNNING and instance.running_at is not None
    return is_running and instance.node_registered_at is None and _waited(instance, now) >= patience.total_seconds()


def _missed(instance: Instance) -> str:
    return (
        f"it runs and no node has registered: read its boot log, check the join token, and that its kubelet is started "
        f"with --provider-id={instance.provider_id}{boot_evidence(instance)}"
    )


def _doubtful_namesake(instance: Instance, node: Node) -> Iterable[Event]:
    remedy = f"start its kubelet with --provider-id={instance.provider_id} and kubectl delete node {node.name}"
    if node.provider_id:
        message = (
            f"node {node.name} has the provider id {node.provider_id}, which cannot be changed, and the autoscaler "
            f"looks for {instance.provider_id}: {remedy}"
        )
        return _told(instance, NodeDoubt.WRONG_PROVIDER_ID, message)
    message = f"node {node.name} has no provider id, so the autoscaler does not know it: {remedy}"
    return _told(instance, NodeDoubt.NO_PROVIDER_ID, message)


def _told(instance: Instance, doubt: NodeDoubt, message: str) -> Iterable[Event]:
    """Once for each thing there is to say."""
    if instance.node_problem != message:
        yield NodeDoubted(instance=instance.name, node_group=instance.node_group, doubt=doubt, message=message)


def repairs(nodes: Iterable[Node], books: Books) -> Sequence[Repair]:
    """The nodes to give a provider id to; none while two nodes could be meant."""
    found: list[Repair] = []
    claims = _claims(nodes, books)
    for name, node in claims.by_name.items():
        repair = None if name in claims.by_id else repair_of(node, books.instances[name])
        if repair is not None:
            found.append(repair)
    return found


def repair_of(node: Node, instance: Instance) -> Repair | None:
    """The repair of a node with the name of a live machine whose provider id is known for good.

    The name alone is no proof: a node could have been left behind, or made by hand. The second witness is the machine's
    address, or that the node was born after the machine had been seen running.
    """
    if node.provider_id or node.name != instance.name or not instance.state.is_live or instance.instance_id is None:
        return None
    if instance.provider_id.startswith("verda://pending/") or is_older(node, instance):
        return None
    if instance.ip is not None and instance.ip in node.addresses:
        evidence = f"same name and same address {instance.ip}"
    elif instance.running_at is not None and node.created_at > instance.running_at - _CLOCKS_DIFFER and node.boot_id:
        evidence = f"same name, and it booted after the machine ran (boot id {node.boot_id})"
    else:
        return None
    return Repair(node=node, instance=instance.name, provider_id=instance.provider_id, evidence=evidence)


def attempt_provider_id_repair(command: AttemptProviderIdRepair, books: Books) -> Decision:
    """Write down the intent, once for each node."""
    repair = command.repair
    instance = books.instances.get(repair.instance)
    if instance is None or not instance.state.is_live or instance.repaired_uid == repair.node.uid:
        return Decision()
    attempted = ProviderIdRepairAttempted(
        instance=instance.name,
        node_group=instance.node_group,
        node=repair.node.name,
        uid=repair.node.uid,
        provider_id=repair.provider_id,
        evidence=repair.evidence,
    )
    return Decision((attempted,))
