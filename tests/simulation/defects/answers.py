"""Defects in what the autoscaler is told, and when."""

import math
from typing import Any

from app.domain.books import Books
from app.domain.decide import Command
from app.domain.envelope import Cause
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.errors import InvalidRequest
from app.ledger.ledger import Ledger
from app.rpc import answers, interceptors
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.interceptors import Call, Edge
from app.rpc.mapping import instance_message
from tests.simulation.defects import Change, Defect

_execute = Ledger.execute


def _error_beside_any_state(instance: Instance) -> pb.Instance:
    message = instance_message(instance)
    if instance.error_class is not None:
        message.status.errorInfo.errorCode = str(instance.error_code)
        message.status.errorInfo.instanceErrorClass = int(instance.error_class)
    return message


def _no_errors(instance: Instance) -> pb.Instance:
    message = instance_message(instance)
    message.status.ClearField("errorInfo")
    return message


def _stateless(instance: Instance) -> pb.Instance:
    message = instance_message(instance)
    if instance.state is InstanceState.STOPPED:
        message.status.instanceState = pb.InstanceStatus.unspecified
    return message


def _admit_all(self: Edge, *rest: Any) -> None:
    """Nobody's deadline is looked at, and the gate stands open."""
    del self, rest


def _no_deadline(self: Ledger, command: Command, cause: Cause, not_after: float | None = None) -> Any:
    del not_after
    return _execute(self, command, cause)


def _call_for_ever(self: Edge, context: Any, began: float) -> Call:
    del context, began
    return Call(cause=Cause(actor=interceptors.ACTOR, correlation_id=self._ids.token()), not_after=math.inf)


def _nodes_of_known_groups_only(self: CloudProvider, request: Any, context: Any) -> Any:
    """A group whose instances have failed cannot be read."""
    del context
    books = self._books
    if any(one.state is InstanceState.FAILED for one in books.members(request.id).listed):
        raise InvalidRequest("the group has failed instances")
    return self._answers.nodes(request.id, books.members(request.id))


def _answer(new: Any) -> list[Change]:
    return [Change(holder=answers, name="instance_message", new=new)]


def _limits_of_old(_books: Books, group: NodeGroup) -> tuple[int, int]:
    return group.spec.min_size, group.spec.max_size


def _spelt_by_us(instance: Instance) -> pb.Instance:
    message = instance_message(instance)
    message.id = f"verda://{instance.name}" if instance.provider_id_learned else message.id
    return message


def _under_its_id(instance: Instance) -> pb.Instance:
    message = instance_message(instance)
    if instance.state is InstanceState.RUNNING:
        message.id = f"verda://{instance.instance_id}"
    return message


ANSWERS = (
    Defect(
        name="list-under-the-new-id",
        words="an instance is listed under its machine's id once it runs",
        changes=lambda: _answer(_under_its_id),
    ),
    Defect(
        name="serve-who-has-left",
        words="a call whose deadline has passed is carried out",
        changes=lambda: [Change(holder=Edge, name="_call", new=_call_for_ever)],
    ),
    Defect(
        name="errors-beside-any-state",
        words="running instances are listed with the error of an earlier attempt",
        changes=lambda: _answer(_error_beside_any_state),
    ),
    Defect(
        name="silent-failures",
        words="failed instances are listed without their error",
        changes=lambda: _answer(_no_errors),
    ),
    Defect(
        name="stateless-instances",
        words="switched-off instances are listed without a state",
        changes=lambda: _answer(_stateless),
    ),
    Defect(
        name="one-group-fails",
        words="a group with failed instances cannot be read",
        changes=lambda: [Change(holder=CloudProvider, name="NodeGroupNodes", new=_nodes_of_known_groups_only)],
    ),
    Defect(
        name="answer-at-once",
        words="calls are answered before the first listing, and after their deadline",
        changes=lambda: [
            Change(holder=Edge, name="_admit", new=_admit_all),
            Change(holder=Ledger, name="execute", new=_no_deadline),
        ],
    ),
    Defect(
        name="retired-groups-show-their-maximum",
        words="a group that left the configuration is listed with the limits that it had",
        changes=lambda: [Change(holder=Books, name="size_limits", new=_limits_of_old)],
    ),
    Defect(
        name="forget-the-learnt-spelling",
        words="a node's own spelling of its provider id is not answered",
        changes=lambda: _answer(_spelt_by_us),
    ),
    Defect(
        name="blame-anybody",
        words="what the autoscaler asks for is written down as somebody else's wish",
        changes=lambda: [Change(holder=interceptors, name="ACTOR", new="somebody")],
    ),
)
