"""Node groups as the operator writes them: `node_groups.<name>` and, for all of them, `defaults`."""

from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Discriminator, Field, SecretStr, Tag, ValidationInfo, field_validator

from app.config import fields as f
from app.config.group_parts import (
    AutoscalingOptions,
    OsVolume,
    ScriptValue,
    ScriptValueName,
    StartupTaints,
    Stopped,
    Taints,
)
from app.config.values import Refused, duration_text
from app.domain.mig import MigStrategy, mig_refusal, mig_strategy_refusal


# Enumerations rather than literals: typing keeps one object for all unions of literals with the same words, whatever
# their order, so that messages would list the words as some other library happened to write them first.
class OlderContract(StrEnum):
    """Verda's words for contracts."""

    PAY_AS_YOU_GO = "PAY_AS_YOU_GO"
    SPOT = "SPOT"
    LONG_TERM = "LONG_TERM"


class OlderPricing(StrEnum):
    """Verda's former words for price models."""

    FIXED_PRICE = "FIXED_PRICE"
    DYNAMIC_PRICE = "DYNAMIC_PRICE"


InstanceOption = Literal["on_demand_only", "spot_only", "prefer_spot", "prefer_on_demand"]
OLDER_CONTRACTS: Mapping[str, InstanceOption] = {"PAY_AS_YOU_GO": "on_demand_only", "SPOT": "spot_only"}
STARTUP_SCRIPTS = (
    "startup_script_id",
    "startup_script",
    "startup_script_file",
    "startup_script_base64",
    "startup_script_template",
    "startup_script_url",
)


MISSING = "is missing"


