"""The life of an instance: every transition, and what it does to money, stock and volumes."""

from app.simulator.account import Account
from app.simulator.capacity import Capacity
from app.simulator.catalogue import Catalogue
from app.simulator.core import PROJECT_USER, Core
from app.simulator.records import EventKind, InstanceRecord, Status, VolumeRecord
from app.simulator.steer import Fate, GuestFate
from app.simulator.volumes import Volumes

_JOURNAL: dict[str, str] = {
    Status.PROVISIONING: "provisioning",
    Status.VALIDATING: "validating",
    Status.RUNNING: "running",
    Status.DELETING: "deleting",
    Status.ERROR: "error",
    Status.INSTALLATION_FAILED: "installation:failed",
    Status.NO_CAPACITY: "error",
    Status.OFFLINE: "shutdown:complete",
}
_FAILED = frozenset({Status.ERROR, Status.INSTALLATION_FAILED})
_GOING_OFFLINE, _GOING_UP = "offline", "running"


class Lifecycle:
    """Moves instances from one status to the next."""

    def __init__(self, core: Core, catalogue: Catalogue, account: Account, volumes: Volumes) -> None:
        self._core = core
        self._account = account
        self._volumes = volumes
        self.capacity = Capacity(core, catalogue, self.evict)

    def begin(self, instance: InstanceRecord) -> None:
        """Start the life of an accepted order: prepay, and go towards `provisioning`."""
        plan = instance.plan
        instance.history.append((self._core.now_ms, instance.status))
        self._account.buy_slice(instance)
        if instance.status == Status.NEW:
            new_ms = self._core.draw_ms(self._core.config.durations.new, "new", instance.id)
            self._core.time.schedule(new_ms, EventKind.NEXT, instance.id, instance.generation)
        elif plan.fate is not Fate.STUCK_ORDERED:
            self._core.time.schedule(plan.ordered_ms, EventKind.NEXT, instance.id, instance.generation)
        if plan.evict_ms is not None and instance.is_spot:
            self._core.time.schedule(plan.evict_ms, EventKind.EVICT, instance.id)

    def next(self, instance: InstanceRecord) -> None:
        """Do what the plan says comes next."""
        plan = instance.plan
        match instance.status:
            case Status.NEW:
                self.become(instance, Status.ORDERED)
                if plan.fate is not Fate.STUCK_ORDERED:
                    self._next_in(instance, plan.ordered_ms)
            case Status.ORDERED if plan.fate is Fate.NO_CAPACITY:
                self.give_up(instance)
            case Status.ORDERED:
                self._provision(instance)
            case Status.PROVISIONING if plan.fate in {Fate.ERROR, Fate.INSTALLATION_FAILED}:
                self.fail(instance, plan.fate.value, plan.failure)
            case Status.PROVISIONING if plan.validating_ms >= 0:
                self.become(instance, Status.VALIDATING)
                self._next_in(instance, plan.validating_ms)
            case Status.PROVISIONING | Status.VALIDATING:
                self._run(instance)
            case Status.RUNNING if instance.going == _GOING_OFFLINE:
                self.become(instance, Status.OFFLINE)
            case Status.OFFLINE if instance.going == _GOING_UP:
                self._run(instance)
            case Status.DELETING:
                self.end(instance, "deleted")
            case _:
                return

    def become(self, instance: InstanceRecord, status: str, *, actor: str | None = None, error: str = "") -> None:
        """Set a status; whatever was due for the old one no longer is."""
        now = self._core.now_ms
        if instance.guest_ready_ms is not None and status != Status.RUNNING:
            instance.useful_ms += now - instance.guest_ready_ms
            instance.guest_ready_ms = None
        instance.status, instance.going = status, ""
        instance.generation += 1
        instance.history.append((now, status))
        if action := _JOURNAL.get(status):
            self._core.note(instance.id, action, instance.location, actor=actor, error=error)

    def shutdown(self, instance: InstanceRecord, *, actor: str | None = PROJECT_USER) -> None:
        """`running` towards `offline`; the API shows `running` until it is off."""
        instance.going = _GOING_OFFLINE
        instance.generation += 1
        self._core.note(instance.id, "shutdown", instance.location, actor=actor)
        duration = self._core.config.durations.shutting_down
        self._next_in(instance, self._core.draw_ms(duration, "shutdown", (instance.id, instance.generation)))

    def boot(self, instance: InstanceRecord) -> None:
        """`offline` towards `running`."""
        instance.going = _GOING_UP
        instance.generation += 1
        self._core.note(instance.id, "start", instance.location)
        duration = self._core.config.durations.booting
        self._next_in(instance, self._core.draw_ms(duration, "boot", (instance.id, instance.generation)))

    def delete(self, instance: InstanceRecord, *, actor: str | None = PROJECT_USER) -> None:
        """Towards `discontinued`, through `deleting`."""
        self._core.note(instance.id, "delete", instance.location, actor=actor)
        self.become(instance, Status.DELETING, actor=actor)
        self._next_in(instance, instance.plan.deleting_ms)

    def fail(self, instance: InstanceRecord, status: str, error: str) -> None:
        """Into a failed status, which lasts until somebody deletes the instance."""
        self.become(instance, status, error=error)
        if status in _FAILED and not self._core.config.billing.bill_failed:
            self._account.stop_meter(instance)

    def evict(self, instance: InstanceRecord, reason: str) -> None:
        """Take a spot instance away without notice."""
        if instance.ended_ms is not None:
            return
        self._core.state.counters.evictions += 1
        if self._core.config.behaviour.evict_via_deleting:
            self.become(instance, Status.DELETING)
        self.end(instance, reason)

    def end(self, instance: InstanceRecord, reason: str, *, to_trash: bool = False) -> None:
        """`discontinued`: the meter stops, the room is free, the volumes go where they should."""
        evicted = instance.wish is None and not to_trash
        self.become(instance, Status.DISCONTINUED)
        self._mark_ended(instance, reason)
        self._account.stop_meter(instance)
        self.capacity.release(instance)
        self._core.note(
            instance.id,
            "delete:complete",
            instance.location,
            actor=instance.wish.actor if instance.wish else None,
            reason="" if instance.wish else reason,
        )
        for volume_id in list(instance.volume_ids):
            volume = self._core.state.volumes[volume_id]
            if to_trash:
                self._volumes.discard(volume, permanently=False, actor=None)
            elif evicted:
                self._by_policy(instance, volume)
            else:
                self._by_wish(instance, volume)

    def guest_ready(self, instance: InstanceRecord) -> None:
        """The startup script is done and the machine serves a purpose."""
        if instance.status == Status.RUNNING:
            instance.guest_ready_ms = self._core.now_ms

    def _provision(self, instance: InstanceRecord) -> None:
        plan = instance.plan
        self.become(instance, Status.PROVISIONING)
        if instance.os_volume_id is None:
            volume = self._volumes.create(
                name=instance.os_volume_name,
                size_gb=instance.os_volume_gb,
                kind="NVMe",
                location=instance.location,
                is_os=True,
                tags=instance.os_volume_tags,
                policy=instance.os_volume_policy,
            )
            instance.os_volume_id = volume.id
            self._volumes.attach(volume, instance)
        self._core.time.schedule(plan.address_ms, EventKind.ADDRESS, instance.id, instance.generation)
        if plan.fate is not Fate.STUCK_PROVISIONING:
            self._next_in(instance, plan.provisioning_ms)

    def give_address(self, instance: InstanceRecord) -> None:
        """The public address appears, before SSH answers."""
        if instance.ip is None:
            number = self._core.ordinal("address")
            instance.ip = f"198.18.{number // 254 % 256}.{number % 254 + 1}"

    def _run(self, instance: InstanceRecord) -> None:
        self.give_address(instance)
        self.become(instance, Status.RUNNING)
        delay = instance.plan.guest_ms
        if instance.first_running_ms is None:
            instance.first_running_ms = self._core.now_ms
        else:
            delay = min(delay, 30_000)  # a reboot runs no startup script
        if instance.plan.guest is not GuestFate.NEVER_JOINS:
            self._core.time.schedule(delay, EventKind.GUEST_READY, instance.id, instance.generation)

    def give_up(self, instance: InstanceRecord) -> None:
        """Into `no_capacity`: never placed, never charged, gone from the list after a while."""
        self.become(instance, Status.NO_CAPACITY, error="NO_CAPACITY")
        self._mark_ended(instance, "no_capacity")
        self._account.stop_meter(instance, waive=True)
        self.capacity.release(instance)
        linger = self._core.draw_ms(self._core.config.durations.no_capacity_linger, "linger", instance.id)
        self._core.time.schedule(linger, EventKind.LEAVE_LIST, instance.id, instance.generation)

    def _mark_ended(self, instance: InstanceRecord, reason: str) -> None:
        if instance.ended_ms is None:
            instance.ended_ms, instance.end_reason = self._core.now_ms, reason
            self._core.state.counters.alive -= 1

    def _next_in(self, instance: InstanceRecord, delay_ms: int) -> None:
        self._core.time.schedule(delay_ms, EventKind.NEXT, instance.id, instance.generation)

    def _by_policy(self, instance: InstanceRecord, volume: VolumeRecord) -> None:
        if volume.policy == "keep_detached" or not instance.is_spot:
            self._volumes.detach(volume, instance.plan.detaching_ms)
        else:
            self._volumes.discard(volume, permanently=volume.policy == "delete_permanently", actor=None)

    def _by_wish(self, instance: InstanceRecord, volume: VolumeRecord) -> None:
        wish = instance.wish
        assert wish is not None  # noqa: S101 - the caller has looked
        is_os = volume.id == instance.os_volume_id
        listed = is_os if wish.volume_ids is None else volume.id in wish.volume_ids
        if not listed or (is_os and wish.leave_os_volume):
            self._volumes.detach(volume, instance.plan.detaching_ms)
        else:
            self._volumes.discard(volume, permanently=wish.permanently and wish.volume_ids is not None)
