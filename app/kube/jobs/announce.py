"""Tell people who look with `kubectl get events` what the log says of nodes and of the provider itself."""

import threading
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from app.domain.cloud import CloudReachable, CloudUnreachable
from app.domain.cluster.events import JoinTokenDoubted, NodeRemoved
from app.domain.cluster.node import Node
from app.domain.envelope import Cause, Event, Recorded
from app.domain.instance.events import InstanceLost, NodeDoubted, NodePrepared, ProviderIdRepairAttempted
from app.domain.nodegroup.events import BreakerClosed, BreakerOpened, JoinFailed, JoinSucceeded
from app.kube.jobs.bench import Bench
from app.kube.jobs.turns import Turns
from app.kube.port import Announcement, Subject

_MOST_WAITING: Final = 200
_MOST_IN_A_PASS: Final = 20

_ON_NODES: Final[Mapping[type[Event], tuple[str, bool]]] = {
    NodeRemoved: ("NodeRemoved", False),
    NodeDoubted: ("NodeNeedsAttention", True),
    ProviderIdRepairAttempted: ("ProviderIdSet", False),
    NodePrepared: ("NodePrepared", False),
    InstanceLost: ("MachineLost", True),
}
_ON_US: Final[Mapping[type[Event], tuple[str, bool]]] = {
    JoinFailed: ("MachineNeverJoined", True),
    JoinSucceeded: ("MachinesJoinAgain", False),
    BreakerOpened: ("BuyingStopped", True),
    BreakerClosed: ("BuyingResumed", False),
    JoinTokenDoubted: ("JoinTokenEnds", True),
    CloudUnreachable: ("CloudUnreachable", True),
    CloudReachable: ("CloudReachable", False),
}
"""Which facts are announced, under which reason, and whether as warnings; everything else is in the log alone."""


def announcement(item: Recorded[Event], us: Subject | None) -> Announcement | None:
    """What to tell of a fact, if anything. Outside a cluster there is no object that is us."""
    event = item.event
    reason, is_warning = _ON_NODES.get(type(event)) or _ON_US.get(type(event)) or ("", False)
    subject = us if type(event) in _ON_US else _node_of(event)
    if not reason or subject is None:
        return None
    return Announcement(
        key=f"{item.position}",
        subject=subject,
        reason=reason,
        message=_words(event),
        is_warning=is_warning,
        at=item.recorded_at,
    )


def _words(event: Event) -> str:
    fields = event.model_dump(mode="json").items()
    return event.words.format_map({name: ", ".join(map(str, v)) if isinstance(v, list) else v for name, v in fields})


def _node_of(event: Event) -> Subject | None:
    name = getattr(event, "node", None) or getattr(event, "instance", None)
    return Subject(kind="Node", name=name) if isinstance(name, str) else None


@dataclass(slots=True, kw_only=True)
class Announce:
    """Facts wait here until the next pass; of too many the oldest are dropped, for the log has them all."""

    name: ClassVar[str] = "write events"
    bench: Bench
    us: Subject | None
    _waiting: deque[Announcement] = field(default_factory=lambda: deque(maxlen=_MOST_WAITING))
    _guard: threading.Lock = field(default_factory=threading.Lock)
    _turns: Turns = field(init=False)

    def __post_init__(self) -> None:
        """Nothing was refused yet."""
        self._turns = Turns(clock=self.bench.clock)

    def on_recorded(self, recorded: Sequence[Recorded[Event]]) -> None:
        """Listen to the ledger; never waits for the cluster."""
        found = (announcement(item, self.us) for item in recorded)
        with self._guard:
            self._waiting.extend(one for one in found if one is not None)

    def run(self, _nodes: Sequence[Node], _cause: Cause) -> None:
        """Write what waits. What could not be written goes on waiting, and holds up nothing else."""
        with self._guard:
            due = {one.key: one for one in self._waiting}
        self._turns.serve(due, _MOST_IN_A_PASS, self._write)

    def _write(self, one: Announcement) -> None:
        self.bench.cluster.announce(one)
        with self._guard:
            if one in self._waiting:
                self._waiting.remove(one)
