"""Configuration of the simulated cloud: every duration, probability, limit and price rule, with sane presets."""

from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import Field, SecretStr, ValidationError, model_validator

from app.errors import ConfigurationError, Problem
from app.simulator.presets import PRESETS
from app.simulator.presets_data import CALM, DURATIONS, PROFILES, default_pools
from app.simulator.span import Seconds, Section, Span

Probability = Annotated[float, Field(ge=0, le=1)]


class ClockMode(StrEnum):
    """How simulated time moves."""

    REAL = "real"
    SCALED = "scaled"
    MANUAL = "manual"


class Clock(Section):
    """Simulated time."""

    mode: ClockMode = Field(default=ClockMode.REAL, description="real (1:1), scaled, or manual (only when told)")
    factor: float = Field(default=1.0, gt=0, description="simulated seconds per real second when scaled")
    epoch: datetime | None = Field(
        default=None,
        description="where simulated time begins; default: now, or 2026-01-05T00:00:00Z in manual mode",
    )


def _filled(data: object, selector: str, default: str, presets: Mapping[str, Mapping[str, object]]) -> object:
    if not isinstance(data, dict):
        return data
    chosen = data.get(selector, default)
    return {**presets.get(str(chosen), {}), **data}


class Durations(Section):
    """How long things take, in seconds of simulated time. `preset` fills in what is not given."""

    preset: Literal["realistic", "fast", "demo"] = Field(
        default="realistic",
        description="realistic: minutes, as users report; fast: milliseconds, for tests; demo: about 20 s to running",
    )
    new: Span = Field(description="time in `new` before `ordered`; 0 skips the status")
    ordering: Span = Field(description="`ordered` → `provisioning`")
    provisioning: Span = Field(description="`provisioning` → `validating` or `running`")
    validating: Span = Field(description="`validating` → `running`, when that status is passed through at all")
    guest: Span = Field(description="`running` → the startup script is done and the kubelet would register")
    shutting_down: Span = Field(description="`running` → `offline`")
    booting: Span = Field(description="`offline` → `running`")
    deleting: Span = Field(description="`deleting` → `discontinued`")
    no_capacity: Span = Field(description="`ordered` → `no_capacity` for orders accepted without stock")
    no_capacity_linger: Span = Field(description="how long a `no_capacity` instance stays in the list")
    detaching: Span = Field(description="how long a kept volume still carries its deleted instance")
    cloning: Span = Field(description="how long a cloned volume is `cloning`")

    @model_validator(mode="before")
    @classmethod
    def _from_preset(cls, data: object) -> object:
        return _filled(data, "preset", "realistic", DURATIONS)


class Chances(Section):
    """Trouble that happens by itself. The profile fills in what is not given; `calm` is all zero."""

    validating: Probability = Field(description="share of instances that pass through `validating`")
    stuck: Probability = Field(description="share of instances that never leave `provisioning`")
    error: Probability = Field(description="share that ends in `error`")
    installation_failed: Probability = Field(description="share that ends in `installation_failed`")
    async_no_capacity: Probability = Field(description="orders without stock answered 202 instead of 503")
    evictions_per_hour: float = Field(ge=0, description="rate at which each spot instance is evicted")
    never_joins: Probability = Field(description="share of machines whose startup script never succeeds")
    requests: dict[str, Probability] = Field(description="named fault presets and their probability per request")

    @model_validator(mode="after")
    def _known_presets(self) -> Self:
        unknown = sorted(self.requests.keys() - PRESETS.keys())
        if unknown:
            raise ValueError(f"unknown presets: {', '.join(unknown)}")
        return self


class Capacity(Section):
    """Stock. Pools are counted in GPUs, the CPU pools in vCPUs."""

    mode: Literal["fixed", "walk", "script"] | None = Field(
        default=None,
        description="fixed: no strangers; walk: strangers come and go; script: as listed; default by profile",
    )
    pools: dict[str, dict[str, int]] = Field(
        default_factory=default_pools, description="location → hardware family → units; 0 is offered but sold out"
    )
    host_size: int = Field(default=8, ge=1, description="GPUs per host")
    cpu_host_size: int = Field(default=360, ge=1, description="vCPUs per host of the CPU pools")
    spot_reserve: int = Field(default=0, ge=0, description="units per pool that spot may not take")
    load: Probability = Field(default=0.6, description="share of each pool that strangers use on average in walk mode")
    step_s: float = Field(default=60.0, gt=0, description="seconds between two steps of the walk")
    script: tuple[tuple[float, str, str, int], ...] = Field(
        default=(), description="[seconds after start, location, family, free units], for script mode"
    )
    availability_lag_s: Seconds = Field(default=0.0, description="how stale the availability endpoints may be")


