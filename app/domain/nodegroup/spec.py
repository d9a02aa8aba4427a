"""What a node group is made of, as decided by the operator: the part of the configuration that belongs into the log."""

import re
from datetime import timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from app.domain.mig import MigStrategy
from app.domain.offering import Contract, Offering

GROUP_NAME = re.compile(r"[a-z]([-a-z0-9]{0,48}[a-z0-9])?")
"""A DNS label that leaves room for `-` and eight more characters; must begin with a letter, as hostnames of ours do."""


class TaintEffect(StrEnum):
    """Effects of a Kubernetes taint."""

    NO_SCHEDULE = "NoSchedule"
    PREFER_NO_SCHEDULE = "PreferNoSchedule"
    NO_EXECUTE = "NoExecute"


class _Value(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Taint(_Value):
    """A Kubernetes taint."""

    key: str
    value: str = ""
    effect: TaintEffect


class LiftedWhen(StrEnum):
    """When we take a start-up taint off a node."""

    READY = "ready"
    GPUS = "gpus"


class StartupTaint(Taint):
    """A taint that a node has while it starts; without `until` somebody else takes it off."""

    until: LiftedWhen | None = None


class AutoscalingOptions(_Value):
    """Per-group overrides of Cluster Autoscaler's options; None means: whatever its flags say."""

    scale_down_utilization_threshold: float | None = None
    scale_down_gpu_utilization_threshold: float | None = None
    scale_down_unneeded_time: timedelta | None = None
    scale_down_unready_time: timedelta | None = None
    max_node_provision_time: timedelta | None = None
    zero_or_max_node_scaling: bool | None = None
    ignore_daemon_sets_utilization: bool | None = None
    force_for_new_autoscalers: bool = False

    def is_empty(self) -> bool:
        """True if nothing is overridden."""
        return all(value is None for name, value in self if name != "force_for_new_autoscalers")


class NodeGroupSpec(_Value):
    """Everything about a node group except secrets. Part of `NodeGroupConfigured`, so new fields need a default.

    `locations` and `contracts` are in the operator's order of preference. `resources` and `reserved` are Kubernetes
    quantities. `hourly_price` overrides the catalogue's price where prices are told, not where costs are counted.
    Of kind `webhook` the locations are the names of the machines, smallest first, and each of them can be had once.
    `startup_script` says where the script comes from that is rendered for each machine; its text may hold secrets.
    """

    name: str = Field(pattern=rf"^{GROUP_NAME.pattern}$")
    kind: Literal["verda", "webhook"] = "verda"
    min_size: Annotated[int, Field(ge=0)]
    max_size: Annotated[int, Field(ge=0)]
    instance_type: str
    image: str
    locations: tuple[str, ...] = Field(min_length=1)
    contracts: tuple[Contract, ...] = Field(default=(Contract.ON_DEMAND,), min_length=1)
    hourly_price: Decimal | None = None
    ssh_key_ids: tuple[str, ...] = ()
    startup_script_id: str | None = None
    startup_script: str | None = None
    startup_script_keep: timedelta = timedelta(minutes=10)
    os_volume_size_gb: int | None = None
    os_volume_permanent: bool = True
    labels: dict[str, str] = Field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    startup_taints: tuple[StartupTaint, ...] = ()
    gpu_label: str = "verda.com/gpu"
    provider_id_template: str = "verda://{hostname}"
    override_num_gpus: int | None = None
    mig_profile: str | None = None
    mig_strategy: MigStrategy = MigStrategy.SINGLE
    resources: dict[str, str] = Field(default_factory=dict)
    reserved: dict[str, str] = Field(default_factory=dict)
    autoscaling_options: AutoscalingOptions = AutoscalingOptions()
    create_timeout: timedelta = timedelta(minutes=10)
    provision_timeout: timedelta = timedelta(minutes=30)
    stopped_after: timedelta = timedelta(hours=1)
    stopped_action: Literal["alarm", "delete"] = "alarm"
    ladder_cooldown: timedelta = timedelta(minutes=10)
    replace_lost: bool = False
    never_joined_breaker: int = 3
    max_hourly_cost: Decimal | None = None

    def ladder(self) -> tuple[Offering, ...]:
        """Everything that may be ordered for this group, best first: contracts, then locations within each."""
        return tuple(
            Offering(instance_type=self.instance_type, location=location, contract=contract)
            for contract in self.contracts
            for location in self.locations
        )
