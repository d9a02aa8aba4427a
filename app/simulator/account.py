"""The prepaid account: ten-minute slices for machines, continuous storage, refunds, and what happens at zero."""

from app.simulator.core import Core, to_ms
from app.simulator.records import EventKind, InstanceRecord, Meter, VolumeRecord
from app.simulator.state import LedgerRow

_HOUR_MS = 3_600_000
_MONTH_HOURS = 730
_ROWS_KEPT = 10_000


def cost_micro(price_micro: int, duration_ms: int) -> int:
    """Millionths of a dollar for a time at a price per hour, rounded to the nearest."""
    return (price_micro * duration_ms * 2 + _HOUR_MS) // (2 * _HOUR_MS)


class Account:
    """Money. Amounts are integer millionths of a dollar, so sums are exact."""

    def __init__(self, core: Core) -> None:
        self._core = core

    @property
    def slice_ms(self) -> int:
        """Length of one prepaid slice."""
        return self._core.config.billing.slice_s * 1000

    def covers(self, price_micro: int) -> bool:
        """Whether the balance covers one slice at a price per hour."""
        return self._core.state.account.balance_micro >= cost_micro(price_micro, self.slice_ms)

    def new_meter(self, price_micro: int) -> Meter:
        """A meter that starts now; buy its first slice with `buy_slice`."""
        now = self._core.now_ms
        return Meter(price_micro=price_micro, started_ms=now, segment_ms=now)

    def buy_slice(self, instance: InstanceRecord) -> None:
        """Prepay the next slice of a running meter and remember to buy the one after."""
        meter = instance.meter
        meter.slices += 1
        meter.bought += 1
        paid = cost_micro(meter.price_micro, meter.slices * self.slice_ms)
        self._post("slice", instance.id, paid - meter.segment_paid_micro)
        meter.paid_micro += paid - meter.segment_paid_micro
        meter.segment_paid_micro = paid
        next_ms = meter.segment_ms + meter.slices * self.slice_ms
        self._core.time.at(next_ms, EventKind.SLICE, instance.id, meter.bought)

    def stop_meter(self, instance: InstanceRecord, *, waive: bool = False) -> None:
        """End billing and refund what was prepaid too much; `waive` refunds everything."""
        meter, now = instance.meter, self._core.now_ms
        if meter.stopped_ms is not None:
            return
        if waive:
            meter.stopped_ms = meter.started_ms
            self._refund(instance, meter.paid_micro - meter.refunded_micro)
            return
        meter.stopped_ms = now
        self._refund(instance, meter.segment_paid_micro - cost_micro(meter.price_micro, now - meter.segment_ms))

    def reprice(self, instance: InstanceRecord, price_micro: int) -> None:
        """Let a running meter go on at another price from now."""
        meter, now = instance.meter, self._core.now_ms
        self._refund(instance, meter.segment_paid_micro - cost_micro(meter.price_micro, now - meter.segment_ms))
        meter.price_micro, meter.segment_ms = price_micro, now
        meter.segment_paid_micro, meter.slices = 0, 0
        self.buy_slice(instance)

    def settle_storage(self) -> None:
        """Charge every volume up to now."""
        for volume in self._core.state.volumes.values():
            if volume.billed_from_ms is not None:
                self.charge_storage(volume)

    def charge_storage(self, volume: VolumeRecord, *, back_ms: int = 0) -> None:
        """Charge one volume up to now, and `back_ms` on top for a restore from the trash."""
        now = self._core.now_ms
        elapsed = 0 if volume.billed_from_ms is None else now - volume.billed_from_ms
        if volume.billed_from_ms is not None:
            volume.billed_from_ms = now
        volume.gb_ms += volume.size_gb * (elapsed + back_ms)
        per_gb_month = round(self._core.config.billing.storage_per_gb_month * 1_000_000)
        cost = volume.gb_ms * per_gb_month // (_MONTH_HOURS * _HOUR_MS)
        self._post("restore" if back_ms else "storage", volume.id, cost - volume.charged_micro)
        volume.charged_micro = cost

    def schedule_storage_bill(self) -> None:
        """Charge all volumes once per slice from here on."""
        self._core.time.schedule(to_ms(self._core.config.billing.slice_s), EventKind.STORAGE_BILL)

    def top_up(self, amount_micro: int) -> None:
        """Put money on the account; negative takes it away."""
        self._post("topup", "", -amount_micro)

    def _refund(self, instance: InstanceRecord, amount_micro: int) -> None:
        instance.meter.refunded_micro += amount_micro
        self._post("refund", instance.id, -amount_micro)

    def _post(self, kind: str, subject: str, amount_micro: int) -> None:
        if not amount_micro:
            return
        account = self._core.state.account
        account.balance_micro -= amount_micro
        account.totals[kind] = account.totals.get(kind, 0) + amount_micro
        account.rows.append(LedgerRow(at_ms=self._core.now_ms, kind=kind, subject=subject, amount_micro=amount_micro))
        if len(account.rows) > _ROWS_KEPT:
            del account.rows[: _ROWS_KEPT // 10]


def billed_ms(meter: Meter, now_ms: int) -> int:
    """Time an instance has been paid for up to an instant."""
    return (now_ms if meter.stopped_ms is None else meter.stopped_ms) - meter.started_ms


def meter_cost_micro(meter: Meter, now_ms: int) -> int:
    """What an instance has really cost up to an instant, the unused part of the last slice not counted."""
    if meter.stopped_ms is not None:
        return meter.paid_micro - meter.refunded_micro
    unused = meter.segment_paid_micro - cost_micro(meter.price_micro, now_ms - meter.segment_ms)
    return meter.paid_micro - meter.refunded_micro - unused
