"""Remove the Node objects of machines that are gone, so that their pods move on and the autoscaler stays healthy."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import ClassVar, Final

from app.domain.cluster.commands import AbandonNodeRemoval, AttemptNodeRemoval, RecordNodeRemoved
from app.domain.cluster.ghosts import Ghost, ghost_of, ghosts
from app.domain.cluster.node import Node
from app.domain.cluster.state import Removal
from app.domain.envelope import Cause
from app.domain.instance.state import Instance
from app.errors import ClusterConflict, ClusterRefused, RuleViolation
from app.kube.jobs.bench import Bench
from app.kube.jobs.turns import Turns
from app.log import INSTANCE, get_logger

_LONG: Final = timedelta(minutes=5)
"""A guess: controllers let go of a node within seconds, and while it is there its pods wait."""

_log = get_logger(job="cluster")


@dataclass(slots=True, kw_only=True)
class CleanUp:
    """Two witnesses for every removal: the log, in which the cloud proved the end, and the cluster, asked once more.

    A node that is being deleted already, by us or by others, needs no second wish. If it was our wish, its intent stays
    open until the node is gone, for as long as somebody's finalizer holds it.

    `grace` is how long a node must have been silent, `most` how many are removed in one pass; with `dry_run` it only
    says once what it would do.
    """

    name: ClassVar[str] = "remove nodes"
    bench: Bench
    grace: timedelta
    most: int
    dry_run: bool = False
    _told: set[str] = field(default_factory=set)
    _abandoned: dict[str, str] = field(default_factory=dict)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        """Nobody was refused yet."""
        self._turns = Turns(clock=self.bench.clock)

    def run(self, nodes: Sequence[Node], cause: Cause) -> None:
        """Resolve what was begun, then remove what is due."""
        found = ghosts(nodes, self._find, self.bench.clock.now(), self.grace)
        silent = {ghost.node.uid for ghost in found}
        self._told &= silent
        self._abandoned = {uid: version for uid, version in self._abandoned.items() if uid in silent}
        held = {node.uid: node for node in nodes if node.deleting_since is not None}
        removals = self.bench.books.cluster.removals
        begun = {uid: removal for uid, removal in removals.items() if uid not in held}
        fresh = {uid: ghost for ghost in found if (uid := ghost.node.uid) not in removals and self._may(ghost.node)}
        if self.dry_run:
            for ghost in tuple(fresh.values())[: self.most]:
                self._tell(ghost)
            fresh = {}
        due: Mapping[str, Removal | Ghost] = {**begun, **fresh}
        self._turns.serve(due, self.most, lambda one: self._serve(one, cause))
        self._complain([node for uid, node in held.items() if uid in silent or uid in removals])

    def _may(self, node: Node) -> bool:
        """Whether a removal may begin: nobody's has, and none came to nothing on exactly this state of the node."""
        return node.deleting_since is None and self._abandoned.get(node.uid) != node.resource_version

    def _complain(self, held: Sequence[Node]) -> None:
        """Raises ClusterRefused if a node of ours has been unable to go for long."""
        now = self.bench.clock.now()
        for node in held:
            since = node.deleting_since
            if since is not None and now - since >= _LONG:
                raise ClusterRefused(
                    f"node {node.name} is being deleted since {since:%Y-%m-%d %H:%M} UTC, held by its finalizers "
                    f"({', '.join(node.finalizers)}): start the controller that set them, or take them off by hand"
                )

    def _serve(self, one: Removal | Ghost, cause: Cause) -> None:
        if isinstance(one, Removal):
            self._resolve(one, cause)
        else:
            self._remove(one, cause)

    def _find(self, node: Node) -> Instance | None:
        """Nobody's while a second machine under the same name is on its way out: the node may be that one's."""
        instance = self.bench.owner(node)
        twins = {surplus.instance for surplus in self.bench.books.cloud.surplus.values()}
        return None if instance is None or instance.name in twins else instance

    def _tell(self, ghost: Ghost) -> None:
        if ghost.node.uid not in self._told:
            self._told.add(ghost.node.uid)
            _log.info("dry run: would remove node", **_of(ghost))

    def _remove(self, ghost: Ghost, cause: Cause) -> None:
        """Look again past every cache, write down the intent, remove exactly what was seen, write down the outcome."""
        fresh = self.bench.cluster.node(ghost.node.name)
        if fresh is None or fresh.uid != ghost.node.uid or fresh.provider_id != ghost.node.provider_id:
            return
        judged = ghost_of(fresh, self._find(fresh), self.bench.clock.now(), self.grace)
        if judged is None or not self._may(fresh):
            return
        try:
            self.bench.record(AttemptNodeRemoval(ghost=judged), cause)
        except RuleViolation:
            return
        self._delete(fresh, cause)

    def _delete(self, node: Node, cause: Cause) -> None:
        try:
            is_gone = self.bench.cluster.delete_node(node)
        except ClusterConflict as conflict:
            self._abandoned[node.uid] = node.resource_version
            self.bench.record(AbandonNodeRemoval(uid=node.uid, reason=conflict.message), cause)
            return
        if is_gone:
            self._record_gone(node.uid, node.name, cause)
        else:
            _log.info("node is being deleted", node=node.name, finalizers=list(node.finalizers))

    def _record_gone(self, uid: str, name: str, cause: Cause) -> None:
        if self.bench.record(RecordNodeRemoved(uid=uid), cause):
            _log.info("node removed", node=name)

    def _resolve(self, removal: Removal, cause: Cause) -> None:
        """An intent without outcome: a crash, an outage or a finalizer came between. Look, never guess."""
        node = self.bench.cluster.node(removal.node)
        if node is None or node.uid != removal.uid:
            self._record_gone(removal.uid, removal.node, cause)
        elif node.deleting_since is not None:
            return
        elif self.dry_run or ghost_of(node, self._find(node), self.bench.clock.now(), self.grace) is None:
            reason = "nothing is removed in a dry run" if self.dry_run else "it is not silent, or its machine is back"
            self.bench.record(AbandonNodeRemoval(uid=removal.uid, reason=reason), cause)
        else:
            self._delete(node, cause)


def _of(ghost: Ghost) -> dict[str, str]:
    return {
        "node": ghost.node.name,
        INSTANCE: ghost.instance.name,
        "end": str(ghost.end),
        "silent_since": str(ghost.silent_since),
    }
