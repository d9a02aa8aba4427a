"""Finish nodes of ours once they have registered: labels that a kubelet may not set, start-up taints that are over."""

from collections.abc import Sequence
from dataclasses import dataclass
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
from app.errors import ClusterConflict
from app.kube.jobs.bench import Bench
from app.kube.port import NodeChanges
from app.log import get_logger

_MOST_IN_A_PASS: Final = 50

_log = get_logger(job="cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class PrepareNodes:
    """Does each thing once to each node. `labels`: also labels, and not only taints."""

    name: ClassVar[str] = "prepare nodes"
    bench: Bench
    labels: bool

    def run(self, nodes: Sequence[Node], cause: Cause) -> None:
        """Close what a crash left open, then do what is due."""
        changed = 0
        for instance, node in sole_claims(nodes, self.bench.books):
            if changed == _MOST_IN_A_PASS:
                return
            due = preparation_of(node, instance, self.bench.books, labels=self.labels)
            if due is not None:
                changed += 1
                self._prepare(due, cause)
            elif instance.node_preparing and instance.prepared_uid == node.uid:
                self.bench.record(RecordNodePrepared(instance=instance.name, node=node.name), cause)

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
        try:
            self.bench.cluster.change_node(fresh, NodeChanges(labels=due.labels, without_taints=due.lifted))
        except ClusterConflict:
            return  # nodes that start change all the time: the next pass tries again
        self.bench.record(RecordNodePrepared(instance=instance.name, node=fresh.name), cause)
        _log.info("node prepared", node=fresh.name, changes=list(due.changes))
        return
