"""The cloud as a whole: is it reachable, what does it sell, what does it hold of ours that nobody wants."""

from __future__ import annotations  # HashTrieMap cannot be subscripted at run time

from dataclasses import dataclass, field, replace
from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import ClassVar, Final, assert_never

from rpds import HashTrieMap

from app.domain import account, scripts
from app.domain.account import AccountAccepted, AccountRefusal, AccountRefused
from app.domain.billing import cost_of, rounded
from app.domain.envelope import CloudEvent, Decision, Recorded
from app.domain.offering import Contract, InstanceType
from app.domain.scripts import StartupScript

NEVER_PLACED: Final = "never placed"
"""Why a record under one of our names is too many that was never a machine, and so was never billed."""


class CloudReachable(CloudEvent):
    """The cloud answered a listing, for the first time or after an outage."""

    type: ClassVar[str] = "cloud.reachable"
    words: ClassVar[str] = "the cloud answers ({backend})"
    backend: str


class CloudUnreachable(CloudEvent):
    """The cloud stopped answering. One event an outage, however many calls fail."""

    type: ClassVar[str] = "cloud.unreachable"
    words: ClassVar[str] = "the cloud does not answer, {code}: {message}"
    code: str
    message: str


class CatalogueChanged(CloudEvent):
    """The catalogue gained, changed or lost instance types; `types` holds the new form of the first two."""

    type: ClassVar[str] = "cloud.catalogue-changed"
    words: ClassVar[str] = "the catalogue changed: {count} instance types new or different, {withdrawn_count} withdrawn"
    count: int
    withdrawn_count: int
    types: tuple[InstanceType, ...]
    withdrawn: tuple[str, ...]


class PriceChanged(CloudEvent):
    """The catalogue's price of an instance type changed; `old` is None when it is seen for the first time."""

    type: ClassVar[str] = "cloud.price-changed"
    words: ClassVar[str] = "{instance_type} {contract} now costs {new} {currency} an hour (was {old})"
    instance_type: str
    contract: Contract
    old: Decimal | None
    new: Decimal | None
    currency: str


class OrphanDetected(CloudEvent):
    """A machine carries our cluster's name, or a name of ours, and is not in the books."""

    type: ClassVar[str] = "cloud.orphan-detected"
    words: ClassVar[str] = "{hostname} ({instance_id}) costs {price_per_hour} an hour and is not in the books: {reason}"
    instance_id: str
    hostname: str
    installation: str
    node_group: str
    price_per_hour: Decimal | None
    reason: str


class DuplicateInstanceDetected(CloudEvent):
    """A machine of ours that nobody wants: a second one under one name, or one for a wish that was dropped."""

    type: ClassVar[str] = "cloud.duplicate-instance-detected"
    words: ClassVar[str] = "{instance_id} is a machine too many for {instance} ({reason}); deleting it"
    instance_id: str
    instance: str
    reason: str


class DuplicateInstanceDeleted(CloudEvent):
    """The machine too many is gone."""

    type: ClassVar[str] = "cloud.duplicate-instance-deleted"
    words: ClassVar[str] = "{instance_id}, the machine too many for {instance}, is gone"
    instance_id: str
    instance: str


class OrphanVolumeDeleted(CloudEvent):
    """A system disk that had outlived its machine is gone. Size in GB as the API counts them."""

    type: ClassVar[str] = "cloud.orphan-volume-deleted"
    words: ClassVar[str] = "volume {volume_id} of {size_gb} GB, left behind by {instance}, is deleted"
    volume_id: str
    instance: str
    size_gb: int


class BalanceObserved(CloudEvent):
    """What is left on the account. Recorded when it differs by a hundredth from what was recorded last."""

    type: ClassVar[str] = "cloud.balance-observed"
    words: ClassVar[str] = "{amount} {currency} are left on the account"
    amount: Decimal
    currency: str


class OrphanOutcome(StrEnum):
    """What became of a machine that was not in the books."""

    ADOPTED = "adopted"
    DELETED = "deleted"
    VANISHED = "vanished"


class OrphanSettled(CloudEvent):
    """A machine that was not in the books is taken in or gone. `cost` is what it cost since it was first seen."""

    type: ClassVar[str] = "cloud.orphan-settled"
    words: ClassVar[str] = (
        "{hostname} ({instance_id}), which was not in the books, is {outcome}; it cost {cost} meanwhile"
    )
    instance_id: str
    hostname: str
    outcome: OrphanOutcome
    cost: Decimal | None