class Prices(Section):
    """Price movements; an instance keeps the price it was created with unless `reprice` says otherwise."""

    walk: bool | None = Field(default=None, description="whether list prices move; default by profile")
    step_s: float = Field(default=3600.0, gt=0, description="seconds between two price steps")
    sigma: float = Field(default=0.01, ge=0, description="standard deviation of one step's logarithm")
    pull: Probability = Field(default=0.05, description="strength of the pull back to the base price")
    reprice: Literal["keep", "follow"] = Field(default="keep", description="what running instances pay after a step")


class Billing(Section):
    """The prepaid account."""

    balance: float = Field(default=100_000.0, description="dollars on the account at the start")
    currency: str = Field(default="usd", description="what GET /balance calls it")
    slice_s: int = Field(default=600, gt=0, description="pay-as-you-go is prepaid in slices of this many seconds")
    storage_per_gb_month: float = Field(default=0.2, ge=0, description="dollars per GB and month of 730 hours")
    bill_failed: bool = Field(
        default=True, description="whether `error` and `installation_failed` instances cost money"
    )
    trash_hours: float = Field(default=96.0, gt=0, description="hours until a volume in the trash is erased")


class Auth(Section):
    """Credentials and tokens."""

    clients: dict[str, SecretStr] = Field(
        default={"simulator": SecretStr("simulator")}, description="accepted client ids and their secrets"
    )
    token_ttl_s: int = Field(default=3600, ge=0, description="lifetime of an access token")
    refresh_ttl_s: int = Field(default=30 * 86_400, ge=0, description="lifetime of a refresh token")
    refresh_single_use: bool = Field(default=False, description="whether a refresh token dies with its first use")
    token_clock: Literal["sim", "real"] = Field(default="sim", description="which clock expires tokens")


class Limits(Section):
    """Rate limits per project, in fixed windows."""

    enabled: bool = True
    project_per_window: int = Field(default=500, ge=1, description="requests per window over all endpoints")
    endpoint_per_window: int = Field(default=60, ge=1, description="requests per window per method and full path")
    list_per_window: int = Field(default=120, ge=1, description="the same for GET /instances and GET /volumes")
    window_s: float = Field(default=60.0, gt=0, description="length of a window")
    clock: Literal["real", "sim"] = Field(default="real", description="which clock moves the windows")
    body: Literal["text", "json", "empty"] = Field(default="text", description="what a 429 says; text has 11 bytes")


class Latency(Section):
    """Time to answer, in real seconds times `scale`."""

    scale: float | None = Field(default=None, ge=0, description="0 answers at once; default: 0 if calm, else 1")
    read: Span = Field(default=Span(median=0.08, p95=0.33, low=0.01, high=2.0), description="GET")
    write: Span = Field(default=Span(median=0.3, p95=1.15, low=0.05, high=5.0), description="POST, PUT, DELETE")
    token: Span = Field(default=Span(median=0.15, p95=0.4, low=0.05, high=2.0), description="POST /oauth2/token")


class Quota(Section):
    """Limits of the project; unset is unlimited."""

    gpus: int | None = Field(default=None, ge=0)
    instances: int | None = Field(default=None, ge=0)
    storage_gb: int | None = Field(default=None, ge=0, description="volumes in the trash count too")
    scripts: int = Field(default=100, ge=0)


class Behaviour(Section):
    """Switches for what is not documented, or changed over time."""

    allow_delete_in: frozenset[str] = Field(
        default=frozenset(
            {"ordered", "validating", "running", "offline", "error", "installation_failed", "no_capacity"}
        ),
        description="statuses in which a delete is accepted",
    )
    repeat_delete: Literal[204, 403] = Field(default=204, description="answer to deleting what is discontinued")
    evict_via_deleting: bool = Field(default=False, description="whether an eviction shows `deleting` first")
    stuck_rescue: bool = Field(
        default=False, description="whether force_shutdown and delete_stuck free a stuck instance"
    )
    history_ttl_s: Seconds | None = Field(
        default=None, description="how long GET by id knows the discontinued; unset: ever"
    )
    stream_key: Literal["hostname", "ordinal"] = Field(default="hostname", description="what keys an instance's draws")
    quoted_ids: bool = Field(default=False, description="whether POST answers the id as a JSON string")


