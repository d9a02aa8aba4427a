"""Ghosts: Node objects whose machine is gone. The autoscaler never removes them, and enough of them stop it."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.domain.cluster.node import Node
from app.domain.instance.events import End
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance

_PROVEN = frozenset({InstanceState.GONE, InstanceState.LOST})
"""Both take a direct look-up at the cloud. What was cancelled never had a machine, so it cannot have a node."""

Find = Callable[[Node], Instance | None]
"""The instance that a node's provider id stands for, also one that ended long ago."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ghost:
    """A node that both witnesses agree on: by the cloud its machine is no more, by the cluster nobody is at home."""

    node: Node
    instance: Instance
    end: End
    silent_since: datetime


def is_proven_gone(instance: Instance) -> bool:
    """The cloud itself has said that the machine is no more."""
    return instance.state in _PROVEN


def ghosts(nodes: Iterable[Node], find: Find, now: datetime, grace: timedelta) -> Sequence[Ghost]:
    """The nodes to remove, those of lost machines first, then the longest silent.

    A node without provider id, or with one that is not ours by the log, is nobody's business. If two nodes claim one
    machine, a live one among them spares both, because nobody can tell which of them the machine was.
    """
    claims: defaultdict[str, list[tuple[Node, Instance]]] = defaultdict(list)
    for node in nodes:
        instance = find(node) if node.provider_id else None
        if instance is not None and is_proven_gone(instance):
            claims[instance.name].append((node, instance))
    found = (_ghosts_of(claim, now, grace) for claim in claims.values())
    return sorted(
        (ghost for some in found for ghost in some),
        key=lambda ghost: (ghost.instance.state is not InstanceState.LOST, ghost.silent_since, ghost.node.name),
    )


def _ghosts_of(claim: Sequence[tuple[Node, Instance]], now: datetime, grace: timedelta) -> Sequence[Ghost]:
    found = [ghost for node, instance in claim if (ghost := ghost_of(node, instance, now, grace)) is not None]
    return found if len(found) == len(claim) else ()


def ghost_of(node: Node, instance: Instance | None, now: datetime, grace: timedelta) -> Ghost | None:
    """The ghost of an instance's machine that this node is, if it has been silent for `grace`; if lost, at all."""
    silent_since = node.silent_since
    if instance is None or not is_proven_gone(instance) or instance.end_reason is None or silent_since is None:
        return None
    # Nobody drained a lost machine: its pods wait until the Node object is gone. Kubernetes itself was patient for 40 s
    # before it called the node not ready, and the cloud has been asked several times by then.
    patience = timedelta() if instance.state is InstanceState.LOST else grace
    if now - silent_since < patience:
        return None
    return Ghost(node=node, instance=instance, end=instance.end_reason, silent_since=silent_since)
