"""The project's instances as the API sees them: create, list, get, act, tag."""

from collections.abc import Sequence
from dataclasses import dataclass
from http import HTTPStatus

from app.simulator.account import Account
from app.simulator.admission import Admission, Admitted
from app.simulator.core import PROJECT_USER, Core, to_ms
from app.simulator.errors import ApiError, conflict, forbidden, invalid, no_capacity, not_found
from app.simulator.library import Library
from app.simulator.lifecycle import Lifecycle
from app.simulator.orders import NewVolume, read_tag
from app.simulator.records import (
    DeleteWish,
    InstanceRecord,
    Plan,
    Status,
    Tag,
    VolumeRecord,
)
from app.simulator.steer import NO_STEER, Fate, GuestFate, Steer
from app.simulator.volumes import Volumes

_STARTS = frozenset({"start", "boot"})
_STOPS = frozenset({"shutdown", "force_shutdown"})
_DELETES = frozenset({"delete", "discontinue", "delete_stuck", "hibernate"})
_ACTIONS = _STARTS | _STOPS | _DELETES
_STUCK = frozenset({Fate.STUCK_ORDERED, Fate.STUCK_PROVISIONING})
_MAX_TAGS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionResult:
    """What became of one id of an action; neither error nor already means done."""

    instance_id: str
    already: bool = False
    error: ApiError | None = None