class NamedSeed(Section):
    """A startup script or SSH key that exists from the start."""

    name: str
    text: str
    id: str | None = Field(default=None, description="the id to give it; default: derived from the seed")


class SimulatorConfig(Section):
    """Everything the simulated cloud can be told. All sections have defaults that are no kinder than the API."""

    seed: int = Field(default=1, description="same seed, same requests, same world")
    profile: Literal["calm", "realistic", "hostile"] = Field(
        default="calm", description="calm: nothing fails by itself; realistic: rarely; hostile: one request in five"
    )
    clock: Clock = Clock()
    durations: Durations = Field(default_factory=lambda: Durations.model_validate({}))
    chances: Chances = Field(default_factory=lambda: Chances.model_validate(CALM))
    capacity: Capacity = Capacity()
    prices: Prices = Prices()
    billing: Billing = Billing()
    auth: Auth = Auth()
    limits: Limits = Limits()
    latency: Latency = Latency()
    quotas: Quota = Quota()
    behaviour: Behaviour = Behaviour()
    scripts: tuple[NamedSeed, ...] = Field(default=(), description="startup scripts that exist from the start")
    ssh_keys: tuple[NamedSeed, ...] = Field(default=(), description="SSH keys that exist from the start")
    control: bool = Field(default=True, description="whether the control plane under /_sim is served")
    control_key: SecretStr | None = Field(
        default=None, description="required in the X-Sim-Key header; must be set to listen beyond loopback"
    )
    state_file: Path | None = Field(default=None, description="where the world is kept between runs; unset: nowhere")

    @model_validator(mode="before")
    @classmethod
    def _from_profile(cls, data: object) -> object:
        if not isinstance(data, dict):
            return data
        profile = PROFILES.get(str(data.get("profile", "calm")), CALM)
        chances = data.get("chances", {})
        return {**data, "chances": {**profile, **chances} if isinstance(chances, dict) else chances}

    @property
    def capacity_mode(self) -> str:
        """The stock's behaviour, by profile unless said otherwise."""
        return self.capacity.mode or ("fixed" if self.profile == "calm" else "walk")

    @property
    def latency_scale(self) -> float:
        """How much of a real round trip's time an answer takes, by profile unless said otherwise."""
        return self.latency.scale if self.latency.scale is not None else float(self.profile != "calm")

    @property
    def price_walk(self) -> bool:
        """Whether list prices move, by profile unless said otherwise."""
        return self.prices.walk if self.prices.walk is not None else self.profile != "calm"

    def epoch(self, now: datetime) -> datetime:
        """Where simulated time begins, given the real time."""
        if self.clock.epoch is not None:
            return self.clock.epoch
        return datetime(2026, 1, 5, tzinfo=UTC) if self.clock.mode is ClockMode.MANUAL else now


def parse_config(data: Mapping[str, Any], source: str = "simulator") -> SimulatorConfig:
    """Build a configuration from plain data.

    Raises:
        ConfigurationError: every problem at once.
    """
    try:
        return SimulatorConfig.model_validate(dict(data))
    except ValidationError as error:
        problems = tuple(
            Problem(source=source, line=None, path=".".join(str(part) for part in one["loc"]), message=one["msg"])
            for one in error.errors()
        )
        raise ConfigurationError(problems) from error


def load_config(path: Path) -> SimulatorConfig:
    """Read a configuration from a YAML file.

    Raises:
        ConfigurationError: the file cannot be read, is no YAML mapping, or holds something it should not.
    """
    try:
        data = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ConfigurationError((Problem(source=str(path), line=None, path="", message=str(error)),)) from error
    if data is None:
        data = {}
    if not isinstance(data, dict):
        raise ConfigurationError((Problem(source=str(path), line=None, path="", message="must be a mapping"),))
    return parse_config(data, str(path))
