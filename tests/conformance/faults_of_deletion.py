"""Faults of NodeGroupDeleteNodes."""

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import grpc

from app.cloud.port import Deletion
from app.domain.books import Books
from app.domain.envelope import Decision
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup import decide as group_decide
from app.domain.nodegroup.commands import DeleteNodes, IncreaseSize
from app.errors import InvalidRequest, NotServing, RuleViolation
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.interceptors import Call, current_call

from .faults import change, fault
from .faulty import Decider, Handler, before, decider, give_the_cloud_to_handlers, handler


def _only_the_first(old: Decider) -> Decider:
    return lambda command, books: old(replace(command, instances=command.instances[:1]), books)


def _refusing(reason: Callable[[DeleteNodes, Books], bool]) -> Callable[[Decider], Decider]:
    def make(old: Decider) -> Decider:
        def new(command: DeleteNodes, books: Books) -> Decision:
            if reason(command, books):
                raise RuleViolation("refused")
            return old(command, books)

        return new

    return make


def _states(command: DeleteNodes, books: Books) -> set[InstanceState]:
    return {books.instances[name].state for name in command.instances if name in books.instances}


def _again(command: DeleteNodes, books: Books) -> bool:
    return any(state is InstanceState.DELETING or state.is_ended for state in _states(command, books))


def _below_minimum(command: DeleteNodes, books: Books) -> bool:
    group = group_decide.served_group(books, command.node_group)
    return books.target_size(group.name) - len(set(command.instances)) < group.spec.min_size


def _named_if(keep: Callable[[Any], bool]) -> Callable[[], None]:
    """Only some of our instances are known to DeleteNodes."""

    def make(old: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def new(self: Any, node: Any) -> Any:
            instance = old(self, node)
            if not keep(instance):
                raise InvalidRequest("no instance of ours")
            return instance

        return new

    return change(CloudProvider, "_named", make)


def _what_it_can(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        mine = [node for node in request.nodes if self._books.find(node.providerID, node.name)]
        mine = [n for n in mine if self._books.find(n.providerID, n.name).node_group == request.id]
        return old(self, pb.NodeGroupDeleteNodesRequest(id=request.id, nodes=mine), context)

    return new


def _nameless_skipped(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        nodes = [node for node in request.nodes if node.providerID or node.name]
        return old(self, pb.NodeGroupDeleteNodesRequest(id=request.id, nodes=nodes), context)

    return new


def _check_nodes(is_wrong: Callable[[Any], bool]) -> Callable[[], None]:
    def check(_self: Any, request: Any, _context: grpc.ServicerContext) -> None:
        if is_wrong(request):
            raise InvalidRequest("wrong nodes")

    return change(CloudProvider, "NodeGroupDeleteNodes", before(check))


def _same_node_twice(request: Any) -> bool:
    return len({node.providerID for node in request.nodes}) < len(request.nodes)


def _fills_up(old: Handler) -> Handler:
    """A moment after a deletion the group is as large as before."""

    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        size, call = self._books.target_size(request.id), current_call()
        answer = old(self, request, context)
        threading.Timer(0.3, _top_up, (self, request.id, size, call)).start()
        return answer

    return new


def _top_up(provider: Any, group: str, size: int, call: Call) -> None:
    delta = size - provider._books.target_size(group)
    if delta > 0:
        command = IncreaseSize(node_group=group, delta=delta, names=provider._mint(group, delta))
        provider._ledger.execute(command, call.cause)


def _delete_in_line() -> None:
    """DeleteNodes calls the cloud, and fails with it."""

    def check(self: Any, request: Any, _context: grpc.ServicerContext) -> None:
        if not self._books.cloud.reachable:
            raise NotServing("the cloud does not answer")
        for node in request.nodes:
            instance = self._books.find(node.providerID, node.name)
            if instance is not None and instance.instance_id is not None and instance.state.is_live:
                self.cloud.delete_instances([Deletion(instance_id=instance.instance_id, volume_ids=None)])

    give_the_cloud_to_handlers()
    change(CloudProvider, "NodeGroupDeleteNodes", before(check))()


FAULTS = (
    fault("only-the-first", "of several nodes the first is deleted", "45 48", decider("delete_nodes", _only_the_first)),
    fault("deletes-once", "deleting again is refused", "46 48a", decider("delete_nodes", _refusing(_again))),
    fault("counts-twice", "the same node twice in a call is refused", "47", _check_nodes(_same_node_twice)),
    fault(
        "placeholders-stay",
        "instances without a machine cannot be deleted",
        "45 48",
        _named_if(lambda instance: instance.may_exist),
    ),
    fault(
        "released-forgotten",
        "slots that were released are unknown",
        "48a",
        _named_if(lambda instance: instance.state is not InstanceState.CANCELLED),
    ),
    fault(
        "minimum-guards-deletion",
        "deletions below the minimum are refused",
        "49",
        decider("delete_nodes", _refusing(_below_minimum)),
    ),
    fault("deletes-what-it-can", "strange nodes are skipped", "50", handler("NodeGroupDeleteNodes", _what_it_can)),
    fault(
        "nameless-skipped",
        "nodes without name and id are skipped",
        "52",
        handler("NodeGroupDeleteNodes", _nameless_skipped),
    ),
    fault("nothing-is-wrong", "deleting no node is refused", "53", _check_nodes(lambda request: not request.nodes)),
    fault("fills-up", "deleted instances are replaced", "54", handler("NodeGroupDeleteNodes", _fills_up)),
    fault("deletes-in-line", "deletions wait for the cloud, and fail with it", "55", _delete_in_line),
)
