"""Finish nodes of ours once they have registered: labels that a kubelet may not set, start-up taints that are over."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from app.domain.cluster.joins import sole_claims
from app.domain.cluster.node import Node
from app.domain.cluster.preparing import (
    AttemptNodePreparation,
    Preparation,
    RecordNodePrepared,
    preparation_of,
)
from app.domain.envelope import Cause
from app.kube.jobs.bench import Bench
from app.kube.jobs.turns import Turns
from app.kube.port import NodeChanges
from app.log import get_logger

_MOST_IN_A_PASS: Final = 50

_log = get_logger(job="cluster")


@dataclass(slots=True, kw_only=True)
class PrepareNodes:
    """Does each thing once to each node. `labels`: also labels, and not only taints."""

    name: ClassVar[str] = "prepare nodes"
    bench: Bench
    labels: bool
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        """Nobody was refused yet."""
        self._turns = Turns(clock=self.bench.clock)

    def run(self, nodes: Sequence[Node], cause: Cause) -> None:
        """Close what a crash left open, then do what is due."""
        due: dict[str, Preparation] = {}
        for instance, node in sole_claims(nodes, self.bench.books):
            found = preparation_of(node, instance, self.bench.books, labels=self.labels)
            if found is not None:
                due[node.uid] = found
            elif instance.node_preparing and instance.prepared_uid == node.uid:
                self.bench.record(RecordNodePrepared(instance=instance.name, node=node.name), cause)
        self._turns.serve(due, _MOST_IN_A_PASS, lambda preparation: self._prepare(preparation, cause))

    def _prepare(self, seen: Preparation, cause: Cause) -> None:
        """Look again past every cache, write down the intent, do it, write down the outcome."""
        fresh = self.bench.cluster.node(seen.node.name)
        instance = self.bench.books.instances.get(seen.instance)
        if fresh is None or instance is None:
            return
        due = preparation_of(fresh, instance, self.bench.books, labels=self.labels)
        if due is None or fresh.provider_id != seen.node.provider_id:
            return
        self.bench.record(AttemptNodePreparation(preparation=due), cause)
        self.bench.cluster.change_node(fresh, NodeChanges(labels=due.labels, without_taints=due.lifted))
        self.bench.record(RecordNodePrepared(instance=instance.name, node=fresh.name), cause)
        _log.info("node prepared", node=fresh.name, changes=list(due.changes))
