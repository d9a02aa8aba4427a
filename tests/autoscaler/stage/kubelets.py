"""Machines become nodes, and nodes lose their machines: kubelets, the node controller, whoever removes dead nodes."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any, Final, cast

from app.clock import FakeClock
from app.simulator.exchange import group_of
from app.simulator.truth import guests
from app.simulator.world import World
from tests.autoscaler.ca.objects import GPU, HOSTNAME_LABEL, Node, Resources

from .cluster import Cluster

GRACE: Final = timedelta(seconds=40)
"""Kubernetes: how long a silent node stays Ready."""
BURIAL: Final = timedelta(seconds=60)
"""How long a dead node lies about before somebody removes it."""


class Kubelets:
    """Plays everything between the simulated machines and the cluster; strangers' machines join other clusters.

    `startup_taints` are what nodes register with besides their template's, `gpu_delay` is how long the device plugin
    takes to show GPUs, `ready_delay` how long a new node is not ready, `spelled` how a kubelet writes the provider id
    it was given, `labels_left_out` which labels its arguments lack, `buries` whether anybody removes dead nodes,
    `joins` whether machines become nodes at all.
    """

    def __init__(self, world: World, cluster: Cluster, clock: FakeClock, template: Callable[[str], Node]) -> None:
        self.startup_taints: dict[str, str] = {}
        self.gpu_delay = timedelta()
        self.ready_delay = timedelta()
        self.spelled: Callable[[str], str] = lambda provider_id: provider_id
        self.labels_left_out: frozenset[str] = frozenset()
        self.buries = True
        self.joins = True
        self._world = world
        self._cluster = cluster
        self._clock = clock
        self._template = template
        self._gpus: dict[str, Resources] = {}
        self._seen_at: dict[str, Any] = {}

    def sync(self) -> None:
        """Let happen what has become due."""
        now = self._clock.now()
        up = {
            guest["hostname"]: guest
            for guest in cast("list[Any]", guests(self._world))
            if guest["ready"] and not self._world.state.instances[guest["instance_id"]].foreign
        }
        known = {node.name for node in self._cluster.nodes()}
        for hostname, guest in up.items():
            if hostname not in known and self.joins:
                self._register(hostname, guest)
        for node in self._cluster.nodes():
            if node.name in up:
                self._seen_at[node.name] = now
                self._grow_up(node)
            elif node.name in self._seen_at:
                self._fall_silent(node)

    def _register(self, hostname: str, guest: Any) -> None:
        template = self._template(group_of(guest["description"]))
        now = self._clock.now()
        labels = {key: value for key, value in template.labels.items() if key not in self.labels_left_out}
        is_at_once = not self.ready_delay
        node = replace(
            template,
            name=hostname,
            provider_id=self.spelled(guest["provider_id"]),
            labels={**labels, HOSTNAME_LABEL: hostname},
            taints=template.taints | self.startup_taints,
            allocatable=dict(template.allocatable),
            created_at=now,
            ready=is_at_once,
            ready_since=now,
        )
        if self.gpu_delay and GPU in node.allocatable:
            self._gpus[hostname] = {GPU: node.allocatable.pop(GPU)}
        self._cluster.add(node)

    def _grow_up(self, node: Node) -> None:
        now, born = self._clock.now(), node.created_at
        assert born is not None
        if node.name in self._gpus and born + self.gpu_delay <= now:
            node.allocatable.update(self._gpus.pop(node.name))
        if not node.ready and born + self.ready_delay <= now:
            node.ready, node.ready_since = True, now

    def _fall_silent(self, node: Node) -> None:
        now = self._clock.now()
        silent_for = now - self._seen_at[node.name]
        if node.ready and silent_for >= GRACE:
            node.ready, node.ready_since = False, now
        if self.buries and silent_for >= GRACE + BURIAL:
            self._cluster.remove(node.name)
            del self._seen_at[node.name]
