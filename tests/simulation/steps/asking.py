"""Steps of the autoscaler."""

from dataclasses import dataclass

from app.rpc.gen import externalgrpc_pb2 as pb
from tests.simulation import autoscaler
from tests.simulation.setting import GROUPS
from tests.simulation.stage import Stage


def _pick(stage: Stage, group: str, kinds: frozenset[int], count: int) -> list[str]:
    """Some of the group's nodes that are in one of these wire states, by chance."""
    ids = [node.id for node in autoscaler.nodes(stage, group) if node.status.instanceState in kinds]
    return stage.chance.random.sample(ids, min(count, len(ids)))


@dataclass(frozen=True, slots=True)
class Increase:
    """More nodes."""

    group: str
    delta: int
    patience_s: float = 5.0

    def __str__(self) -> str:
        hurry = "" if self.patience_s else ", though nobody waits for the answer any more"
        return f"the autoscaler wants {self.delta} more in {self.group}{hurry}"

    def act(self, stage: Stage) -> None:
        """Ask."""
        autoscaler.increase(stage, self.group, self.delta, self.patience_s)


@dataclass(frozen=True, slots=True)
class Decrease:
    """Fewer nodes than wanted have come."""

    group: str
    by: int

    def __str__(self) -> str:
        return f"the autoscaler takes back {self.by} of what it wanted in {self.group}"

    def act(self, stage: Stage) -> None:
        """Ask."""
        autoscaler.decrease(stage, self.group, self.by)


@dataclass(frozen=True, slots=True)
class Delete:
    """Nodes are not needed any more, or never came up."""

    group: str
    count: int
    coming_too: bool
    one_by_one: bool
    stranger: bool = False

    def __str__(self) -> str:
        kind = "nodes, also coming ones" if self.coming_too else "running nodes"
        manner = ", one call each" if self.one_by_one else ""
        with_stranger = ", and one that is not ours" if self.stranger else ""
        return f"the autoscaler gives back {self.count} {kind} of {self.group}{manner}{with_stranger}"

    def act(self, stage: Stage) -> None:
        """Ask."""
        running, creating = pb.InstanceStatus.instanceRunning, pb.InstanceStatus.instanceCreating
        kinds = frozenset({running, creating} if self.coming_too else {running})
        ids = _pick(stage, self.group, kinds, self.count)
        extra = "verda://bobs-machine" if self.stranger else ""
        if not self.one_by_one:
            autoscaler.delete(stage, self.group, ids, extra=extra)
            return
        for one in ids:
            autoscaler.delete(stage, self.group, [one], extra=extra)


@dataclass(frozen=True, slots=True)
class DeleteAgain:
    """A node that was given back or lost long ago is given back once more."""

    def __str__(self) -> str:
        return "the autoscaler gives back nodes that it has seen at any time before"

    def act(self, stage: Stage) -> None:
        """Ask for a few, in their own groups."""
        known = sorted(stage.witness.spelled)
        for name in stage.chance.random.sample(known, min(2, len(known))):
            instance = stage.books.instances.get(name)
            if instance is None or not instance.state.is_live:
                group = stage.witness.stories[name].node_group
                autoscaler.delete(stage, group, [stage.witness.spelled[name]])


@dataclass(frozen=True, slots=True)
class DeleteFailed:
    """The autoscaler's loop cleans up."""

    def __str__(self) -> str:
        return "the autoscaler gives back everything that failed"

    def act(self, stage: Stage) -> None:
        """Ask, group by group."""
        autoscaler.delete_failed(stage)


@dataclass(frozen=True, slots=True)
class Register:
    """A node registers, perhaps with a spelling of its own."""

    group: str
    spelling: str

    def __str__(self) -> str:
        return f"a node of {self.group} registers as {self.spelling}"

    def act(self, stage: Stage) -> None:
        """Show the node."""
        members = [item for item in stage.books.members(self.group).listed if item.instance_id]
        if members:
            item = stage.chance.random.choice(members)
            provider_id = self.spelling.format(name=item.name, id=item.instance_id)
            autoscaler.register(stage, provider_id, item.name)


@dataclass(frozen=True, slots=True)
class BadRequests:
    """Calls that make no sense or go too far."""

    def __str__(self) -> str:
        return "somebody asks for what must be refused"

    def act(self, stage: Stage) -> None:
        """Ask for nothing, for too much, for unknown groups."""
        for group in GROUPS:
            for delta in (0, -1, 1000):
                _ = autoscaler.ask(
                    stage, "NodeGroupIncreaseSize", pb.NodeGroupIncreaseSizeRequest(id=group, delta=delta)
                )
            request = pb.NodeGroupDecreaseTargetSizeRequest(id=group, delta=1)
            _ = autoscaler.ask(stage, "NodeGroupDecreaseTargetSize", request)
        unknown = pb.NodeGroupIncreaseSizeRequest(id="gp", delta=1)
        _ = autoscaler.ask(stage, "NodeGroupIncreaseSize", unknown)
