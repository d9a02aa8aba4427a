"""An instance as the log tells it."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from app.domain.billing import cost_of, rounded
from app.domain.instance.events import CancelReason, DeleteReason, End, ErrorClass, FailureCode
from app.domain.instance.lifecycle import InstanceState
from app.domain.offering import Contract, Offering
from app.domain.records import replace


@dataclass(frozen=True, kw_only=True)  # without slots, so that a change copies it quickly
class Instance:
    """A machine or our wish for one. Every field is a column of the table `instances`.

    `ordinal` is the log position of the wish, which orders a group's instances by age. `closed_rungs` are the offerings
    refused for this wish, `earlier_ids` the machines that orders before the last had made. `retry_at` bounds the next
    create or delete attempt. `created_at` is the cloud's own time, None for an order that was never placed.
    `machine_status` is the cloud's last word, said first at `status_since`. `delete_code` says why the last deletion
    was not taken. `script` names the uploaded startup script, `script_token` is the digest of the token in it,
    `script_fetched_at` when it was served to `script_source`. Prices are per hour; `billed_before` is what the machine
    had cost when its price last changed, at `price_since`; `cost` is final once the instance has ended. The `node_`
    fields are what the cluster showed of its node; `repaired_uid` is the node that was given a provider id,
    `prepared_uid` the one that had `node_prepared` done to it.
    """

    name: str
    node_group: str
    state: InstanceState
    provider_id: str
    ordinal: int
    requested_at: datetime
    requested_by: str
    correlation_id: str
    instance_type: str | None = None
    image: str | None = None
    location: str | None = None
    contract: Contract | None = None
    price_per_hour: Decimal | None = None
    billed_before: Decimal = Decimal(0)
    price_since: datetime | None = None
    currency: str = "usd"
    attempt: int = 0
    attempted_at: datetime | None = None
    unknown_since: datetime | None = None
    closed_rungs: tuple[Offering, ...] = ()
    retry_at: datetime | None = None
    instance_id: str | None = None
    machine_status: str | None = None
    status_since: datetime | None = None
    ip: str | None = None
    os_volume_id: str | None = None
    volume_ids: tuple[str, ...] = ()
    created_at: datetime | None = None
    running_at: datetime | None = None
    stopped_at: datetime | None = None
    failed_at: datetime | None = None
    error_class: ErrorClass | None = None
    error_code: FailureCode | None = None
    error_message: str | None = None
    delete_requested_at: datetime | None = None
    delete_requested_by: str | None = None
    delete_reason: DeleteReason | None = None
    delete_attempt: int = 0
    delete_code: str | None = None
    ended_at: datetime | None = None
    end_reason: End | None = None
    cancel_reason: CancelReason | None = None
    cost: Decimal | None = None
    provider_id_learned: bool = False
    script: str | None = None
    script_token: str | None = None
    script_fetches: int = 0
    version: int = 0
    position: int = 0
    node_uid: str | None = None
    node_registered_at: datetime | None = None
    node_ready_at: datetime | None = None
    node_problem: str | None = None
    repaired_uid: str | None = None
    node_measured_at: datetime | None = None
    prepared_uid: str | None = None
    node_preparing: tuple[str, ...] = ()
    node_prepared: tuple[str, ...] = ()
    script_fetched_at: datetime | None = None
    script_source: str | None = None
    earlier_ids: tuple[str, ...] = ()

    @property
    def create_is_open(self) -> bool:
        """A create call may have been made and its outcome is not known."""
        return self.attempted_at is not None

    @property
    def may_exist(self) -> bool:
        """A machine exists for it, or may."""
        return self.instance_id is not None or self.create_is_open

    @property
    def tried(self) -> Offering:
        """What was ordered last."""
        return Offering(
            instance_type=self.instance_type or "",
            location=self.location or "",
            contract=self.contract or Contract.ON_DEMAND,
        )

    @property
    def start_in_doubt(self) -> bool:
        """Its last create call was neither taken nor refused for good, and is to be repeated.

        A cloud's lists tell what came of it. A machine of our own may be on by it, and nothing else tells.
        """
        return self.attempt > 0 and not self.may_exist and self.tried not in self.closed_rungs

    @property
    def may_return(self) -> bool:
        """Ended in the books alone, and not given back since: should its machine be there, it is taken back.

        Its machine was believed lost, or the books had forgotten whether it was ever ordered. A deletion that was
        acknowledged is final.
        """
        forgotten = self.cancel_reason is CancelReason.BOOKS_REVERTED
        return (self.state is InstanceState.LOST or forgotten) and self.delete_requested_at is None

    @property
    def was_never_placed(self) -> bool:
        """Its order was taken and came to nothing: what the cloud still shows was never a machine and is not billed."""
        return self.machine_status is not None and self.created_at is None

    def cost_until(self, at: datetime) -> Decimal | None:
        """What the machine has cost by then: price times lifetime, None if it never existed or has no known price."""
        exactly = self._billed_until(at)
        return None if exactly is None else rounded(exactly)

    def _billed_until(self, at: datetime) -> Decimal | None:
        since = self.price_since or self.created_at
        if since is None or self.price_per_hour is None:
            return None
        return self.billed_before + cost_of(self.price_per_hour, at - since)

    def repriced(self, price: Decimal | None, at: datetime) -> "Instance":
        """The same at the price that the cloud shows. The first one shown holds from the beginning."""
        if price is None or price == self.price_per_hour:
            return self
        if self.machine_status is None or self.price_per_hour is None:
            return replace(self, price_per_hour=price)
        billed = self._billed_until(at)
        return replace(self, price_per_hour=price, price_since=at, billed_before=billed or Decimal(0))
