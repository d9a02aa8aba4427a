"""What the cloud shows of a machine or a volume, stripped of SDK and HTTP."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from app.domain.offering import Contract


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """One instance as the cloud's API shows it. `status` is the API's own word, an open set."""

    instance_id: str
    hostname: str
    status: str
    description: str = ""
    instance_type: str | None = None
    image: str | None = None
    location: str | None = None
    contract: Contract | None = None
    price_per_hour: Decimal | None = None
    created_at: datetime | None = None
    ip: str | None = None
    os_volume_id: str | None = None
    volume_ids: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Volume:
    """One block volume as the cloud's API shows it. Sizes in GB as the API counts them."""

    volume_id: str
    name: str
    status: str
    size_gb: int
    is_os_volume: bool
    instance_id: str | None
    location: str | None = None
    created_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OsVolume:
    """The system disk to order with a machine. `permanent` False sends it to the trash for 96 hours instead."""

    name: str
    size_gb: int
    permanent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """Everything a create call sends. The hostname is unique, minted by us: our key to find the machine again."""

    hostname: str
    instance_type: str
    image: str
    location: str
    contract: Contract
    description: str
    tags: tuple[tuple[str, str], ...] = ()
    ssh_key_ids: tuple[str, ...] = ()
    startup_script_id: str | None = None
    os_volume: OsVolume | None = None
