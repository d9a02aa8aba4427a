"""Faults of growing and releasing."""

import threading
from dataclasses import replace
from typing import Any

import grpc

from app.domain.books import Books
from app.domain.envelope import Decision
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup import decide as group_decide
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes, IncreaseSize
from app.errors import RuleViolation
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.interceptors import current_call

from .faults import change, fault
from .faulty import Decider, Handler, after, before, decider, handler

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

    decider("increase_size", _without_maximum)()
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
        "26",
        handler("NodeGroupIncreaseSize", _as_many_as_fit),
    ),
    fault("no-maximum", "groups grow beyond their maximum", "26 28", decider("increase_size", _without_maximum)),
    fault("looks-then-leaps", "the maximum is checked before the lock is taken", "28", _look_then_leap),
    fault(
        "waits-for-the-order",
        "growth is answered when the machines are ordered",
        "2 27",
        handler("NodeGroupIncreaseSize", _waits_for_the_order),
    ),
    fault(
        "absolute-decrease", "the sign of a decrease does not matter", "29", decider("decrease_target_size", _absolute)
    ),
    fault(
        "all-or-nothing",
        "a decrease by more than can be released is refused",
        "32 33",
        decider("decrease_target_size", _all_or_nothing),
    ),
    fault(
        "decrease-deletes",
        "a decrease deletes machines if it must",
        "31 32",
        decider("decrease_target_size", _deletes_machines),
    ),
    fault(
        "minimum-guards-decrease",
        "a decrease below the minimum is refused",
        "33",
        decider("decrease_target_size", _minimum_guards_decrease),
    ),
    fault("hides-instead", "released slots are hidden and ordered all the same", "30 34", _hide_instead_of_release),
)