class NodeGroup(f.Section):
    """A set of identical machines at Verda, between min_size and max_size."""

    kind: Literal["verda"] = Field(default="verda", description="Where the machines come from: verda, or webhook.")
    instance_type: f.Word = Field(description="Verda's instance type, for example 1A100.22V.")
    image: f.Word = Field(description="Operating system image, by type or id; it must suit the instance type.")
    min_size: f.Count = Field(default=0, description="Fewest machines Cluster Autoscaler keeps.")
    max_size: f.Count = Field(description="Most machines that will ever be ordered.")
    location: f.Word | None = Field(default=None, description="Verda's location code; either this or locations.")
    locations: tuple[f.Word, ...] = Field(
        default=(), validate_default=True, description="Several locations, tried in this order."
    )
    contract: OlderContract | None = Field(
        default=None,
        description="Older form of instance_option: PAY_AS_YOU_GO (on_demand_only), SPOT (spot_only); not LONG_TERM.",
    )
    instance_option: InstanceOption = Field(
        default="on_demand_only",
        description="Contracts to order under, in order of preference: each at every location before the next.",
    )
    ladder_cooldown: f.AnyDuration = Field(
        default=timedelta(minutes=10),
        description=(
            "How long a contract at a location that was out of stock or quota is put behind the others; "
            "0s asks every time."
        ),
    )
    pricing: OlderPricing | None = Field(
        default=None, description="Older key without effect: Verda has no dynamic prices any more."
    )
    hourly_price: f.Money | None = Field(
        default=None,
        description="Replaces the catalogue's price in price answers and budgets; costs count what Verda charged.",
    )
    ssh_key_ids: tuple[f.Word, ...] = Field(default=(), description="Ids of the SSH keys to install.")
    startup_script_id: f.Word | None = Field(
        default=None, description="Id of the startup script at Verda that joins the machine to the cluster."
    )
    startup_script: SecretStr | None = Field(
        default=None,
        description="The startup script itself, a template (docs/startup-scripts.md); `${NAME}` in it is the shell's.",
    )
    startup_script_file: f.FilePath | None = Field(default=None, description="A file that holds the startup script.")
    startup_script_base64: SecretStr | None = Field(default=None, description="The startup script, in base64.")
    startup_script_template: Literal["k3s", "kubeadm", "rke2"] | None = Field(
        default=None, description="A ready-made startup script that joins the machine to such a cluster."
    )
    startup_script_url: f.Url | None = Field(
        default=None, validate_default=True, description="Where the machine fetches its startup script."
    )
    script_values: dict[ScriptValueName, ScriptValue] = Field(
        default_factory=dict,
        description="Values for the startup script: text, `{file: …}`, `{env: …}` or `{bootstrap_token: …}`.",
    )
    startup_script_keep: f.AnyDuration = Field(
        default=timedelta(minutes=10),
        description="How long a script that was uploaded for a machine stays at Verda once the machine runs.",
    )
    os_volume: OsVolume = Field(default_factory=OsVolume, description="The system disk.")
    disk_size_gb: f.PositiveCount | None = Field(default=None, description="Older form of os_volume.size_gb, in GB.")
    labels: f.Labels = Field(default_factory=dict, description="Labels of the nodes.")
    taints: Taints = Field(
        default=(), description='Taints of the nodes: "key=value:Effect", "key:Effect" or `{key, value, effect}`.'
    )
    startup_taints: StartupTaints = Field(
        default=(),
        description=(
            "Taints that a node has only while it starts: on the node, not in the template. "
            "As an object each may have `until`, and we take it off."
        ),
    )
    override_num_gpus: f.Count | None = Field(
        default=None, description="Number of GPUs in the template, instead of the catalogue's."
    )
    mig_profile: f.Text | None = Field(
        default=None,
        description="MIG layout of the GPUs, for example all-1g.10gb or, with mig_strategy mixed, all-balanced.",
    )
    mig_strategy: MigStrategy = Field(
        default=MigStrategy.SINGLE,
        validate_default=True,
        description="How devices are named: single (all nvidia.com/gpu) or mixed (nvidia.com/mig-1g.10gb and so on).",
    )
    resources: f.Resources = Field(
        default_factory=dict, description="Quantities that replace the catalogue's in the template, by resource name."
    )
    reserved: f.Reserved = Field(
        default_factory=dict,
        description="Set aside for the system: cpu, memory, ephemeral-storage. Without a key: what kubelets set.",
    )
    autoscaling_options: AutoscalingOptions = Field(
        default_factory=AutoscalingOptions, description="Cluster Autoscaler's options for this group."
    )
    create_timeout: f.Duration = Field(
        default=timedelta(minutes=10), description="Wished for so long without an instance, its creation has failed."
    )
    provision_timeout: f.Duration = Field(
        default=timedelta(minutes=30),
        validate_default=True,
        description="An instance that is not running so long after its creation has failed.",
    )
    stopped: Stopped = Field(default_factory=Stopped, description="What to do with machines that are switched off.")
    replace_lost: f.Truth = Field(
        default=False, description="Order a new machine when one is lost, instead of leaving that to the autoscaler."
    )
    never_joined_breaker: f.Count = Field(
        default=3, description="So many machines in a row that never become nodes close the group; 0 is never."
    )
    max_hourly_cost: f.Money | None = Field(
        default=None, description="Refuse growth that would cost more than this per hour, in the catalogue's currency."
    )

    @field_validator("max_size")
    @classmethod
    def _room_for_min_size(cls, max_size: int, info: ValidationInfo) -> int:
        min_size = info.data.get("min_size", 0)
        if max_size < min_size:
            raise Refused(
                f"max_size is {max_size} and min_size {min_size}",
                remedy="max_size must be at least min_size",
                fields=(("max_size",), ("min_size",)),
            )
        return max_size

    @field_validator("locations")
    @classmethod
    def _one_way_to_say_where(cls, locations: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        if "location" not in info.data:
            return locations
        fields = (("locations",), ("location",))
        if locations and info.data["location"] is not None:
            raise Refused("location and locations are both given", remedy="keep one of them", fields=fields)
        if not locations and info.data["location"] is None:
            raise Refused(MISSING, remedy="write for example FIN-01, or several as locations", fields=fields[::-1])
        if len(set(locations)) < len(locations):
            raise Refused("must not name a location twice", fields=fields)
        return locations

    @field_validator("contract")
    @classmethod
    def _can_be_autoscaled(cls, contract: str | None) -> str | None:
        if contract == "LONG_TERM":
            raise Refused(
                "cannot be LONG_TERM",
                remedy="such machines are bought for months ahead; use PAY_AS_YOU_GO or SPOT",
                fields=(("contract",),),
            )
        return contract

    @field_validator("instance_option")
    @classmethod
    def _agrees_with_contract(cls, option: InstanceOption, info: ValidationInfo) -> InstanceOption:
        contract = info.data.get("contract")
        if contract is not None and OLDER_CONTRACTS[contract] != option:
            raise Refused(
                f"instance_option is {option}, but contract {contract} means {OLDER_CONTRACTS[contract]}",
                remedy="remove contract, the older key",
                fields=(("instance_option",), ("contract",)),
            )
        return option

    @field_validator("startup_script_url")
    @classmethod
    def _one_startup_script(cls, url: str | None, info: ValidationInfo) -> str | None:
        given = [name for name in STARTUP_SCRIPTS[:-1] if info.data.get(name) is not None]
        given += ["startup_script_url"] if url is not None else []
        if len(given) > 1:
            raise Refused(
                f"{' and '.join(given)} are given together",
                remedy="keep one of them",
                fields=tuple((name,) for name in reversed(given)),
            )
        return url

    @field_validator("mig_profile")
    @classmethod
    def _suits_the_gpus(cls, profile: str | None, info: ValidationInfo) -> str | None:
        reason = mig_refusal(profile, info.data.get("instance_type", "")) if profile is not None else None
        if reason is not None and "instance_type" in info.data:
            raise Refused(f"does not suit the instance type: {reason}", fields=(("mig_profile",), ("instance_type",)))
        return profile

    @field_validator("mig_strategy")
    @classmethod
    def _suits_the_layout(cls, strategy: MigStrategy, info: ValidationInfo) -> MigStrategy:
        profile = info.data.get("mig_profile")
        reason = mig_strategy_refusal(profile, strategy) if profile is not None else None
        if reason is not None:
            raise Refused(reason, remedy="set mig_strategy: mixed", fields=(("mig_strategy",), ("mig_profile",)))
        return strategy

    @field_validator("disk_size_gb")
    @classmethod
    def _agrees_with_os_volume(cls, size_gb: int | None, info: ValidationInfo) -> int | None:
        os_volume = info.data.get("os_volume")
        if size_gb is None or not isinstance(os_volume, OsVolume) or "size_gb" not in os_volume.model_fields_set:
            return size_gb
        if os_volume.size_gb != size_gb:
            raise Refused(
                f"disk_size_gb is {size_gb} and os_volume.size_gb {os_volume.size_gb}",
                remedy="remove disk_size_gb, the older key",
                fields=(("disk_size_gb",), ("os_volume", "size_gb")),
            )
        return size_gb

    @field_validator("provision_timeout")
    @classmethod
    def _longer_than_creation(cls, provision_timeout: timedelta, info: ValidationInfo) -> timedelta:
        create_timeout = info.data.get("create_timeout", timedelta(0))
        if provision_timeout <= create_timeout:
            creation, provision = duration_text(create_timeout), duration_text(provision_timeout)
            raise Refused(
                f"create_timeout is {creation} and provision_timeout {provision}",
                remedy="provision_timeout must be the longer one",
                fields=(("provision_timeout",), ("create_timeout",)),
            )
        return provision_timeout


class WebhookMachine(f.Section):
    """A machine of our own that an HTTP call switches on and off."""

    name: f.Word = Field(description="Name of the machine and of the node it becomes.")
    gpu_count: f.Count = Field(default=0, description="Number of its GPUs.")
    scale_up_endpoint: f.Url = Field(description="POST here switches the machine on.")
    scale_down_endpoint: f.Url = Field(description="POST here switches the machine off.")
    status_endpoint: f.Url | None = Field(default=None, description="GET here tells whether it is on.")
    token_file: f.FilePath | None = Field(
        default=None, description="A file with the bearer token that its endpoints ask for, read for every call."
    )
    resources: f.Resources = Field(default_factory=dict, description="What the machine offers, by resource name.")


class WebhookGroup(f.Section):
    """A set of machines of our own, switched on and off over HTTP."""

    kind: Literal["webhook"] = Field(description="Where the machines come from: verda, or webhook.")
    min_size: f.Count = Field(default=0, description="Fewest machines Cluster Autoscaler keeps.")
    machines: tuple[WebhookMachine, ...] = Field(min_length=1, description="The machines; their number is the maximum.")
    labels: f.Labels = Field(default_factory=dict, description="Labels of the nodes.")
    taints: Taints = Field(default=(), description="Taints of the nodes.")
    startup_taints: StartupTaints = Field(default=(), description="Taints that a node has only while it starts.")
    reserved: f.Reserved = Field(default_factory=dict, description="What is set aside for the system.")
    autoscaling_options: AutoscalingOptions = Field(
        default_factory=AutoscalingOptions, description="Cluster Autoscaler's options for this group."
    )
    create_timeout: f.Duration = Field(
        default=timedelta(minutes=10), description="Wished for so long without a machine, its creation has failed."
    )

    @field_validator("machines")
    @classmethod
    def _names_apart(cls, machines: tuple[WebhookMachine, ...]) -> tuple[WebhookMachine, ...]:
        names = [machine.name.lower() for machine in machines]
        for name in names:
            if names.count(name) > 1:
                raise Refused(f"must not name {name} twice", remedy="give each machine its own name")
        return machines


def kind_of(group: object) -> str:
    """The kind that decides which model reads a group; a wrong word is left for the usual one to refuse."""
    kind = group.get("kind") if isinstance(group, Mapping) else getattr(group, "kind", None)
    return "webhook" if kind == "webhook" else "verda"


Group = Annotated[Annotated[NodeGroup, Tag("verda")] | Annotated[WebhookGroup, Tag("webhook")], Discriminator(kind_of)]

GROUP_MODELS: Mapping[str, type[NodeGroup | WebhookGroup]] = {"verda": NodeGroup, "webhook": WebhookGroup}
