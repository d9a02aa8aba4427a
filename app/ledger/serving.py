"""May we answer, and are we well: one judgement for the RPC gate, the health service and the readiness page."""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from app.domain.books import Books
from app.domain.cloud import Orphan
from app.domain.instance.events import FailureCode
from app.domain.instance.lifecycle import InstanceState, is_unheard_of
from app.domain.nodegroup.joining import words
from app.ledger.ledger import Ledger

_NAMES_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """One thing an operator should know, with what to do about it."""

    code: str
    message: str


def obstacles(books: Books) -> tuple[Reason, ...]:
    """Why RPCs cannot be answered yet. Empty for good once a database has seen the cloud and its catalogue.

    A new database knows nothing of the machines that may exist, and must not look like an empty cluster.
    """
    reasons: list[Reason] = []
    if books.cloud.first_reached_at is None:
        if books.cloud.orphans:
            reasons.extend(_claims_needed(books))
        else:
            trouble = books.cloud.trouble or "no listing has come back yet"
            reasons.append(Reason(code="cloud-never-reached", message=f"the cloud was never reached: {trouble}"))
    if not books.cloud.catalogue:
        reasons.append(Reason(code="no-catalogue", message="the catalogue of instance types was never read"))
    return tuple(reasons)


def _claims_needed(books: Books) -> Iterator[Reason]:
    """A new database beside machines with its cluster's name: one sentence for each installation that made some."""
    by_installation: defaultdict[str, list[Orphan]] = defaultdict(list)
    for orphan in books.cloud.orphans.values():
        by_installation[orphan.installation].append(orphan)
    for installation, orphans in sorted(by_installation.items()):
        names = sorted(orphan.hostname for orphan in orphans)
        shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
        cost = sum((orphan.price_per_hour or Decimal(0) for orphan in orphans), Decimal(0))
        yield Reason(
            code="claim-needed",
            message=(
                f"{len(orphans)} machines of installation {installation} carry the cluster name "
                f"{books.installation.cluster_name} and are not in this new database: {shown}; they cost {cost} an "
                f"hour. If they are this cluster's, run `verda-cloud-provider claim {installation}` on this database "
                "or set `claim: auto`; if another cluster uses the same name, give this one another `cluster_name`"
            ),
        )


def complaints(ledger: Ledger) -> tuple[Reason, ...]:
    """Why we are not ready: the obstacles, and whatever keeps writes from succeeding."""
    reasons = list(obstacles(ledger.books))
    if ledger.trouble is not None:
        reasons.append(Reason(code="store", message=f"the database cannot be written: {ledger.trouble}"))
    return tuple(reasons)


def remarks(books: Books) -> tuple[Reason, ...]:
    """What does not keep us from being ready but should be seen; groups in the order of the configuration."""
    reasons: list[Reason] = []
    if books.cloud.reachable is False:
        message = f"the cloud does not answer since {books.cloud.since}: {books.cloud.trouble}"
        reasons.append(Reason(code="cloud-unreachable", message=message))
    if (account := books.cloud.account) is not None:
        message = f"Verda takes no orders since {account.since}, next try at {account.until}: {account.message}"
        reasons.append(Reason(code=account.code, message=message))
    for group in (books.groups[name] for name in books.group_order):
        if group.paused_at is not None and not group.retired:
            message = f"node group {group.name} is paused by {group.paused_by}: {group.pause_reason}"
            reasons.append(Reason(code="paused", message=message))
        if group.closed is not None and not group.retired:
            message = f"node group {group.name} orders nothing until its settings change: {group.closed.message}"
            reasons.append(Reason(code=group.closed.code, message=message))
        kind = group.spec.instance_type
        if not group.retired and books.cloud.catalogue and kind not in books.cloud.catalogue:
            message = f"node group {group.name} is not offered: the catalogue has no instance type {kind!r}"
            reasons.append(Reason(code="unknown-instance-type", message=message))
        elif not group.retired and kind in books.cloud.withdrawn:
            message = f"node group {group.name}: instance type {kind} has left the catalogue, orders may be refused"
            reasons.append(Reason(code="withdrawn-instance-type", message=message))
        if group.joining.is_open:
            message = f"node group {group.name}: {words(group)}; of the last one: {group.joining.message}"
            reasons.append(Reason(code=FailureCode.NEVER_JOINED, message=message))
    reasons.extend(_odd_machines(books))
    doubts = books.cluster.doubtful_tokens.values()
    reasons.extend(Reason(code="join-token-ends", message=doubt.message) for doubt in doubts)
    return tuple(reasons)


def _odd_machines(books: Books) -> Iterator[Reason]:
    """Machines that cost money and of which nobody knows, or everybody knows, that they do no work."""
    for instance in books.listed_instances():
        if is_unheard_of(instance.machine_status):
            message = (
                f"{instance.name} has the status {instance.machine_status!r} since {instance.status_since}, which this "
                "version does not know: it is taken to exist and to cost money, look at Verda's console"
            )
            yield Reason(code="unknown-status", message=message)
        elif instance.state is InstanceState.STOPPED:
            message = f"{instance.name} was switched off at {instance.stopped_at} and may cost money all the same"
            yield Reason(code="machine-stopped", message=message)
