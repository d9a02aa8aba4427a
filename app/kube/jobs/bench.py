"""What every piece of work on the cluster is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from app.clock import Clock, Ids
from app.domain.books import Books
from app.domain.cluster.node import Node
from app.domain.decide import Command
from app.domain.envelope import Cause, Event, Recorded
from app.domain.instance.state import Instance
from app.kube.port import Cluster
from app.ledger.ledger import Ledger

ACTOR = "kube/cluster"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The tools of the trade."""

    ledger: Ledger
    cluster: Cluster
    clock: Clock
    ids: Ids

    @property
    def books(self) -> Books:
        """The current books."""
        return self.ledger.books

    def cause(self) -> Cause:
        """A fresh cause for one run."""
        return Cause(actor=ACTOR, correlation_id=self.ids.token())

    def record(self, command: Command, cause: Cause) -> Sequence[Recorded[Event]]:
        """Have the ledger decide and record."""
        return self.ledger.execute(command, cause)

    def owner(self, node: Node) -> Instance | None:
        """The instance that a node's provider id alone stands for, also one that ended long ago."""
        key = self.books.node_key(node.provider_id, "")
        if key is None:
            return None
        return self.books.find_by_key(key) or self.ledger.find_ended(key)


class Work(Protocol):
    """One kind of work. Doing it twice in a row does nothing the second time."""

    name: ClassVar[str]

    def run(self, nodes: Sequence[Node], cause: Cause) -> None:
        """One pass over a whole picture of the nodes. Raises ClusterError if the cluster refuses."""
        ...
