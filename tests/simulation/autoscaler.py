"""What Cluster Autoscaler does: it believes what it is told, buys, gives back, and cleans up what failed."""

from collections.abc import Iterable, Sequence

import grpc

from app.domain.envelope import InstanceEvent
from app.domain.nodegroup.events import ScaleUpRequested
from app.rpc.gen import externalgrpc_pb2 as pb
from tests.simulation.rpc import PATIENCE_S, Refused
from tests.simulation.stage import Stage
from tests.simulation.violation import Violated

_FAKE = {"k8s.io/cluster-autoscaler/fake-node-reason": "unregistered"}


def ask(stage: Stage, method: str, request: object, patience_s: float = PATIENCE_S) -> object:
    """Call a method that changes something; None if there was no good answer. Raises: Violated."""
    before = stage.witness.position
    well, serving = _is_well(stage), stage.is_serving
    try:
        answer = stage.ask(method, request, patience_s)
    except Refused as refused:
        if refused.code is grpc.StatusCode.INTERNAL:
            raise Violated("nothing_breaks_off", f"{method}: {refused}") from refused
        changed = [item for item in stage.witness.log[before:] if isinstance(item.event, InstanceEvent)]
        if changed and well:
            raise Violated("a_refusal_changes_nothing", f"{method}: {refused}, and {changed[0].event}") from refused
        return None
    if answer is not None and not serving:
        raise Violated("nothing_is_answered_before_the_first_look", method)
    if answer is not None and patience_s <= 0:
        raise Violated("nothing_is_done_for_callers_who_left", method)
    return answer


def _is_well(stage: Stage) -> bool:
    """No commit is in doubt and none will be: what is seen after a call is what the call did."""
    return stage.disk.is_well and stage.life.ledger.trouble is None


def increase(stage: Stage, group: str, delta: int, patience_s: float = PATIENCE_S) -> None:
    """Want more nodes, and remember that they were promised."""
    before, position, well = _target(stage, group), stage.witness.position, _is_well(stage)
    request = pb.NodeGroupIncreaseSizeRequest(id=group, delta=delta)
    if ask(stage, "NodeGroupIncreaseSize", request, patience_s) is None:
        return
    facts = [item.event for item in stage.witness.log[position:]]
    wanted = [fact for fact in facts if isinstance(fact, ScaleUpRequested) and fact.node_group == group]
    names = {name for fact in wanted for name in fact.instances}
    if not names or (well and (len(names) != delta or before is None or _target(stage, group) != before + delta)):
        raise Violated("an_increase_is_seen_at_once", f"{group} +{delta} from {before}: {sorted(names)}")
    stage.witness.promised |= names


def _target(stage: Stage, group: str) -> int | None:
    return next((seen.target for seen in stage.picture().groups if seen.name == group), None)


def nodes(stage: Stage, group: str) -> Sequence[pb.Instance]:
    """What the autoscaler sees of a group; nothing of one that is not served."""
    return next((seen.nodes for seen in stage.picture().groups if seen.name == group), ())


def delete(stage: Stage, group: str, ids: Iterable[str], *, extra: str = "", patience_s: float = PATIENCE_S) -> None:
    """Give these nodes back, `extra` being one that is not ours, and remember what was acknowledged."""
    named = [_named(stage, provider_id) for provider_id in ids]
    wanted = [pb.ExternalGrpcNode(providerID=spelled, name=spelled, annotations=_FAKE) for spelled, _ in named]
    if extra:
        wanted.append(pb.ExternalGrpcNode(providerID=extra, name=extra))
    names = {name for _, name in named if name}
    live = sum(1 for name in names if name in stage.books.instances and stage.books.instances[name].state.is_live)
    before, well = _target(stage, group), _is_well(stage)
    request = pb.NodeGroupDeleteNodesRequest(id=group, nodes=wanted)
    if ask(stage, "NodeGroupDeleteNodes", request, patience_s) is None:
        return
    if extra:
        raise Violated("strangers_are_not_given_back", f"{extra} was accepted as a node of {group}")
    after = _target(stage, group)
    if well and before is not None and after is not None and after != before - live:
        raise Violated("a_deletion_is_seen_at_once", f"{group}: {before} - {live} became {after}")
    stage.witness.released |= names


def _named(stage: Stage, provider_id: str) -> tuple[str, str]:
    """The id as listed, and the instance it stands for."""
    instance = stage.books.find(provider_id, provider_id)
    if instance is None:
        name = next((name for name, spelled in stage.witness.spelled.items() if spelled == provider_id), "")
        return provider_id, name
    return provider_id, instance.name


def delete_failed(stage: Stage) -> None:
    """Give back everything that is listed with an error, group by group, as the autoscaler's loop does."""
    for group in stage.picture().groups:
        failed = [node.id for node in group.nodes if node.status.errorInfo.errorCode]
        if failed:
            delete(stage, group.name, failed)


def decrease(stage: Stage, group: str, by: int) -> None:
    """Take back part of what was wanted and has not come."""
    before, well = _target(stage, group), _is_well(stage)
    if ask(stage, "NodeGroupDecreaseTargetSize", pb.NodeGroupDecreaseTargetSizeRequest(id=group, delta=-by)) is None:
        return
    after = _target(stage, group)
    if well and before is not None and after is not None and not before - by <= after < before:
        raise Violated("a_decrease_is_seen_at_once", f"{group}: {before} - {by} became {after}")


def register(stage: Stage, provider_id: str, name: str) -> None:
    """A real node shows up and is asked about."""
    node = pb.ExternalGrpcNode(providerID=provider_id, name=name)
    ask(stage, "NodeGroupForNode", pb.NodeGroupForNodeRequest(node=node))
