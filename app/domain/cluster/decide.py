"""Decisions about the cluster's nodes: the bracket of intent and outcome around every removal."""

from app.domain.books import Books
from app.domain.cluster.commands import AbandonNodeRemoval, AttemptNodeRemoval, RecordNodeRemoved
from app.domain.cluster.events import NodeRemovalAbandoned, NodeRemovalAttempted, NodeRemoved
from app.domain.cluster.ghosts import is_proven_gone
from app.domain.envelope import Decision
from app.errors import RuleViolation


def attempt_node_removal(command: AttemptNodeRemoval, books: Books) -> Decision:
    """Write down the intent, once. An instance that is not in memory ended long ago.

    Raises:
        RuleViolation: the instance has come back since it was called gone.
    """
    ghost = command.ghost
    if ghost.node.uid in books.cluster.removals:
        return Decision()
    known = books.instances.get(ghost.instance.name)
    if known is not None and not is_proven_gone(known):
        raise RuleViolation(f"{known.name} is {known.state}: its node stays", instance=known.name)
    attempted = NodeRemovalAttempted(
        node=ghost.node.name,
        uid=ghost.node.uid,
        instance=ghost.instance.name,
        node_group=ghost.instance.node_group,
        end=ghost.end,
        silent_since=ghost.silent_since,
    )
    return Decision((attempted,))


def record_node_removed(command: RecordNodeRemoved, books: Books) -> Decision:
    """The outcome, once."""
    removal = books.cluster.removals.get(command.uid)
    if removal is None:
        return Decision()
    removed = NodeRemoved(
        node=removal.node,
        uid=removal.uid,
        instance=removal.instance,
        node_group=removal.node_group,
        end=removal.end,
    )
    return Decision((removed,))


def abandon_node_removal(command: AbandonNodeRemoval, books: Books) -> Decision:
    """The other outcome, once."""
    removal = books.cluster.removals.get(command.uid)
    if removal is None:
        return Decision()
    abandoned = NodeRemovalAbandoned(
        node=removal.node,
        uid=removal.uid,
        instance=removal.instance,
        node_group=removal.node_group,
        reason=command.reason,
    )
    return Decision((abandoned,))