AnyCloudEvent = (
    CloudReachable
    | CloudUnreachable
    | CatalogueChanged
    | PriceChanged
    | OrphanDetected
    | OrphanSettled
    | DuplicateInstanceDetected
    | DuplicateInstanceDeleted
    | OrphanVolumeDeleted
    | AccountRefused
    | AccountAccepted
    | BalanceObserved
    | scripts.ScriptUploadAttempted
    | scripts.ScriptUploaded
    | scripts.ScriptDeletionAttempted
    | scripts.ScriptDeleted
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Surplus:
    """A machine at the cloud that is to be deleted although no instance of the books stands for it."""

    instance_id: str
    instance: str
    reason: str
    since: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """A machine at the cloud that carries our cluster's name, or a name of ours, and is not in the books."""

    instance_id: str
    hostname: str
    installation: str
    node_group: str
    price_per_hour: Decimal | None
    reason: str
    since: datetime

    def cost_until(self, at: datetime) -> Decimal | None:
        """What it has cost since it was first seen, None if its price is not known."""
        return None if self.price_per_hour is None else rounded(cost_of(self.price_per_hour, at - self.since))


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudView:
    """What is known of the cloud. `reachable` is None until the first listing was tried."""

    reachable: bool | None = None
    since: datetime | None = None
    first_reached_at: datetime | None = None
    trouble: str = ""
    catalogue: HashTrieMap[str, InstanceType] = field(default_factory=HashTrieMap)
    withdrawn: frozenset[str] = frozenset()
    surplus: HashTrieMap[str, Surplus] = field(default_factory=HashTrieMap)
    orphans: HashTrieMap[str, Orphan] = field(default_factory=HashTrieMap)
    account: AccountRefusal | None = None
    balance: Decimal | None = None
    balance_currency: str = ""
    scripts: HashTrieMap[str, StartupScript] = field(default_factory=HashTrieMap)
    version: int = 0


def evolve(view: CloudView, recorded: Recorded[AnyCloudEvent]) -> CloudView:
    """Fold one event of the stream `cloud`."""
    event, at = recorded.event, recorded.recorded_at
    view = replace(view, version=recorded.version)
    match event:
        case CloudReachable():
            return replace(view, reachable=True, since=at, first_reached_at=view.first_reached_at or at, trouble="")
        case CloudUnreachable():
            return replace(view, reachable=False, since=at, trouble=f"{event.code}: {event.message}")
        case CatalogueChanged():
            catalogue = view.catalogue
            for kind in event.types:
                catalogue = catalogue.insert(kind.name, kind)
            listed = {kind.name for kind in event.types}
            withdrawn = (view.withdrawn - listed) | frozenset(event.withdrawn)
            return replace(view, catalogue=catalogue, withdrawn=withdrawn)
        case OrphanDetected() | OrphanSettled():
            return replace(view, orphans=_orphans(view.orphans, event, at))
        case DuplicateInstanceDetected():
            found = Surplus(instance_id=event.instance_id, instance=event.instance, reason=event.reason, since=at)
            return replace(view, surplus=view.surplus.insert(event.instance_id, found))
        case DuplicateInstanceDeleted():
            return replace(view, surplus=view.surplus.discard(event.instance_id))
        case AccountRefused() | AccountAccepted():
            return replace(view, account=account.evolve(view.account, event, at, recorded.position))
        case BalanceObserved():
            return replace(view, balance=event.amount, balance_currency=event.currency)
        case (
            scripts.ScriptUploadAttempted()
            | scripts.ScriptUploaded()
            | scripts.ScriptDeletionAttempted()
            | scripts.ScriptDeleted()
        ):
            return replace(view, scripts=scripts.evolve(view.scripts, recorded))  # type: ignore[arg-type] # narrowed
        case OrphanVolumeDeleted() | PriceChanged():
            return view  # facts for the audit; the catalogue's event beside a new price carries it as well
        case _:
            assert_never(event)


def _orphans(
    known: HashTrieMap[str, Orphan], event: OrphanDetected | OrphanSettled, at: datetime
) -> HashTrieMap[str, Orphan]:
    if isinstance(event, OrphanSettled):
        return known.discard(event.instance_id)
    orphan = Orphan(
        instance_id=event.instance_id,
        hostname=event.hostname,
        installation=event.installation,
        node_group=event.node_group,
        price_per_hour=event.price_per_hour,
        reason=event.reason,
        since=at,
    )
    return known.insert(event.instance_id, orphan)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordCatalogue:
    """The catalogue as it was just read, whole."""

    types: tuple[InstanceType, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUnreachable:
    """A call that must work did not; `code` and `message` say how."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSurplus:
    """A machine of ours that a direct look-up confirmed to be one too many."""

    instance: str
    instance_id: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordSurplusGone:
    """A machine too many is proven gone."""

    instance_id: str


def record_catalogue(command: RecordCatalogue, view: CloudView) -> Decision:
    """What is different from the catalogue we know. An empty catalogue is not believed."""
    if not command.types:
        return Decision()
    changed = tuple(
        kind for kind in command.types if view.catalogue.get(kind.name) != kind or kind.name in view.withdrawn
    )
    offered = {kind.name for kind in command.types}
    withdrawn = tuple(sorted(set(view.catalogue) - offered - view.withdrawn))
    if not changed and not withdrawn:
        return Decision()
    change = CatalogueChanged(count=len(changed), withdrawn_count=len(withdrawn), types=changed, withdrawn=withdrawn)
    return Decision(
        (change, *(price for kind in changed for price in _price_changes(view.catalogue.get(kind.name), kind)))
    )


def _price_changes(known: InstanceType | None, now: InstanceType) -> tuple[PriceChanged, ...]:
    if known is None:
        return ()
    return tuple(
        PriceChanged(
            instance_type=now.name,
            contract=contract,
            old=known.price(contract),
            new=now.price(contract),
            currency=now.currency,
        )
        for contract in Contract
        if known.price(contract) != now.price(contract)
    )


def record_unreachable(command: RecordUnreachable, view: CloudView) -> Decision:
    """One event an outage."""
    if view.reachable is False:
        return Decision()
    return Decision((CloudUnreachable(code=command.code, message=command.message),))


def record_surplus(command: RecordSurplus, view: CloudView) -> Decision:
    """The intent to delete the machine too many."""
    if command.instance_id in view.surplus:
        return Decision()
    event = DuplicateInstanceDetected(instance_id=command.instance_id, instance=command.instance, reason=command.reason)
    return Decision((event,))


def record_surplus_gone(command: RecordSurplusGone, view: CloudView, now: datetime) -> Decision:
    """The machine too many is gone."""
    known = view.surplus.get(command.instance_id)
    if known is None:
        return Decision()
    gone = DuplicateInstanceDeleted(instance_id=known.instance_id, instance=known.instance)
    orphan = view.orphans.get(command.instance_id)
    return Decision((gone,) if orphan is None else (gone, settled(orphan, OrphanOutcome.DELETED, now)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleOrphan:
    """A machine that was not in the books is proven gone, without our doing."""

    instance_id: str


def settle_orphan(command: SettleOrphan, view: CloudView, now: datetime) -> Decision:
    """Nobody needs to look for it any more."""
    orphan = view.orphans.get(command.instance_id)
    if orphan is None or command.instance_id in view.surplus:
        return Decision()
    return Decision((settled(orphan, OrphanOutcome.VANISHED, now),))


def settled(orphan: Orphan, outcome: OrphanOutcome, now: datetime) -> OrphanSettled:
    """What became of it, with its cost."""
    return OrphanSettled(
        instance_id=orphan.instance_id, hostname=orphan.hostname, outcome=outcome, cost=orphan.cost_until(now)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordVolumeDeleted:
    """A system disk without a machine was deleted."""

    volume_id: str
    instance: str
    size_gb: int


def record_volume_deleted(command: RecordVolumeDeleted) -> Decision:
    """For the audit."""
    event = OrphanVolumeDeleted(volume_id=command.volume_id, instance=command.instance, size_gb=command.size_gb)
    return Decision((event,))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordBalance:
    """What is left on the account, as it was just read."""

    amount: Decimal
    currency: str


def record_balance(command: RecordBalance, view: CloudView) -> Decision:
    """It changes all the time; what matters for hours to come is a hundredth of it."""
    known = view.balance
    if known is not None and command.currency == view.balance_currency:
        difference = abs(command.amount - known)
        if difference == 0 or difference * 100 < abs(known):
            return Decision()
    return Decision((BalanceObserved(amount=command.amount, currency=command.currency),))
