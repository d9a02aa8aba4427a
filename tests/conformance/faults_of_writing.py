"""Faults of the RPCs that grow, shrink and delete."""

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
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.errors import InvalidRequest, NotServing, RuleViolation
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.interceptors import Call, current_call

from .faults import change, fault
from .faults_of_reading import Handler, after, before, give_the_cloud_to_handlers, handler

Decider = Callable[[Any, Books], Decision]

_PAUSE_S = 0.15


def _pause(seconds: float = _PAUSE_S) -> None:
    threading.Event().wait(seconds)


def _later(_old: Handler) -> Handler:
    """Answer at once and do it a little later."""

    def new(self: Any, request: Any, _context: grpc.ServicerContext) -> Any:
        call = current_call()

        def work() -> None:
            _pause()
            command = IncreaseSize(
                node_group=request.id, delta=request.delta, names=self._mint(request.id, request.delta)
            )
            self._ledger.execute(command, call.cause)

        threading.Thread(target=work).start()
        return pb.NodeGroupIncreaseSizeResponse()

    return new


def _decider(name: str, make: Callable[[Decider], Decider]) -> Callable[[], None]:
    return change(group_decide, name, make)


def _nothing_to_add(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        return pb.NodeGroupIncreaseSizeResponse() if request.delta <= 0 else old(self, request, context)

    return new


def _as_many_as_fit(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        group = self._books.groups.get(request.id)
        if group is not None and request.delta > 0:
            request.delta = min(request.delta, group.spec.max_size - self._books.target_size(group.name))
            if not request.delta:
                return pb.NodeGroupIncreaseSizeResponse()
        return old(self, request, context)

    return new


def _without_maximum(old: Decider) -> Decider:
    def new(command: IncreaseSize, books: Books) -> Decision:
        group = group_decide.served_group(books, command.node_group)
        larger = replace(group, spec=group.spec.model_copy(update={"max_size": 10**6}))
        return old(command, books.with_group(larger))

    return new


def _look_then_leap() -> None:
    """The size is looked at outside the lock."""

    def check(self: Any, request: Any, _context: grpc.ServicerContext) -> None:
        group = self._books.groups.get(request.id)
        if group is not None and self._books.target_size(group.name) + request.delta > group.spec.max_size:
            raise RuleViolation("too many")
        _pause()

    _decider("increase_size", _without_maximum)()
    change(CloudProvider, "NodeGroupIncreaseSize", before(check))()


def _waits_for_the_order(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        answer = old(self, request, context)
        for _ in range(40):
            states = {each.state for each in self._books.members(request.id).listed}
            if not states & {InstanceState.REQUESTED, InstanceState.SUBMITTING}:
                break
            _pause(0.1)
        return answer

    return new


def _absolute(old: Decider) -> Decider:
    return lambda command, books: old(replace(command, delta=-abs(command.delta)), books)


def _all_or_nothing(old: Decider) -> Decider:
    def new(command: DecreaseTargetSize, books: Books) -> Decision:
        decision = old(command, books)
        if len(decision.events) - 1 < -command.delta:
            raise RuleViolation("fewer can be released")
        return decision

    return new


def _deletes_machines(old: Decider) -> Decider:
    def new(command: DecreaseTargetSize, books: Books) -> Decision:
        try:
            return old(command, books)
        except RuleViolation:
            names = [each.name for each in books.members(command.node_group).live.values()][command.delta :]
            return group_decide.delete_nodes(DeleteNodes(node_group=command.node_group, instances=tuple(names)), books)

    return new


def _minimum_guards_decrease(old: Decider) -> Decider:
    def new(command: DecreaseTargetSize, books: Books) -> Decision:
        group = group_decide.served_group(books, command.node_group)
        if books.target_size(group.name) + command.delta < group.spec.min_size:
            raise RuleViolation("below the minimum")
        return old(command, books)

    return new


def _hide_instead_of_release() -> None:
    """Released slots are no longer shown, and ordered all the same."""
    hidden: set[str] = set()

    def decrease(self: Any, request: Any, _context: grpc.ServicerContext) -> Any:
        waiting = [
            each.name
            for each in self._books.members(request.id).listed
            if each.state is InstanceState.REQUESTED and each.name not in hidden
        ]
        hidden.update(waiting[request.delta :])
        return pb.NodeGroupDecreaseTargetSizeResponse()

    def shown(_request: Any, answer: pb.NodeGroupNodesResponse) -> pb.NodeGroupNodesResponse:
        ids = {f"verda://{name}" for name in hidden}
        return pb.NodeGroupNodesResponse(instances=[each for each in answer.instances if each.id not in ids])

    def size(self: Any, request: Any, _context: grpc.ServicerContext) -> Any:
        live = self._books.members(request.id).live
        return pb.NodeGroupTargetSizeResponse(targetSize=len([name for name in live if name not in hidden]))

    change(CloudProvider, "NodeGroupDecreaseTargetSize", lambda _old: decrease)()
    change(CloudProvider, "NodeGroupNodes", after(shown))()
    change(CloudProvider, "NodeGroupTargetSize", lambda _old: size)()


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


def _tear_down(self: Any, _request: Any, _context: grpc.ServicerContext) -> None:
    for group in self._books.served_groups:
        names = tuple(self._books.members(group.name).live)
        self._ledger.execute(DeleteNodes(node_group=group.name, instances=names), current_call().cause)


FAULTS = (
    fault(
        "answers-first",
        "growth is answered first and written a little later",
        "6 24 27",
        handler("NodeGroupIncreaseSize", _later),
    ),
    fault("adds-nothing", "growth by nothing or less is OK", "25", handler("NodeGroupIncreaseSize", _nothing_to_add)),
    fault(
        "as-many-as-fit",
        "growth is cut down to the maximum",
        "26 28",
        handler("NodeGroupIncreaseSize", _as_many_as_fit),
    ),
    fault("no-maximum", "groups grow beyond their maximum", "26 28", _decider("increase_size", _without_maximum)),
    fault("looks-then-leaps", "the maximum is checked before the lock is taken", "28", _look_then_leap),
    fault(
        "waits-for-the-order",
        "growth is answered when the machines are ordered",
        "2 27",
        handler("NodeGroupIncreaseSize", _waits_for_the_order),
    ),
    fault(
        "absolute-decrease", "the sign of a decrease does not matter", "29", _decider("decrease_target_size", _absolute)
    ),
    fault(
        "all-or-nothing",
        "a decrease by more than can be released is refused",
        "32 33",
        _decider("decrease_target_size", _all_or_nothing),
    ),
    fault(
        "decrease-deletes",
        "a decrease deletes machines if it must",
        "31 32",
        _decider("decrease_target_size", _deletes_machines),
    ),
    fault(
        "minimum-guards-decrease",
        "a decrease below the minimum is refused",
        "33",
        _decider("decrease_target_size", _minimum_guards_decrease),
    ),
    fault("hides-instead", "released slots are hidden and ordered all the same", "30 34", _hide_instead_of_release),
    fault(
        "only-the-first", "of several nodes the first is deleted", "45 48", _decider("delete_nodes", _only_the_first)
    ),
    fault("deletes-once", "deleting again is refused", "46 48a", _decider("delete_nodes", _refusing(_again))),
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
        _decider("delete_nodes", _refusing(_below_minimum)),
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
    fault("cleanup-tears-down", "Cleanup deletes everything", "69", handler("Cleanup", before(_tear_down))),
)
