"""Autoscaler, provider, cloud and cluster under one clock that moves when the test says so."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from app.clock import FakeClock
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.spec import NodeGroupSpec
from app.simulator.config import parse_config
from app.simulator.inprocess import InProcessCloud
from app.simulator.truth import orphans
from app.simulator.world import World
from tests.autoscaler.ca.flags import Flags
from tests.autoscaler.ca.loop import Autoscaler
from tests.autoscaler.ca.messages import Messages
from tests.autoscaler.ca.objects import Node
from tests.autoscaler.ca.releases import Release
from tests.protocol.clients import Client

from .audit import Audit
from .cluster import Cluster
from .kubelets import Kubelets
from .kubernetes import Kubernetes
from .process import NumberedIds, Process
from .sights import Sight, believed, booked, existing
from .wires import Line, Port

TICK_S: Final = 5
_OBSERVE_EVERY_TICKS: Final = 2
_HOUSEKEEPING_EVERY_TICKS: Final = 120  # ten minutes
_LONG_ENOUGH_S: Final = 900

CLOUD: Final[Mapping[str, Any]] = {
    "seed": 7,
    "clock": {"mode": "real"},
    "chances": {"validating": 0},
    "durations": {
        "preset": "fast",
        "ordering": 5,
        "provisioning": 85,
        "guest": 30,
        "deleting": 10,
        "no_capacity": 15,
        "detaching": 5,
    },
}
"""Running 90 s after the order, a node 120 s after it, gone 10 s after the deletion."""


class Stage:
    """One autoscaler of one release against one provider.

    A tick is five seconds: machines, kubelets, jobs (listing the cloud every second tick), the scheduler, then the
    autoscaler, whose loops come every ten seconds. After each tick the audit looks for broken promises.
    """

    def __init__(
        self,
        directory: Path,
        clients: Mapping[str, Client],
        release: Release,
        specs: Sequence[NodeGroupSpec],
        *,
        flags: Flags | None = None,
        cloud: Mapping[str, Any] | None = None,
        port: Port | None = None,
        kubernetes: bool = False,
        before: Callable[[InProcessCloud], object] = lambda _: None,
    ) -> None:
        self.clock = FakeClock()
        self.began_at = self.clock.now()
        self.world = World(parse_config({**CLOUD, **(cloud or {})}), self.clock)
        self.cloud = InProcessCloud(self.world)
        self.specs = list(specs)
        self.cluster = Cluster(self.clock)
        self.kubernetes = Kubernetes(self.cluster) if kubernetes else None
        self.process = Process(directory, self.cloud, self.clock, NumberedIds(), self.kubernetes)
        self.line = Line(lambda: self.process.channel if port is not None else self.process.handlers)
        self.kubelets = Kubelets(self.world, self.cluster, self.clock, self._template)
        self.kubelets.buries = not kubernetes
        self.release = release
        self.flags = flags or Flags()
        self.audit = Audit(self)
        self.former: list[Autoscaler] = []
        self.forgives: frozenset[str] = frozenset()
        self._clients = clients
        self._port = port
        self._ticks = 0
        self.process.start(self.specs, port)
        before(self.cloud)
        self.autoscaler = self._new_autoscaler()
        self._run_autoscaler()

    @property
    def at(self) -> int:
        """Seconds since the curtain rose."""
        return round((self.clock.now() - self.began_at).total_seconds())

    def pass_time(self, seconds: int) -> None:
        """Let so many seconds pass, a multiple of five."""
        for _ in range(seconds // TICK_S):
            self.tick()

    def until(self, at: int) -> None:
        """Let time pass until so many seconds after the beginning."""
        self.pass_time(at - self.at)

    def wait_for(self, condition: Callable[[], object], at_most: int = 1800) -> int:
        """Let time pass until something is so; when that was."""
        limit = self.at + at_most
        while not condition():
            assert self.at < limit, f"not within {at_most} s"
            self.tick()
        return self.at

    def tick(self) -> None:
        """Five seconds."""
        self._move_the_world()
        self.cluster.schedule()
        self._run_autoscaler()
        self.audit.look()

    def _move_the_world(self) -> None:
        self._ticks += 1
        self.clock.advance(TICK_S)
        self.world.catch_up()
        if self.process.is_alive:
            self.kubelets.sync()
            if self._ticks % _OBSERVE_EVERY_TICKS == 0:
                self.process.run("observe", "catalog")
                if self.kubernetes is not None:
                    self.process.run("cluster")
            self.process.run("provision", "terminate", "deadlines")
            if self._ticks % _HOUSEKEEPING_EVERY_TICKS == 0:
                self.process.run("housekeeping", "sweep")

    def _run_autoscaler(self) -> None:
        now = self.clock.now()
        self.autoscaler.background(now)
        self.process.run_wanted()
        while self.autoscaler.wants_next_at(now) <= now:
            self.autoscaler.run_once(now)
            self.process.run_wanted()

    def sight(self, group: str) -> Sight:
        """The group from all three sides."""
        return Sight(
            ca=believed(self.autoscaler, group, self.clock.now()),
            books=booked(self.process.books, group),
            truth=existing(self.world, group),
        )

    def restart_autoscaler(self) -> None:
        """The process ends (without a word, as after kill -9) and another one begins."""
        self.former.append(self.autoscaler)
        self.autoscaler = self._new_autoscaler()
        self._run_autoscaler()

    def restart_provider(self, *, killed: bool = False) -> None:
        """The provider ends, in order or not, and starts again on the same database."""
        if killed:
            self.process.kill()
        else:
            self.process.stop()
        self.process.start(self.specs, self._port)

    def reconfigure(self, *specs: NodeGroupSpec) -> None:
        """The operator changes the configuration while it runs."""
        self.specs = list(specs)
        self.process.configure(self.specs)
        self.process.run_wanted()

    def calls(self, method: str, group: str | None = None) -> list[str]:
        """Status codes of the calls of a method that this autoscaler and those before it made, in order."""
        return [
            rpc.code
            for autoscaler in (*self.former, self.autoscaler)
            for rpc in autoscaler.provider.rpcs
            if rpc.method == method and group in {None, rpc.group}
        ]

    def story(self) -> list[str]:
        """What the autoscalers told, each after the second in which it happened."""
        entries = [entry for one in (*self.former, self.autoscaler) for entry in one.journal.entries]
        return [f"{round((at - self.began_at).total_seconds())} {words}" for at, words in entries]

    def failed_loops(self) -> list[str]:
        """What failed loops, of all autoscalers there were."""
        return [loop.error for one in (*self.former, self.autoscaler) for loop in one.loops if loop.error is not None]

    def node_names(self, group: str) -> list[str]:
        """Names of the group's listed instances, which are those of their nodes, oldest first."""
        return [instance.name for instance in self.process.books.members(group).listed]

    def settle(self) -> None:
        """Without the autoscaler: let everything end that is on its way out, and be resolved that is open."""
        for _ in range(_LONG_ENOUGH_S // TICK_S):
            open_ends = [
                one
                for one in self.process.books.listed_instances()
                if one.state is InstanceState.DELETING or one.create_is_open
            ]
            if not open_ends and not self.process.books.cloud.surplus:
                break
            self._move_the_world()
        self._move_the_world()
        self._move_the_world()

    def unwanted(self) -> list[str]:
        """Machines and volumes that exist, cost money, and belong to nobody: neither to the books nor to strangers."""
        wanted = {one.name for one in self.process.books.listed_instances()}
        strangers = {item.id for item in self.world.state.instances.values() if item.foreign}
        found: Any = orphans(self.world, wanted | strangers)
        machines = [f"machine {item['hostname']} {item['status']}" for item in found["instances"]]
        left = machines + [f"volume {item['name']}" for item in found["volumes"]]
        return [words for words in left if words.split()[0] not in self.forgives]

    def _new_autoscaler(self) -> Autoscaler:
        messages = Messages(self._clients[self.release.generation])
        autoscaler = Autoscaler(messages, self.line, self.cluster, self.release, self.flags)
        autoscaler.background(self.clock.now())
        return autoscaler

    def _template(self, group: str) -> Node:
        """What a start-up script would make a machine of this group register as."""
        messages = Messages(self._clients["E"])
        handlers = self.process.handlers
        assert handlers is not None
        data = handlers.call("NodeGroupTemplateNodeInfo", messages.request("NodeGroupTemplateNodeInfo", id=group))
        return messages.template(messages.response("NodeGroupTemplateNodeInfo", data))


def minutes(count: float) -> timedelta:
    """A duration."""
    return timedelta(minutes=count)
