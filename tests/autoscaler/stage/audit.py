"""Promises that hold at every moment, whatever happens: looked at after each tick, over the wire."""

from collections import Counter
from typing import TYPE_CHECKING, Any

from app.domain.instance.lifecycle import InstanceState
from app.rpc.gen import externalgrpc_pb2 as pb
from tests.autoscaler.ca.client import CREATING, DELETING, RUNNING

if TYPE_CHECKING:
    from .stage import Stage


class Audit:
    """Looks at the provider's answers with its own messages, at its books, and at the cloud."""

    def __init__(self, stage: "Stage") -> None:
        self._stage = stage
        self._ids: dict[str, str] = {}
        self._looked_at = 0

    def look(self) -> None:
        """Raises: AssertionError, naming the group and the broken promise."""
        if self._stage.process.handlers is None or self._stage.process.books.position == self._looked_at:
            return  # answers come from the books, and nothing was written
        self._looked_at = self._stage.process.books.position
        for group in self._ask("NodeGroups", pb.NodeGroupsRequest(), pb.NodeGroupsResponse).nodeGroups:
            self._look_at(group.id)
        self._look_at_hostnames()
        self._look_at_ids()
        broken = [job for job, outcome in self._stage.process.outcomes if outcome == "error"]
        assert not broken, f"jobs broke off: {broken}"

    def _look_at(self, group: str) -> None:
        target = self._ask(
            "NodeGroupTargetSize", pb.NodeGroupTargetSizeRequest(id=group), pb.NodeGroupTargetSizeResponse
        ).targetSize
        listed = self._ask("NodeGroupNodes", pb.NodeGroupNodesRequest(id=group), pb.NodeGroupNodesResponse).instances
        states = Counter(one.status.instanceState for one in listed)
        assert not states.keys() - {RUNNING, CREATING, DELETING}, f"{group}: an instance without a state"
        live = states[RUNNING] + states[CREATING]
        assert target == live, f"{group}: target {target}, but {live} instances that are not being deleted"
        ids = [one.id for one in listed]
        assert len(set(ids)) == len(ids), f"{group}: an id is listed twice"
        members = {one.provider_id: one.state for one in self._stage.process.books.members(group).listed}
        for one in listed:
            is_failed = members[one.id] is InstanceState.FAILED
            assert bool(one.status.errorInfo.errorCode) == is_failed, f"{group}: error of {one.id} and its state"
            assert not is_failed or one.status.instanceState == CREATING, f"{group}: {one.id} failed and not creating"

    def _look_at_hostnames(self) -> None:
        alive = Counter(
            item.hostname
            for item in self._stage.world.state.instances.values()
            if item.ended_ms is None and not item.foreign
        )
        twice = [hostname for hostname, count in alive.items() if count > 1]
        assert not twice, f"two machines for one slot: {twice}"

    def _look_at_ids(self) -> None:
        for one in self._stage.process.books.listed_instances():
            known = self._ids.setdefault(one.name, one.provider_id)
            assert known == one.provider_id or one.provider_id_learned, f"{one.name} changed its id"

    def _ask(self, method: str, request: Any, response: Any) -> Any:
        handlers = self._stage.process.handlers
        assert handlers is not None
        return response.FromString(handlers.call(method, request.SerializeToString()))
