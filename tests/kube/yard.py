"""A provider beside a cluster in memory: nodes are put there by hand, one job tends them."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from app.domain.cluster.node import Node
from app.domain.envelope import Event
from app.kube.fake import FakeCluster
from app.kube.jobs.announce import Announce
from app.kube.jobs.bench import Bench, Work
from app.kube.jobs.clean_up import CleanUp
from app.kube.jobs.cluster import TendCluster
from app.kube.jobs.join import Join, LearnTemplates, RepairProviderIds
from app.kube.jobs.prepare import PrepareNodes
from app.kube.jobs.tokens import RevokeJoinTokens, WatchJoinTokens
from app.kube.port import Cluster, Subject
from app.kube.tokens import Mint
from app.kube.troubles import Troubles
from tests.reconcile.house import House

GROUP = "system:bootstrappers:kubeadm:default-node-token"
FIVE_MINUTES = timedelta(minutes=5)
US = Subject(kind="StatefulSet", name="verda-cloud-provider", namespace="kube-system", api_version="apps/v1")


class Yard:
    """`house` is the provider, `cluster` what it sees of Kubernetes, unless it sees `other`."""

    def __init__(self, house: House) -> None:
        self.house = house
        self.cluster = FakeCluster(house.clock)
        self.other: Cluster | None = None
        self.troubles = Troubles()
        self.most = 10
        self.dry_run = False
        self.repairs = True
        self.labels = False
        self.standing: dict[str, tuple[str, ...]] = {}
        self.begin()

    def begin(self) -> None:
        """A new process: what the job remembers is fresh."""
        seen: Cluster = self.other or self.cluster
        self.bench = Bench(ledger=self.house.ledger, cluster=seen, clock=self.house.clock, ids=self.house.ids)
        self.mint = Mint(
            ledger=self.house.ledger, cluster=seen, clock=self.house.clock, ids=self.house.ids, groups=(GROUP,)
        )
        self.announce = Announce(bench=self.bench, us=US)
        self.house.ledger.subscribe(self.announce.on_recorded)
        self.job = TendCluster(bench=self.bench, works=self._works(), troubles=self.troubles)

    def _works(self) -> Sequence[Work]:
        return (
            Join(bench=self.bench, repairs=self.repairs),
            *((RepairProviderIds(bench=self.bench),) if self.repairs else ()),
            LearnTemplates(bench=self.bench),
            PrepareNodes(bench=self.bench, labels=self.labels),
            CleanUp(bench=self.bench, grace=FIVE_MINUTES, most=self.most, dry_run=self.dry_run),
            self.announce,
            RevokeJoinTokens(bench=self.bench, under_way=lambda: self.mint.under_way),
            WatchJoinTokens(bench=self.bench, standing=lambda: self.standing),
        )

    def restart(self) -> None:
        """A kill, and a start on the same database."""
        self.house.restart()
        self.begin()

    def tend(self, times: int = 1) -> None:
        """The job, so many times, ten seconds apart."""
        for _ in range(times):
            self.job.run()
            self.house.clock.advance(10)

    def join(self, name: str, **more: Any) -> Node:
        """A machine's kubelet registers and is ready."""
        values: dict[str, Any] = {
            "name": name,
            "uid": f"uid-of-{name}",
            "resource_version": "0",
            "created_at": self.house.now,
            "provider_id": f"verda://{name}",
            "ready": True,
            "changed_at": self.house.now,
        }
        return self.cluster.put(Node(**(values | more)))

    def fall_silent(self, name: str, ago: timedelta = timedelta()) -> Node:
        """The node controller has called the node not ready, so long ago."""
        node = self.cluster.node(name)
        assert node is not None
        values = {field: getattr(node, field) for field in Node.__slots__}
        return self.cluster.put(Node(**(values | {"ready": False, "changed_at": self.house.now - ago})))

    def names(self) -> list[str]:
        """Of the nodes there are."""
        trouble, self.cluster.trouble = self.cluster.trouble, None
        found = sorted(node.name for node in self.cluster.nodes())
        self.cluster.trouble = trouble
        return found

    def evict(self, *names: str) -> None:
        """The cloud takes machines away, and the log believes it."""
        for name in names:
            self.house.world.vanish(name)
        self.house.look(7)
        assert {self.house.state(name) for name in names} == {"lost"}

    def events(self, prefix: str = "cluster.") -> list[Event]:
        """What the log has of the cluster."""
        return [item.event for item in self.house.log if item.event.type.startswith(prefix)]

    def told(self, prefix: str = "cluster.") -> list[str]:
        """Their types."""
        return [event.type.removeprefix(prefix) for event in self.events(prefix)]
