"""The simulated cloud's whole memory in one tree: stock, money, logs, tokens, faults, and the records of things."""

from dataclasses import dataclass, field

from app.simulator.fault_model import FaultRecord
from app.simulator.records import Due, InstanceRecord, NamedText, PoolRecord, VolumeRecord


@dataclass(slots=True, kw_only=True)
class Market:
    """Moving prices and the changing list of types."""

    factor: dict[str, float] = field(default_factory=dict)
    spot_ratio: dict[str, float] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    renamed: dict[str, str] = field(default_factory=dict)
    steps: int = 0


@dataclass(slots=True, kw_only=True)
class LedgerRow:
    """One movement on the prepaid account; positive amounts are charges."""

    at_ms: int
    kind: str
    subject: str
    amount_micro: int


@dataclass(slots=True, kw_only=True)
class AccountRecord:
    """The project's prepaid balance and what moved it; `rows` keeps the newest movements, `totals` all of them."""

    balance_micro: int = 0
    totals: dict[str, int] = field(default_factory=dict)
    rows: list[LedgerRow] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class JournalRow:
    """One entry of the API's activity journal; `actor` None is the platform itself. `number` counts from 1."""

    number: int
    id: str
    at_ms: int
    object_id: str
    object_type: str
    action: str
    actor: str | None
    location: str
    reason: str = ""
    error: str = ""


@dataclass(slots=True, kw_only=True)
class TokenRecord:
    """One access or refresh token, by the clock the configuration names."""

    expires_ms: int
    client_id: str
    revoked: bool = False


@dataclass(slots=True, kw_only=True)
class Counters:
    """What `/_sim/truth` counts beyond what the records show."""

    creates_requested: int = 0
    creates_committed: int = 0
    creates_answered_ok: int = 0
    creates_response_lost: int = 0
    deletes_requested: int = 0
    deletes_committed: int = 0
    deletes_repeated: int = 0
    deletes_refused: int = 0
    deletes_of_never_requested: int = 0
    foreign_deletes: int = 0
    evictions: int = 0
    alive: int = 0
    peak_alive: int = 0
    token_calls: int = 0
    rate_limited: int = 0
    posts_after_unknown_without_list: int = 0
    requests_by_route: dict[str, int] = field(default_factory=dict)
    unknown_groups: list[str] = field(default_factory=list)


@dataclass(slots=True, kw_only=True)
class Quotas:
    """Limits of the project; None is unlimited."""

    gpus: int | None = None
    instances: int | None = None
    storage_gb: int | None = None
    scripts: int = 100


@dataclass(slots=True, kw_only=True)
class WorldState:
    """Everything, in one tree. `now_ms` is the instant the world has been worked out to."""

    seed: int
    now_ms: int
    clock_mode: str
    clock_factor: float
    skew_ms: int = 0
    instances: dict[str, InstanceRecord] = field(default_factory=dict)
    volumes: dict[str, VolumeRecord] = field(default_factory=dict)
    scripts: dict[str, NamedText] = field(default_factory=dict)
    keys: dict[str, NamedText] = field(default_factory=dict)
    pools: dict[str, PoolRecord] = field(default_factory=dict)
    market: Market = field(default_factory=Market)
    account: AccountRecord = field(default_factory=AccountRecord)
    quotas: Quotas = field(default_factory=Quotas)
    journal: list[JournalRow] = field(default_factory=list)
    tokens: dict[str, TokenRecord] = field(default_factory=dict)
    refresh_tokens: dict[str, TokenRecord] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    due: list[Due] = field(default_factory=list)
    ordinals: dict[str, int] = field(default_factory=dict)
    faults: dict[str, FaultRecord] = field(default_factory=dict)
    availability: dict[str, tuple[int, list[str]]] = field(default_factory=dict)