class Instances:
    """Create, find and act on instances."""

    def __init__(
        self, core: Core, admission: Admission, lifecycle: Lifecycle, volumes: Volumes, account: Account
    ) -> None:
        self._core = core
        self._admission = admission
        self._lifecycle = lifecycle
        self._volumes = volumes
        self._account = account

    def create(
        self, body: object, scripts: Library, keys: Library, steer: Steer = NO_STEER, *, foreign: bool = False
    ) -> InstanceRecord:
        """POST /instances. Raises: 400, 402, 403, 503, and then nothing was created."""
        admitted = self._admission.admit(body, scripts, keys)
        order, item = admitted.order, admitted.item
        place = None if steer.sold_out else self._lifecycle.capacity.place(item, order.location, spot=order.is_spot)
        key = self._stream_key(order.hostname)
        if place is None and not self._queued(key, steer):
            raise no_capacity()
        new_first = self._core.config.durations.new.seconds != 0
        instance = InstanceRecord(
            id=self._core.new_id("instance"),
            hostname=order.hostname,
            description=order.description,
            instance_type=item.name,
            image=admitted.image,
            location=order.location,
            is_spot=order.is_spot,
            created_ms=self._core.now_ms,
            plan=self._plan(key, steer, placed=place is not None),
            meter=self._account.new_meter(item.price_micro(spot=order.is_spot)),
            host=place,
            status=Status.NEW if new_first else Status.ORDERED,
            ssh_key_ids=list(order.ssh_key_ids),
            startup_script_id=order.startup_script_id,
            script=scripts.get(order.startup_script_id).text if order.startup_script_id else "",
            foreign=foreign,
            tags=self._tags(order.tags),
            os_volume_name=self._core.chance.volume_name(key),
            os_volume_gb=50,
        )
        self._core.state.instances[instance.id] = instance
        self._core.note(instance.id, "create", instance.location)
        self._storage(instance, admitted)
        self._lifecycle.begin(instance)
        counters = self._core.state.counters
        counters.creates_committed += 0 if foreign else 1
        counters.alive += 1
        counters.peak_alive = max(counters.peak_alive, counters.alive)
        return instance

    def get(self, instance_id: str) -> InstanceRecord:
        """GET /instances/{id}; discontinued ones are found too. Raises: 404."""
        found = self._core.state.instances.get(instance_id)
        if found is None or found.hidden or self._forgotten(found):
            raise not_found("Invalid instance id")
        return found

    def listing(self, status: str | None = None, tags: Sequence[str] = ()) -> list[InstanceRecord]:
        """GET /instances: everything not discontinued, or everything of one status."""
        wanted = [pair.partition("=") for pair in tags]
        return [
            item
            for item in self._core.state.instances.values()
            if (item.status == status if status else item.status != Status.DISCONTINUED)
            and not item.hidden
            and not (status and self._forgotten(item))
            and all(_carries(item, key, value, exact=bool(sep)) for key, sep, value in wanted)
        ]

    def act(self, ids: Sequence[str], action: str, wish: DeleteWish, steer: Steer = NO_STEER) -> list[ActionResult]:
        """PUT /instances: one action on several instances, each on its own. Raises: 400 for an unknown action."""
        if action not in _ACTIONS:
            raise invalid(f"Invalid action: {action}")
        if not ids:
            raise invalid("id must not be empty")
        results = []
        for number, instance_id in enumerate(ids):
            if number >= len(ids) - steer.fail_items:
                error = ApiError(500, "server_error", "Internal server error")
                results.append(ActionResult(instance_id=instance_id, error=error))
                continue
            if steer.pretend:
                self.get(instance_id)
                results.append(ActionResult(instance_id=instance_id))
                continue
            try:
                already = not self._act_on(instance_id, action, wish)
                results.append(ActionResult(instance_id=instance_id, already=already))
            except ApiError as error:
                results.append(ActionResult(instance_id=instance_id, error=error))
        return results

    def tag(self, instance: InstanceRecord, body: object) -> list[Tag]:
        """POST /instances/{id}/tags: one tag or several. Raises: 400, 403 beyond ten, 409 when already linked."""
        added = self._tags(tuple(read_tag(item) for item in (body if isinstance(body, list) else [body])))
        have = {tag.id for tag in instance.tags}
        if any(tag.id in have for tag in added):
            raise conflict("The matching tag is already linked to the instance")
        if len(have) + len(added) > _MAX_TAGS:
            raise forbidden("A resource can have at most 10 tags")
        instance.tags.extend(added)
        return added

    def _act_on(self, instance_id: str, action: str, wish: DeleteWish) -> bool:
        """False when the instance is already as wanted."""
        if action in _DELETES:
            return self._delete(instance_id, action, wish)
        instance = self.get(instance_id)
        if action in _STARTS:
            if instance.status == Status.RUNNING:
                return False
            if instance.status != Status.OFFLINE:
                raise forbidden(f"Can't start a {instance.status} instance")
            self._lifecycle.boot(instance)
            return True
        if instance.status == Status.OFFLINE:
            return False
        rescued = action == "force_shutdown" and self._core.config.behaviour.stuck_rescue
        if rescued and instance.plan.fate in _STUCK and instance.status == Status.PROVISIONING:
            self._lifecycle.become(instance, Status.OFFLINE, actor=PROJECT_USER)
            return True
        if instance.status != Status.RUNNING:
            raise forbidden(f"Can't shutdown a {instance.status} instance")
        self._lifecycle.shutdown(instance)
        return True

    def _delete(self, instance_id: str, action: str, wish: DeleteWish) -> bool:
        counters, rules = self._core.state.counters, self._core.config.behaviour
        counters.deletes_requested += 1
        if instance_id not in self._core.state.instances:
            counters.deletes_of_never_requested += 1
        instance = self.get(instance_id)
        counters.foreign_deletes += int(instance.foreign)
        instance.delete_requests += 1
        if instance.status in {Status.DELETING, Status.DISCONTINUED}:
            counters.deletes_repeated += 1
            if int(rules.repeat_delete) == HTTPStatus.FORBIDDEN:
                raise forbidden(f"Can't discontinue a {instance.status} instance")
            return False
        rescued = action == "delete_stuck" and rules.stuck_rescue and instance.plan.fate in _STUCK
        wrong_state = instance.status != Status.OFFLINE if action == "hibernate" else action == "delete_stuck"
        if not rescued and (instance.status not in rules.allow_delete_in or wrong_state):
            counters.deletes_refused += 1
            verb = "hibernate" if action == "hibernate" else "discontinue"
            raise forbidden(f"Can't {verb} a {instance.status} instance")
        counters.deletes_committed += 1
        instance.wish = DeleteWish(
            volume_ids=[] if action == "hibernate" else wish.volume_ids,
            permanently=wish.permanently,
            actor=wish.actor,
            leave_os_volume=wish.leave_os_volume,
        )
        self._lifecycle.delete(instance, actor=wish.actor)
        return True

    def _storage(self, instance: InstanceRecord, admitted: Admitted) -> None:
        order = admitted.order
        if order.os_volume is not None:
            instance.os_volume_name, instance.os_volume_gb = order.os_volume.name, order.os_volume.size_gb
            instance.os_volume_policy = order.os_volume.policy or "keep_detached"
            instance.os_volume_tags = self._tags(order.os_volume.tags)
        if admitted.os_volume is not None:
            instance.os_volume_id = admitted.os_volume.id
            self._volumes.attach(admitted.os_volume, instance)
        for wanted in order.volumes:
            self._volumes.attach(self._new_volume(wanted, order.location), instance)
        for volume in admitted.existing:
            self._volumes.attach(volume, instance)

    def _new_volume(self, wanted: NewVolume, location: str) -> VolumeRecord:
        return self._volumes.create(
            name=wanted.name,
            size_gb=wanted.size_gb,
            kind=str(wanted.kind),
            location=location,
            tags=self._tags(wanted.tags),
            policy=wanted.policy or "keep_detached",
        )

    def _tags(self, pairs: Sequence[tuple[str, str]]) -> list[Tag]:
        return [Tag(id=self._core.chance.tag_id(key, value), key=key, value=value) for key, value in pairs]

    def _forgotten(self, item: InstanceRecord) -> bool:
        ttl = self._core.config.behaviour.history_ttl_s
        ended = item.ended_ms
        return ttl is not None and ended is not None and self._core.now_ms > ended + to_ms(ttl)

    def _stream_key(self, hostname: str) -> str:
        """What keys an instance's draws: its hostname (and how often that was used), or its number."""
        if self._core.config.behaviour.stream_key == "ordinal":
            return f"#{self._core.ordinal('stream')}"
        return f"{hostname}#{self._core.ordinal(f'hostname:{hostname}')}"

    def _queued(self, key: str, steer: Steer) -> bool:
        chances = self._core.config.chances
        return steer.fate is Fate.NO_CAPACITY or self._core.chance.happens(
            "async-no-capacity", key, chances.async_no_capacity
        )

    def _plan(self, key: str, steer: Steer, *, placed: bool) -> Plan:
        chance, chances, times = self._core.chance, self._core.config.chances, self._core.config.durations
        fate = steer.fate or self._fate(key)
        if not placed:
            fate = Fate.NO_CAPACITY
        provisioning = self._core.draw_ms(times.provisioning, "provisioning", key)
        evict_ms: int | None = None
        if steer.evict_after_s is not None:
            evict_ms = to_ms(steer.evict_after_s)
        elif chances.evictions_per_hour:
            evict_ms = to_ms(chance.stream("evict", key).expovariate(chances.evictions_per_hour / 3600))
        if fate in {Fate.ERROR, Fate.INSTALLATION_FAILED}:
            provisioning = round(provisioning * chance.stream("failure", key).uniform(0.5, 1.0))
        never = chance.happens("never-joins", key, chances.never_joins)
        ordered = times.no_capacity if fate is Fate.NO_CAPACITY else times.ordering
        validates = chance.happens("validating", key, chances.validating)
        return Plan(
            fate=fate,
            guest=steer.guest or (GuestFate.NEVER_JOINS if never else GuestFate.JOINS),
            ordered_ms=self._core.draw_ms(ordered, "ordering", key),
            provisioning_ms=provisioning,
            address_ms=round(provisioning * 0.6),
            validating_ms=self._core.draw_ms(times.validating, "validation", key) if validates else -1,
            guest_ms=self._core.draw_ms(times.guest, "guest", key) + to_ms(steer.guest_delay_s or 0),
            deleting_ms=self._core.draw_ms(times.deleting, "deleting", key),
            detaching_ms=self._core.draw_ms(times.detaching, "detaching", key),
            evict_ms=evict_ms,
            failure=steer.failure,
        )

    def _fate(self, key: str) -> Fate:
        chances = self._core.config.chances
        drawn = self._core.chance.stream("fate", key).random()
        for probability, fate in (
            (chances.stuck, Fate.STUCK_PROVISIONING),
            (chances.error, Fate.ERROR),
            (chances.installation_failed, Fate.INSTALLATION_FAILED),
        ):
            if drawn < probability:
                return fate
            drawn -= probability
        return Fate.RUN


def _carries(item: InstanceRecord, key: str, value: str, *, exact: bool) -> bool:
    return any(tag.key == key.lower() and (tag.value == value or not exact) for tag in item.tags)
