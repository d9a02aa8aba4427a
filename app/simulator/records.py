"""What the simulated cloud remembers: plain data, nothing else, so a world can be saved, forked and compared.

All times are integer milliseconds of simulated time since the Unix epoch, all money integer millionths of a dollar.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from app.simulator.steer import Fate, GuestFate


class Status(StrEnum):
    """Instance statuses the simulator itself produces; control calls may set others, for the set is open."""

    NEW = "new"
    ORDERED = "ordered"
    PROVISIONING = "provisioning"
    VALIDATING = "validating"
    RUNNING = "running"
    OFFLINE = "offline"
    DELETING = "deleting"
    DISCONTINUED = "discontinued"
    ERROR = "error"
    INSTALLATION_FAILED = "installation_failed"
    NO_CAPACITY = "no_capacity"


class VolumeStatus(StrEnum):
    """Volume statuses the simulator produces."""

    ATTACHED = "attached"
    DETACHED = "detached"
    DETACHING = "detaching"
    CLONING = "cloning"
    DELETED = "deleted"


class EventKind(StrEnum):
    """What can be due on the time line."""

    NEXT = "next"
    ADDRESS = "address"
    GUEST_READY = "guest_ready"
    EVICT = "evict"
    LEAVE_LIST = "leave_list"
    RETURN = "return"
    SLICE = "slice"
    STORAGE_BILL = "storage_bill"
    DETACHED = "detached"
    PURGE = "purge"
    PRICE_STEP = "price_step"
    CAPACITY_STEP = "capacity_step"
    CAPACITY_SET = "capacity_set"


class Due(NamedTuple):
    """One event on the time line; tuple order is the order of execution."""

    at_ms: int
    sequence: int
    kind: EventKind
    subject: str
    generation: int


@dataclass(slots=True, kw_only=True)
class Tag:
    """A key with an optional value."""

    id: str
    key: str
    value: str


@dataclass(slots=True, kw_only=True)
class Plan:
    """The draws of one instance's life in milliseconds, made at creation so that later calls cannot shift them."""

    fate: Fate
    guest: GuestFate
    ordered_ms: int
    provisioning_ms: int
    address_ms: int
    validating_ms: int
    guest_ms: int
    deleting_ms: int
    detaching_ms: int
    evict_ms: int | None = None
    failure: str = ""


@dataclass(slots=True, kw_only=True)
class Meter:
    """Prepaid billing of one instance; open while `stopped_ms` is None."""

    price_micro: int
    started_ms: int
    stopped_ms: int | None = None
    segment_ms: int
    slices: int = 0
    bought: int = 0
    segment_paid_micro: int = 0
    paid_micro: int = 0
    refunded_micro: int = 0


@dataclass(slots=True, kw_only=True)
class DeleteWish:
    """What a delete call asked for the volumes; `volume_ids` None is the API's own choice."""

    volume_ids: list[str] | None
    permanently: bool
    actor: str
    leave_os_volume: bool = False


@dataclass(slots=True, kw_only=True)
class InstanceRecord:
    """One instance, from the accepted POST for ever."""

    id: str
    hostname: str
    description: str
    instance_type: str
    image: str
    location: str
    is_spot: bool
    created_ms: int
    plan: Plan
    meter: Meter
    os_volume_name: str
    os_volume_gb: int
    status: str = Status.ORDERED
    history: list[tuple[int, str]] = field(default_factory=list)
    generation: int = 0
    ip: str | None = None
    ssh_key_ids: list[str] = field(default_factory=list)
    startup_script_id: str | None = None
    script: str = ""
    os_volume_policy: str = "keep_detached"
    os_volume_id: str | None = None
    os_volume_tags: list[Tag] = field(default_factory=list)
    volume_ids: list[str] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    host: int | None = None
    going: str = ""
    wish: DeleteWish | None = None
    first_running_ms: int | None = None
    guest_ready_ms: int | None = None
    useful_ms: int = 0
    ended_ms: int | None = None
    end_reason: str = ""
    hidden: bool = False
    foreign: bool = False
    delete_requests: int = 0


@dataclass(slots=True, kw_only=True)
class VolumeRecord:
    """One block volume; `deleted_ms` is set while it is in the trash and after."""

    id: str
    name: str
    size_gb: int
    type: str
    status: str
    location: str
    created_ms: int
    is_os: bool
    policy: str = "keep_detached"
    instance_id: str | None = None
    last_instance_id: str | None = None
    ssh_key_ids: list[str] = field(default_factory=list)
    tags: list[Tag] = field(default_factory=list)
    deleted_ms: int | None = None
    gone: bool = False
    stuck: bool = False
    generation: int = 0
    billed_from_ms: int | None = None
    gb_ms: int = 0
    charged_micro: int = 0


@dataclass(slots=True, kw_only=True)
class NamedText:
    """A startup script or an SSH key."""

    id: str
    name: str
    text: str
    created_ms: int


@dataclass(slots=True, kw_only=True)
class HostRecord:
    """One physical machine of a pool, counted in GPUs (CPU pools: vCPUs)."""

    size: int
    on_demand: int = 0
    spot: int = 0
    strangers_on_demand: int = 0
    strangers_spot: int = 0

    @property
    def free(self) -> int:
        """Units nobody uses."""
        return self.size - self.on_demand - self.spot - self.strangers_on_demand - self.strangers_spot


@dataclass(slots=True, kw_only=True)
class PoolRecord:
    """All hosts of one hardware family at one location."""

    family: str
    location: str
    host_size: int
    hosts: list[HostRecord]
    spot_reserve: int = 0
    closed: list[str] = field(default_factory=list)
    steps: int = 0
