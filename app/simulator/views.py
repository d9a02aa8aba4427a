"""How records look on the wire: the JSON objects of Verda's OpenAPI document."""

from app.simulator.catalogue import Catalogue, hardware, image_name, resolve_image
from app.simulator.core import PROJECT, PROJECT_USER, Core
from app.simulator.records import InstanceRecord, NamedText, Status, Tag, VolumeRecord
from app.simulator.state import JournalRow

_EARLY = frozenset({Status.NEW, Status.ORDERED, Status.NO_CAPACITY})


class Views:
    """Renders records as the API shows them at this moment."""

    def __init__(self, core: Core, catalogue: Catalogue) -> None:
        self._core = core
        self._catalogue = catalogue

    def instance(self, item: InstanceRecord, status: str | None = None) -> dict[str, object]:
        """One instance object; `status` overrides the present one for views of the past.

        While `ordered` it has no image, no address and no OS volume (seen by users of SDK 1.x).
        """
        status = status or item.status
        early = status in _EARLY
        row = self._catalogue.row(item.instance_type)
        document: dict[str, object] = {
            "id": item.id,
            "ip": None if early else item.ip,
            "private_ip": None,
            "status": status,
            "created_at": self._core.shown(item.created_ms),
            "created_by_user_id": PROJECT_USER,
            "instance_type": item.instance_type,
            "hostname": item.hostname,
            "description": item.description,
            "location": item.location,
            "is_spot": item.is_spot,
            "contract": "SPOT" if item.is_spot else "PAY_AS_YOU_GO",
            "pricing": "FIXED_PRICE",
            "price_per_hour": item.meter.price_micro / 1_000_000,
            "image": item.image,
            "os_name": image_name(item.image) if resolve_image(item.image) else item.os_volume_name,
            "os_volume_id": None if early else item.os_volume_id,
            "volume_ids": [] if early else list(item.volume_ids),
            "ssh_key_ids": list(item.ssh_key_ids),
            "startup_script_id": item.startup_script_id,
            **hardware(row),
            "storage": {"description": f"{item.os_volume_gb}GB NVME"},
            "jupyter_token": None,
            "tags": tag_documents(item.tags),
        }
        if early:
            del document["image"]
        return document

    def volume(self, item: VolumeRecord) -> dict[str, object]:
        """One volume object, in the trash or not. Sizes in GB, prices in dollars."""
        per_month = item.size_gb * self._core.config.billing.storage_per_gb_month
        attached = self._core.state.instances.get(item.instance_id or "")
        shared = item.type == "NVMe_Shared"
        path = f"nfs.{item.location.lower()}.datacrunch.io:volume-{item.id[:8]}"
        document: dict[str, object] = {
            "id": item.id,
            "instance_id": item.instance_id,
            "instances": [_attachment(attached)] if attached else [],
            "name": item.name,
            "created_at": self._core.shown(item.created_ms),
            "created_by_user_id": PROJECT_USER,
            "status": item.status,
            "size": item.size_gb,
            "is_os_volume": item.is_os,
            "target": ("vda" if item.is_os else "vdb") if attached else None,
            "type": item.type,
            "location": item.location,
            "ssh_key_ids": list(item.ssh_key_ids),
            "pseudo_path": f"volume-{item.id[:8]}" if shared else None,
            "create_directory_command": "mkdir -p /mnt/volume" if shared else None,
            "mount_command": f"mount -t nfs -o nconnect=16 {path} /mnt/volume" if shared else None,
            "filesystem_to_fstab_command": f"echo '{path} /mnt/volume nfs defaults 0 0'" if shared else None,
            "contract": "PAY_AS_YOU_GO",
            "base_hourly_cost": per_month / 730,
            "monthly_price": per_month,
            "currency": "usd",
            "long_term": None,
            "tags": tag_documents(item.tags),
        }
        if item.deleted_ms is not None:
            document["deleted_at"] = self._core.shown(item.deleted_ms)
            document["is_permanently_deleted"] = item.gone
        return document

    def script(self, item: NamedText) -> dict[str, object]:
        """One startup script."""
        created = self._core.shown(item.created_ms)
        return {"id": item.id, "name": item.name, "script": item.text, "created_at": created}

    def key(self, item: NamedText) -> dict[str, object]:
        """One SSH key."""
        digest = self._core.chance.uuid("fingerprint", item.id).replace("-", "")
        fingerprint = ":".join(digest[at : at + 2] for at in range(0, 32, 2))
        return {
            "id": item.id,
            "name": item.name,
            "key": item.text,
            "fingerprint": fingerprint,
            "created_by_user_id": PROJECT_USER,
        }

    def journal(self, row: JournalRow) -> dict[str, object]:
        """One journal entry; only what the platform did itself has no actor."""
        document: dict[str, object] = {
            "id": row.id,
            "object_id": row.object_id,
            "object_type": row.object_type,
            "action_code": row.action,
            "actor_id": row.actor,
            "actor_email": None,
            "project_id": PROJECT,
            "timestamp": self._core.shown(row.at_ms),
            "location_code": row.location,
            "properties": {"delete_reason": row.reason} if row.reason else {},
        }
        if row.actor is not None:
            document["request_origin"] = "public-api-v1"
        if row.error:
            document["error_message"] = row.error
        return document


def tag_documents(tags: list[Tag]) -> list[dict[str, object]]:
    """Tags as the API shows them; a freeform tag has an empty value."""
    return [{"id": tag.id, "key": tag.key, "value": tag.value} for tag in tags]


def _attachment(item: InstanceRecord) -> dict[str, object]:
    return {
        "id": item.id,
        "ip": item.ip,
        "instance_type": item.instance_type,
        "status": item.status,
        "os_volume_id": item.os_volume_id,
        "hostname": item.hostname,
    }
