"""Decisions about single instances: the bracket of intent and outcome around every call to the cloud."""

from collections.abc import Collection
from dataclasses import replace
from datetime import datetime, timedelta
from decimal import Decimal

from app.domain.account import AccountAccepted
from app.domain.books import Books
from app.domain.cloud import DuplicateInstanceDetected
from app.domain.envelope import Decision, Event
from app.domain.ids import ProviderIdTemplate
from app.domain.instance.commands import (
    AttemptCreate,
    AttemptDelete,
    ConfirmEnded,
    LearnProviderId,
    RecordCreated,
    RecordCreateUnknown,
    RecordDeleteRefused,
    RuleOutCreate,
)
from app.domain.instance.events import (
    CancelReason,
    CreateAttempted,
    CreateOutcomeUnknown,
    CreateRuledOut,
    DeleteAttempted,
    DeleteRefused,
    End,
    Found,
    InstanceCancelled,
    InstanceCreated,
    InstanceGone,
    InstanceLost,
    ProviderIdLearned,
)
from app.domain.instance.ladder import exhausted, next_rung, refused_with_the_account
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.instance.switching import cancelled, doubted, left_on, taken
from app.domain.instance.verdict import LONGEST_PAUSE, LONGEST_WISH, pause
from app.domain.nodegroup.joining import failed_by_breaker, probe_or_fail
from app.domain.nodegroup.state import NodeGroup
from app.domain.offering import Contract, Offering
from app.domain.pauses import is_over

_DELETE_AGAIN_AFTER = timedelta(seconds=30)
"""A deletion that was taken and changed nothing is asked for again; Verda reports deletions within about a minute."""


def is_due_for_creation(instance: Instance, now: datetime) -> bool:
    """Wanted, without an order, and not to wait before the next one."""
    return instance.state is InstanceState.REQUESTED and is_over(instance.retry_at, now, LONGEST_WISH)


def attempt_create(command: AttemptCreate, books: Books, now: datetime) -> Decision:
    """Write down the next create call, or that there will be none."""
    instance = books.instances.get(command.instance)
    if instance is None or not is_due_for_creation(instance, now):
        return Decision()
    group = books.groups[instance.node_group]
    if group.retired:
        return Decision(cancelled(instance, CancelReason.GROUP_RETIRED, books))
    shared = refused_with_the_account(instance, books, now)
    if shared is not None:
        return Decision((shared,))
    others = taken(instance, group, books)
    free = replace(instance, closed_rungs=(*instance.closed_rungs, *others))
    rung = doubted(instance, group) or next_rung(free, group, now)
    if rung is None and others:
        return Decision()  # waits for a machine of our own that is on its way down, or for the end of its time
    if rung is None:
        return Decision((exhausted(instance, group, now),))
    admitted = probe_or_fail(instance, group, now)
    if admitted is None:
        return Decision((failed_by_breaker(instance, group),))
    left = left_on(instance, books) if instance.start_in_doubt and rung != instance.tried else ()
    return Decision((*left, *admitted, _attempt(instance, group, rung, books)))


def _attempt(instance: Instance, group: NodeGroup, rung: Offering, books: Books) -> CreateAttempted:
    kind = books.cloud.catalogue.get(rung.instance_type)
    return CreateAttempted(
        instance=instance.name,
        node_group=instance.node_group,
        attempt=instance.attempt + 1,
        instance_type=rung.instance_type,
        image=group.spec.image,
        location=rung.location,
        contract=rung.contract,
        price_per_hour=kind.price(rung.contract) if kind else None,
        currency=kind.currency if kind else "usd",
    )


def record_created(command: RecordCreated, books: Books) -> Decision:
    """A machine exists: the instance's, unless the instance has one already or is no longer wanted."""
    instance = books.instances.get(command.instance)
    if instance is None or instance.instance_id == command.instance_id or command.instance_id in books.cloud.surplus:
        return Decision()
    if instance.instance_id is not None:
        return Decision((too_many(instance, command.instance_id, "duplicate"),))
    if instance.state.is_ended:
        return Decision((too_many(instance, command.instance_id, "released"),))
    born = created(instance, books, command.instance_id, instance.location, command.found)
    refused = books.cloud.account
    if refused is None or books.groups[instance.node_group].spec.kind == "webhook":
        return Decision((born,))
    return Decision((born, AccountAccepted(since=refused.since)))


def created(instance: Instance, books: Books, instance_id: str, location: str | None, found: Found) -> InstanceCreated:
    """The event that gives an instance its machine."""
    return InstanceCreated(
        instance=instance.name,
        node_group=instance.node_group,
        instance_id=instance_id,
        provider_id=(
            instance.provider_id
            if instance.provider_id_learned
            else provider_id_of(instance, books, instance_id, location)
        ),
        found=found,
    )


def provider_id_of(instance: Instance, books: Books, instance_id: str, location: str | None) -> str:
    """The provider id once the machine's id and place are known."""
    template = ProviderIdTemplate(books.groups[instance.node_group].spec.provider_id_template)
    return template.provider_id(
        name=instance.name, group=instance.node_group, location=location, instance_id=instance_id
    )


