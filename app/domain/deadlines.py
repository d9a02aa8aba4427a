"""Giving up: what has taken too long in any group."""

from collections.abc import Iterable
from datetime import datetime

from app.domain.books import Books
from app.domain.envelope import Decision, Event
from app.domain.instance.commands import CheckDeadlines
from app.domain.instance.events import CreateFailed, DeleteReason, ErrorClass, FailureCode
from app.domain.instance.ladder import give_up
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.decide import release
from app.domain.nodegroup.spec import NodeGroupSpec


def check_deadlines(command: CheckDeadlines, books: Books, now: datetime) -> Decision:
    """Wishes without a machine, machines that never run, failures nobody collects, machines left switched off."""
    events: list[Event] = []
    for instance in books.listed_instances():
        events.extend(_overdue(instance, books, command, now))
    return Decision(tuple(events))


def _overdue(instance: Instance, books: Books, command: CheckDeadlines, now: datetime) -> Iterable[Event]:
    spec = books.groups[instance.node_group].spec
    match instance.state:
        case InstanceState.REQUESTED if now - instance.requested_at >= spec.create_timeout:
            yield give_up(instance)
        case InstanceState.SUBMITTING if (
            instance.unknown_since is not None and now - instance.requested_at >= spec.create_timeout
        ):
            yield _failed(instance, FailureCode.CREATE_TIMEOUT, "nobody knows whether the machine was ever created")
        case InstanceState.PROVISIONING if _never_ran_in_time(instance, spec, now):
            words = f"the machine exists and was not running after {spec.provision_timeout}"
            yield _failed(instance, FailureCode.PROVISION_TIMEOUT, words)
        case InstanceState.FAILED if (
            instance.failed_at is not None and now - instance.failed_at >= command.failed_expiry
        ):
            yield from release(instance, DeleteReason.FAILED_EXPIRED, books)
        case InstanceState.STOPPED if (
            spec.stopped_action == "delete"
            and instance.stopped_at is not None
            and now - instance.stopped_at >= spec.stopped_after
        ):
            yield from release(instance, DeleteReason.STOPPED_TOO_LONG, books)
        case _:
            return


def _never_ran_in_time(instance: Instance, spec: NodeGroupSpec, now: datetime) -> bool:
    """Counts from when we knew of it: an adopted machine may be old, and the cloud's clock may be behind ours."""
    if instance.created_at is None or instance.running_at is not None:
        return False
    return now - max(instance.created_at, instance.requested_at) >= spec.provision_timeout


def _failed(instance: Instance, code: FailureCode, message: str) -> CreateFailed:
    return CreateFailed(
        instance=instance.name,
        node_group=instance.node_group,
        error_class=ErrorClass.OTHER,
        code=code,
        message=message,
    )
