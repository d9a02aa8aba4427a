"""Block volumes: life with, without and after their instance."""

from collections.abc import Sequence

from app.simulator.account import Account
from app.simulator.core import PROJECT_USER, Core, to_ms
from app.simulator.errors import ApiError, forbidden, invalid, not_found
from app.simulator.records import EventKind, InstanceRecord, Status, Tag, VolumeRecord, VolumeStatus

_TYPES = frozenset({"NVMe", "NVMe_Shared"})


def check_volume_type(kind: object) -> str:
    """The type of a new volume; HDD is refused since 2026-09-21 (Verda OpenAPI changelog)."""
    if kind == "HDD":
        raise invalid("HDD volumes can no longer be created")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise invalid("type must be one of NVMe, NVMe_Shared")
    return kind


class Volumes:
    """The project's storage."""

    def __init__(self, core: Core, account: Account) -> None:
        self._core = core
        self._account = account

    def get(self, volume_id: str) -> VolumeRecord:
        """A volume by id, erased ones too. Raises: 404."""
        found = self._core.state.volumes.get(volume_id)
        if found is None:
            raise not_found("Volume not found")
        return found

    def create(
        self,
        *,
        name: str,
        size_gb: int,
        kind: str,
        location: str,
        is_os: bool = False,
        tags: Sequence[Tag] = (),
        policy: str = "keep_detached",
    ) -> VolumeRecord:
        """A new, detached, billed volume. No quota is checked here."""
        volume = VolumeRecord(
            id=self._core.new_id("volume"),
            name=name,
            size_gb=size_gb,
            type=kind,
            status=VolumeStatus.DETACHED,
            location=location,
            created_ms=self._core.now_ms,
            is_os=is_os,
            tags=list(tags),
            policy=policy,
            billed_from_ms=self._core.now_ms,
        )
        self._core.state.volumes[volume.id] = volume
        self._core.note(volume.id, "create", location, kind="volume")
        return volume

    def check_quota(self, more_gb: int) -> None:
        """Raises: 403 when so much more storage would exceed the quota, in which the trash counts too."""
        limit = self._core.state.quotas.storage_gb
        used = sum(volume.size_gb for volume in self._core.state.volumes.values() if not volume.gone)
        if limit is not None and used + more_gb > limit:
            raise forbidden("Storage quota exceeded")

    def attach(self, volume: VolumeRecord, instance: InstanceRecord) -> None:
        """Tie a volume to an instance, no questions asked."""
        volume.generation += 1
        volume.instance_id = volume.last_instance_id = instance.id
        volume.status = VolumeStatus.ATTACHED
        volume.ssh_key_ids = list(instance.ssh_key_ids) if volume.is_os else []
        if volume.id not in instance.volume_ids:
            instance.volume_ids.append(volume.id)
        self._core.note(volume.id, "attach:complete", volume.location, kind="volume", actor=None)

    def detach(self, volume: VolumeRecord, delay_ms: int) -> None:
        """Let go of a volume; it still carries its instance's id for a moment."""
        if volume.instance_id is None:
            return
        volume.status = VolumeStatus.DETACHING
        volume.generation += 1
        if delay_ms or volume.stuck:
            self._core.time.schedule(delay_ms, EventKind.DETACHED, volume.id, volume.generation)
        else:
            self.detached(volume)

    def detached(self, volume: VolumeRecord) -> None:
        """The volume is free now, unless it is stuck."""
        if volume.stuck or volume.gone:
            return
        volume.instance_id = None
        volume.status = VolumeStatus.DETACHED
        self._core.note(volume.id, "detach:complete", volume.location, kind="volume", actor=None)

    def discard(self, volume: VolumeRecord, *, permanently: bool, actor: str | None = PROJECT_USER) -> None:
        """Put a volume into the trash, where it is not billed, or erase it."""
        if volume.gone or (volume.deleted_ms is not None and not permanently):
            return
        self._account.charge_storage(volume)
        volume.billed_from_ms = None
        volume.instance_id = None
        volume.status = VolumeStatus.DELETED
        volume.generation += 1
        volume.deleted_ms = self._core.now_ms if volume.deleted_ms is None else volume.deleted_ms
        volume.gone = permanently
        self._core.note(
            volume.id,
            "delete:complete" if permanently else "trash:complete",
            volume.location,
            kind="volume",
            actor=actor,
        )
        if not permanently:
            hours = self._core.config.billing.trash_hours
            self._core.time.schedule(to_ms(hours * 3600), EventKind.PURGE, volume.id, volume.generation)

    def purge(self, volume: VolumeRecord) -> None:
        """The trash is emptied: the volume is gone for good."""
        volume.gone = True
        self._core.note(volume.id, "delete:complete", volume.location, kind="volume", actor=None)

    def act(self, volume_ids: Sequence[str], action: str, body: dict[str, object]) -> list[str]:
        """PUT /volumes: one action on several volumes, in order. Returns ids of clones.

        Raises: 400, 403 or 404; volumes before the failing one stay changed.
        """
        made: list[str] = []
        for volume_id in volume_ids:
            volume = self.get(volume_id)
            match action:
                case "attach":
                    self._attach_call(volume, body)
                case "detach":
                    self._require_free(volume)
                    self.detach(volume, 0)
                case "delete":
                    self.delete_call(volume, permanently=body.get("is_permanent") is True)
                case "rename":
                    volume.name = _text(body, "name")
                case "resize":
                    self._resize(volume, body)
                case "restore":
                    self._restore(volume)
                case "clone":
                    made.append(self._clone(volume, body).id)
                case _:
                    raise invalid(f"Invalid action: {action}")
        return made

    def delete_call(self, volume: VolumeRecord, *, permanently: bool) -> bool:
        """DELETE /volumes/{id} or its action twin; False when it was deleted already. Raises: 403 while in use."""
        if volume.gone or (volume.deleted_ms is not None and not permanently):
            return False
        self._require_free(volume)
        self._drop_from_instance(volume)
        self.discard(volume, permanently=permanently)
        return True

    def _require_free(self, volume: VolumeRecord) -> None:
        if volume.status == VolumeStatus.DETACHING:
            raise forbidden("Volume is being detached")
        instance = self._core.state.instances.get(volume.instance_id or "")
        if instance is not None and instance.status != Status.OFFLINE:
            raise forbidden("The instance the volume is attached to must be shut down first")

    def _drop_from_instance(self, volume: VolumeRecord) -> None:
        instance = self._core.state.instances.get(volume.instance_id or "")
        if instance is not None and volume.id in instance.volume_ids:
            instance.volume_ids.remove(volume.id)

    def _attach_call(self, volume: VolumeRecord, body: dict[str, object]) -> None:
        instance = self._core.state.instances.get(_text(body, "instance_id"))
        if instance is None or instance.hidden:
            raise ApiError(400, "invalid_request", "Invalid instance id")
        if volume.status != VolumeStatus.DETACHED:
            raise forbidden("Volume must be detached")
        if instance.status != Status.OFFLINE:
            raise forbidden("The instance must be shut down first")
        if instance.location != volume.location:
            raise invalid("Volume and instance must be in the same location")
        self.attach(volume, instance)

    def _resize(self, volume: VolumeRecord, body: dict[str, object]) -> None:
        size = body.get("size")
        if not isinstance(size, int) or size < volume.size_gb:
            raise invalid("size must be an integer not below the current size")
        self.check_quota(size - volume.size_gb)
        self._account.charge_storage(volume)
        volume.size_gb = size

    def _restore(self, volume: VolumeRecord) -> None:
        if volume.deleted_ms is None or volume.gone:
            raise invalid("Volume is not in the trash")
        skipped = self._core.now_ms - volume.deleted_ms
        volume.deleted_ms, volume.status = None, VolumeStatus.DETACHED
        volume.generation += 1
        volume.billed_from_ms = self._core.now_ms
        self._account.charge_storage(volume, back_ms=skipped)
        self._core.note(volume.id, "restore", volume.location, kind="volume")

    def _clone(self, volume: VolumeRecord, body: dict[str, object]) -> VolumeRecord:
        self._require_free(volume)
        self.check_quota(volume.size_gb)
        name = body.get("name")
        clone = self.create(
            name=name if isinstance(name, str) else f"{volume.name}-clone",
            size_gb=volume.size_gb,
            kind="NVMe" if volume.type == "HDD" else volume.type,
            location=volume.location,
            is_os=volume.is_os,
        )
        clone.status = VolumeStatus.CLONING
        delay = self._core.draw_ms(self._core.config.durations.cloning, "cloning", clone.id)
        self._core.time.schedule(delay, EventKind.DETACHED, clone.id, clone.generation)
        return clone


def _text(body: dict[str, object], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise invalid(f"{key} must be a string")
    return value
