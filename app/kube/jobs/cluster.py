"""The one job of the cluster side: one picture of the nodes, then each piece of work on it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from app.errors import ClusterError
from app.kube.jobs.bench import Bench, Work
from app.kube.troubles import Troubles


@dataclass(frozen=True, slots=True, kw_only=True)
class TendCluster:
    """Without a whole and fresh picture nothing is done. What one piece of work may not do does not stop the others."""

    name: ClassVar[str] = "cluster"
    bench: Bench
    works: Sequence[Work]
    troubles: Troubles

    def run(self) -> None:
        """One pass."""
        cause = self.bench.cause()
        try:
            nodes = self.bench.cluster.nodes()
        except ClusterError as error:
            self.troubles.note("list nodes", error)
            return
        self.troubles.clear("list nodes")
        for work in self.works:
            try:
                work.run(nodes, cause)
            except ClusterError as error:
                self.troubles.note(work.name, error)
            else:
                self.troubles.clear(work.name)