def too_many(instance: Instance, instance_id: str, reason: str) -> DuplicateInstanceDetected:
    """The intent to delete a machine that no instance stands for."""
    return DuplicateInstanceDetected(instance_id=instance_id, instance=instance.name, reason=reason)


def record_create_unknown(command: RecordCreateUnknown, books: Books) -> Decision:
    """Nobody knows: from now on the machine is looked for."""
    instance = books.instances.get(command.instance)
    if instance is None or not instance.create_is_open or instance.attempt != command.attempt:
        return Decision()
    if instance.unknown_since is not None:
        return Decision()
    return Decision(
        (
            CreateOutcomeUnknown(
                instance=instance.name,
                node_group=instance.node_group,
                attempt=command.attempt,
                reason=command.reason,
            ),
        )
    )


def rule_out_create(command: RuleOutCreate, books: Books) -> Decision:
    """The unknown call created nothing. A wish that was deleted meanwhile is cancelled, a failed one stays failed.

    A wish from books that were found to be older than the truth is not ordered again: nobody knows whether it still is.
    """
    instance = books.instances.get(command.instance)
    if instance is None or instance.unknown_since is None or instance.attempt != command.attempt:
        return Decision()
    ruled_out = CreateRuledOut(
        instance=instance.name,
        node_group=instance.node_group,
        attempt=command.attempt,
        looked_since=instance.unknown_since,
    )
    if instance.state is InstanceState.DELETING:
        return Decision((ruled_out, *cancelled(instance, CancelReason.NEVER_CREATED, books)))
    reverted_at = books.installation.reverted_at
    if reverted_at is not None and instance.attempted_at is not None and instance.attempted_at <= reverted_at:
        reason = CancelReason.BOOKS_REVERTED
        forgotten = InstanceCancelled(instance=instance.name, node_group=instance.node_group, reason=reason)
        return Decision((ruled_out, forgotten))
    return Decision((ruled_out,))


def is_due_for_deletion(instance: Instance, now: datetime, interrupted: Collection[str]) -> bool:
    """Deleting, known to the cloud, and not to be left in peace for a while."""
    return (
        instance.state is InstanceState.DELETING
        and instance.instance_id is not None
        and (is_over(instance.retry_at, now, LONGEST_PAUSE) or instance.name in interrupted)
    )


def attempt_delete(command: AttemptDelete, books: Books, now: datetime) -> Decision:
    """Write down the delete calls that are due.

    Only the system disk goes with the machine: we order no other, so any other volume is somebody's data.
    """
    events: list[Event] = []
    for name in command.instances:
        instance = books.instances.get(name)
        if (
            instance is None
            or instance.instance_id is None
            or not is_due_for_deletion(instance, now, command.interrupted)
        ):
            continue
        events.append(
            DeleteAttempted(
                instance=name,
                node_group=instance.node_group,
                attempt=instance.delete_attempt + 1,
                instance_id=instance.instance_id,
                volume_ids=(instance.os_volume_id,) if instance.os_volume_id else (),
                retry_at=now + _DELETE_AGAIN_AFTER,
            )
        )
    return Decision(tuple(events))


def record_delete_refused(command: RecordDeleteRefused, books: Books, now: datetime) -> Decision:
    """The delete call was not taken: keep the intent, try again after a pause."""
    instance = books.instances.get(command.instance)
    if instance is None or instance.state is not InstanceState.DELETING:
        return Decision()
    return Decision(
        (
            DeleteRefused(
                instance=instance.name,
                node_group=instance.node_group,
                attempt=max(instance.delete_attempt, 1),
                code=command.code,
                message=command.message,
                retry_at=now + pause(instance.delete_attempt),
            ),
        )
    )


def confirm_ended(command: ConfirmEnded, books: Books, now: datetime) -> Decision:
    """The machine is proven to be no more: gone if we asked for it, else lost.

    A failed instance stays listed as failed: the autoscaler has been told and deletes it.
    """
    instance = books.instances.get(command.instance)
    if instance is None or instance.instance_id != command.instance_id or instance.state.is_ended:
        return Decision()
    cost: Decimal | None = instance.cost_until(now)
    if instance.state is InstanceState.DELETING:
        gone = InstanceGone(
            instance=instance.name,
            node_group=instance.node_group,
            end=End.DELETED,
            cost=cost,
            currency=instance.currency,
        )
        return Decision((gone,))
    if instance.state is InstanceState.FAILED:
        return Decision()
    end = End.VANISHED
    if command.known_by_id:
        end = End.EVICTED if instance.contract is Contract.SPOT else End.DISCONTINUED
    lost = InstanceLost(
        instance=instance.name, node_group=instance.node_group, end=end, cost=cost, currency=instance.currency
    )
    return Decision((lost,))


def learn_provider_id(command: LearnProviderId, books: Books) -> Decision:
    """Answer with the spelling that Kubernetes uses, because the autoscaler compares byte for byte.

    Learned once: a second node that claims the same machine under another spelling must not make the answer flap.
    """
    instance = books.instances.get(command.instance)
    if instance is None or instance.state.is_ended or instance.provider_id_learned:
        return Decision()
    if instance.provider_id == command.provider_id:
        return Decision()
    return Decision(
        (ProviderIdLearned(instance=instance.name, node_group=instance.node_group, provider_id=command.provider_id),)
    )
