"""Whether a create is accepted, checked in the order in which the API says no."""

from dataclasses import dataclass

from app.simulator.account import Account
from app.simulator.capacity import Capacity
from app.simulator.catalogue import Catalogue, TypeOnSale, resolve_image
from app.simulator.catalogue_data import LOCATIONS
from app.simulator.core import Core
from app.simulator.errors import forbidden, invalid, no_funds
from app.simulator.library import Library
from app.simulator.orders import DeployOrder, check_terms, read_head, read_order
from app.simulator.records import Status, VolumeRecord, VolumeStatus
from app.simulator.volumes import Volumes, check_volume_type

ENDED = frozenset({Status.DISCONTINUED, Status.NO_CAPACITY})
"""Statuses in which an instance neither exists nor costs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A create that passed every check but the last one, capacity."""

    order: DeployOrder
    item: TypeOnSale
    image: str
    os_volume: VolumeRecord | None
    existing: tuple[VolumeRecord, ...]


class Admission:
    """The checks before capacity: form, place, type, image, keys, volumes, terms, quota, balance."""

    def __init__(
        self, core: Core, catalogue: Catalogue, capacity: Capacity, volumes: Volumes, account: Account
    ) -> None:
        self._core = core
        self._catalogue = catalogue
        self._capacity = capacity
        self._volumes = volumes
        self._account = account

    def admit(self, body: object, scripts: Library, keys: Library) -> Admitted:
        """Check a body of POST /instances. Raises: 400, 402 or 403, whichever the API would say first."""
        mapping, required = read_head(body)
        item = self._type(required["location_code"], required["instance_type"])
        image, os_volume = self._image(required["image"], item, required["location_code"])
        order = read_order(mapping, required)
        self._texts(order, scripts, keys)
        existing = tuple(self._existing(volume_id, order.location) for volume_id in order.existing_volumes)
        for volume in order.volumes:
            check_volume_type(volume.kind)
        check_terms(order)
        self._quota(order, item)
        if not self._account.covers(item.price_micro(spot=order.is_spot)):
            raise no_funds()
        return Admitted(order=order, item=item, image=image, os_volume=os_volume, existing=existing)

    def _type(self, location: str, name: str) -> TypeOnSale:
        if location not in {code for code, _, _ in LOCATIONS}:
            raise invalid("Invalid location code")
        item = self._catalogue.find(name)
        if item is None:
            raise invalid("Invalid instance type")
        if self._capacity.pool(item, location) is None:
            raise invalid("Instance type is not available in this location")
        return item

    def _image(self, image: str, item: TypeOnSale, location: str) -> tuple[str, VolumeRecord | None]:
        known = resolve_image(image)
        if known is None:
            volume = self._core.state.volumes.get(image)
            if volume is None or not volume.is_os:
                raise invalid("Invalid image")
            self._require_usable(volume, location)
            return image, volume
        if item.supported_os and known not in item.supported_os:
            raise invalid("Operating system is not valid for this instance type")
        return known, None

    def _texts(self, order: DeployOrder, scripts: Library, keys: Library) -> None:
        known = {key.id for key in keys.newest_first()} if order.ssh_key_ids else set()
        if any(key not in known for key in order.ssh_key_ids):
            raise invalid("Invalid ssh-key ID")
        script = order.startup_script_id
        if script is not None and script not in {text.id for text in scripts.newest_first()}:
            raise invalid("Invalid startup script ID")

    def _existing(self, volume_id: str, location: str) -> VolumeRecord:
        volume = self._core.state.volumes.get(volume_id)
        if volume is None:
            raise invalid("Invalid volume ID")
        self._require_usable(volume, location)
        return volume

    @staticmethod
    def _require_usable(volume: VolumeRecord, location: str) -> None:
        if volume.location != location:
            raise invalid("Volume and instance must be in the same location")
        if volume.status != VolumeStatus.DETACHED:
            raise invalid("Volume must be detached")

    def _quota(self, order: DeployOrder, item: TypeOnSale) -> None:
        quotas, alive = self._core.state.quotas, 0
        gpus = item.row.gpus
        limited = quotas.instances is not None or quotas.gpus is not None
        for instance in self._core.state.instances.values() if limited else ():
            if instance.status not in ENDED:
                alive += 1
                gpus += self._catalogue.row(instance.instance_type).gpus
        if quotas.instances is not None and alive >= quotas.instances:
            raise forbidden("Instance quota exceeded")
        if quotas.gpus is not None and gpus > quotas.gpus:
            raise forbidden("GPU quota exceeded")
        os_gb = order.os_volume.size_gb if order.os_volume else 0
        self._volumes.check_quota(os_gb + sum(volume.size_gb for volume in order.volumes))
