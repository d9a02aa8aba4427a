"""How one request can be bent inside the world: the fates a fault may impose on what it creates or deletes."""

from dataclasses import dataclass
from enum import StrEnum


class Fate(StrEnum):
    """How an instance's life will go, decided when it is created."""

    RUN = "run"
    NO_CAPACITY = "no_capacity"
    ERROR = "error"
    INSTALLATION_FAILED = "installation_failed"
    STUCK_ORDERED = "stuck_ordered"
    STUCK_PROVISIONING = "stuck_provisioning"


class GuestFate(StrEnum):
    """What becomes of the machine's own software once it runs; invisible to the API."""

    JOINS = "joins"
    NEVER_JOINS = "never_joins"
    WRONG_PROVIDER_ID = "wrong_provider_id"


@dataclass(frozen=True, slots=True, kw_only=True)
class Steer:
    """How a fault bends one request inside the world; None or False leaves it alone.

    `fail_items` makes so many ids of an action fail with 500, the last ones first; `pretend` answers success and does
    nothing. `evict_after_s` counts from creation.
    """

    fate: Fate | None = None
    guest: GuestFate | None = None
    guest_delay_s: float | None = None
    evict_after_s: float | None = None
    failure: str = ""
    leave_os_volume: bool = False
    fail_items: int = 0
    sold_out: bool = False
    pretend: bool = False


NO_STEER = Steer()
