"""May we answer, and are we well: one judgement for the RPC gate, the health service and the readiness page."""

from dataclasses import dataclass

from app.domain.books import Books
from app.domain.instance.events import FailureCode
from app.domain.nodegroup.joining import words
from app.ledger.ledger import Ledger


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
            names = ", ".join(sorted(books.cloud.orphans)[:10])
            message = (
                f"{len(books.cloud.orphans)} machines carry the cluster name {books.installation.cluster_name} and are "
                f"not in this new database: {names}. If they are this cluster's, set `claim: auto` and start again; "
                "if another cluster uses the same name, give this one another `cluster_name`"
            )
            reasons.append(Reason(code="claim-needed", message=message))
        else:
            trouble = books.cloud.trouble or "no listing has come back yet"
            reasons.append(Reason(code="cloud-never-reached", message=f"the cloud was never reached: {trouble}"))
    if not books.cloud.catalogue:
        reasons.append(Reason(code="no-catalogue", message="the catalogue of instance types was never read"))
    return tuple(reasons)


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
    return tuple(reasons)
