"""The cluster as the autoscaler imagines it: nodes with what is left on them, and pods put there one after another."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from .objects import Node, Pod, Resources, fits, take


@dataclass(slots=True)
class Place:
    """A node and what is left on it."""

    node: Node
    free: Resources


class Simulation:
    """First fit, in the order in which nodes were added. The real one asks the scheduler's own code."""

    def __init__(self, nodes: Iterable[Node] = (), pods: Iterable[Pod] = ()) -> None:
        self.places: dict[str, Place] = {}
        for node in nodes:
            self.add(node)
        for pod in pods:
            if pod.node in self.places:
                take(self.places[pod.node].free, pod)

    def add(self, node: Node) -> None:
        """An empty node."""
        self.places[node.name] = Place(node, dict(node.allocatable))

    def remove(self, name: str) -> None:
        """Forget a node with everything on it."""
        self.places.pop(name, None)

    def put(self, pod: Pod, *, but_not_on: frozenset[str] = frozenset()) -> bool:
        """Place a pod; whether there was room."""
        for name, place in self.places.items():
            if name not in but_not_on and fits(pod, place.node, place.free):
                take(place.free, pod)
                return True
        return False

    def leftover(self, pods: Iterable[Pod], *, but_not_on: frozenset[str] = frozenset()) -> list[Pod]:
        """Place what can be placed; the rest."""
        return [pod for pod in pods if not self.put(pod, but_not_on=but_not_on)]


def nodes_needed(pods: Sequence[Pod], template: Node, at_most: int) -> tuple[int, list[Pod]]:
    """How many such nodes hold how many of these pods, first fit. Pods that no empty node can take are left out."""
    simulation = Simulation()
    helped: list[Pod] = []
    for pod in pods:
        if not fits(pod, template, template.allocatable):
            continue
        if not simulation.put(pod):
            if len(simulation.places) >= at_most:
                continue
            simulation.add(replace(template, name=f"{template.name}-{len(simulation.places)}"))
            simulation.put(pod)
        helped.append(pod)
    return len(simulation.places), helped
