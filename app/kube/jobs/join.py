"""Watch machines become nodes; give a node that is ours and has no provider id its own, once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from app.domain.cluster.joins import AttemptProviderIdRepair, ObserveNodes, Repair, repair_of, repairs
from app.domain.cluster.learning import MeasureNodes
from app.domain.cluster.node import Node
from app.domain.envelope import Cause
from app.domain.instance.events import NodeDoubted, NodeMeasured
from app.kube.jobs.bench import Bench
from app.kube.jobs.turns import Turns
from app.kube.port import NodeChanges
from app.log import INSTANCE, get_logger

_MOST_IN_A_PASS: Final = 50

_log = get_logger(job="cluster")


@dataclass(frozen=True, slots=True, kw_only=True)
class Join:
    """Writes down what the picture says of our machines. Changes nothing in the cluster."""

    name: ClassVar[str] = "follow machines that join"
    bench: Bench
    repairs: bool

    def run(self, nodes: Sequence[Node], cause: Cause) -> None:
        """Record, and tell what needs a person."""
        recorded = self.bench.record(ObserveNodes(nodes=tuple(nodes), repairs=self.repairs), cause)
        for item in recorded:
            if isinstance(item.event, NodeDoubted):
                _log.warning("node needs attention", **{INSTANCE: item.event.instance}, problem=item.event.message)


@dataclass(frozen=True, slots=True, kw_only=True)
class LearnTemplates:
    """Compares each node once with what its template promised."""

    name: ClassVar[str] = "measure nodes"
    bench: Bench

    def run(self, nodes: Sequence[Node], cause: Cause) -> None:
        """Record, and tell where a node has less than it should."""
        for item in self.bench.record(MeasureNodes(nodes=tuple(nodes)), cause):
            if isinstance(item.event, NodeMeasured) and item.event.differences:
                differences = ", ".join(item.event.differences)
                _log.info("node has less than its template", **{INSTANCE: item.event.instance}, differences=differences)


@dataclass(slots=True, kw_only=True)
class RepairProviderIds:
    """The API server lets a provider id be set once and never changed, so each is looked at twice before."""

    name: ClassVar[str] = "set provider ids"
    bench: Bench
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        """Nobody was refused yet."""
        self._turns = Turns(clock=self.bench.clock)

    def run(self, nodes: Sequence[Node], cause: Cause) -> None:
        """Set those that are due. The next picture shows the outcome."""
        due = {repair.node.uid: repair for repair in repairs(nodes, self.bench.books)}
        self._turns.serve(due, _MOST_IN_A_PASS, lambda repair: self._repair(repair, cause))

    def _repair(self, found: Repair, cause: Cause) -> None:
        """Look again past every cache, write down the intent, set it."""
        fresh = self.bench.cluster.node(found.node.name)
        instance = self.bench.books.instances.get(found.instance)
        repair = repair_of(fresh, instance) if fresh is not None and instance is not None else None
        if fresh is None or repair is None or fresh.uid != found.node.uid:
            return
        self.bench.record(AttemptProviderIdRepair(repair=repair), cause)
        self.bench.cluster.change_node(fresh, NodeChanges(provider_id=repair.provider_id))
        _log.info("provider id set", node=fresh.name, provider_id=repair.provider_id, evidence=repair.evidence)
