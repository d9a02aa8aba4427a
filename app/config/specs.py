"""From the configuration to what the log remembers of node groups."""

from collections.abc import Mapping, Sequence

from app.config.group_parts import StartupTaint, Taint
from app.config.groups import OLDER_CONTRACTS, InstanceOption, NodeGroup, WebhookGroup, WebhookMachine
from app.config.model import Config
from app.domain.nodegroup import spec
from app.domain.offering import Contract
from app.domain.quantity import parse_quantity

CONTRACTS: Mapping[InstanceOption, tuple[Contract, ...]] = {
    "on_demand_only": (Contract.ON_DEMAND,),
    "spot_only": (Contract.SPOT,),
    "prefer_spot": (Contract.SPOT, Contract.ON_DEMAND),
    "prefer_on_demand": (Contract.ON_DEMAND, Contract.SPOT),
}
"""What each instance option orders under, best first."""


def to_specs(config: Config) -> tuple[spec.NodeGroupSpec, ...]:
    """The node groups, in the file's order."""
    return tuple(
        _to_spec(name, group, config) if isinstance(group, NodeGroup) else _own_machines(name, group, config)
        for name, group in config.node_groups.items()
    )


def _own_machines(name: str, group: WebhookGroup, config: Config) -> spec.NodeGroupSpec:
    """Machines are places, of which each can be had once; the smallest is tried first and stands for all."""
    machines = by_size(group)
    return spec.NodeGroupSpec(
        name=name,
        kind="webhook",
        min_size=group.min_size,
        max_size=len(machines),
        instance_type=type_name(name),
        image="none",
        locations=tuple(machine.name for machine in machines),
        labels=group.labels,
        taints=_taints(group.taints),
        startup_taints=_startup_taints(group.startup_taints),
        gpu_label=config.gpu_label,
        provider_id_template="webhook://{group}/{location}",
        resources={key: text for key, text in machines[0].resources.items() if key != "nvidia.com/gpu"},
        reserved=group.reserved,
        autoscaling_options=spec.AutoscalingOptions(**group.autoscaling_options.model_dump()),
        create_timeout=group.create_timeout,
    )


def type_name(node_group: str) -> str:
    """The instance type that stands for the machines of a group of our own."""
    return f"webhook.{node_group}"


def by_size(group: WebhookGroup) -> Sequence[WebhookMachine]:
    """Smallest first: fewest GPUs, then least memory."""
    zero = "0"
    return sorted(
        group.machines,
        key=lambda one: (one.gpu_count, parse_quantity(one.resources.get("memory", zero)), one.name),
    )


def _to_spec(name: str, group: NodeGroup, config: Config) -> spec.NodeGroupSpec:
    return spec.NodeGroupSpec(
        name=name,
        kind=group.kind,
        min_size=group.min_size,
        max_size=group.max_size,
        instance_type=group.instance_type,
        image=group.image,
        locations=group.locations or (str(group.location),),
        contracts=contracts(group),
        hourly_price=group.hourly_price,
        ssh_key_ids=group.ssh_key_ids,
        startup_script_id=group.startup_script_id,
        startup_script=script_kind(group),
        startup_script_keep=group.startup_script_keep,
        os_volume_size_gb=group.os_volume.size_gb if group.disk_size_gb is None else group.disk_size_gb,
        os_volume_permanent=group.os_volume.policy == "permanent",
        labels=group.labels,
        taints=_taints(group.taints),
        startup_taints=_startup_taints(group.startup_taints),
        gpu_label=config.gpu_label,
        provider_id_template=config.provider_id_template,
        override_num_gpus=group.override_num_gpus,
        mig_profile=group.mig_profile,
        mig_strategy=group.mig_strategy,
        resources=group.resources,
        reserved=group.reserved,
        autoscaling_options=spec.AutoscalingOptions(**group.autoscaling_options.model_dump()),
        create_timeout=group.create_timeout,
        provision_timeout=group.provision_timeout,
        stopped_after=group.stopped.after,
        stopped_action=group.stopped.action,
        ladder_cooldown=group.ladder_cooldown,
        replace_lost=group.replace_lost,
        never_joined_breaker=group.never_joined_breaker,
        max_hourly_cost=group.max_hourly_cost,
    )


def script_kind(group: NodeGroup) -> str | None:
    """Where the group's startup script comes from, None if it has none or names one that is at Verda already."""
    if group.startup_script_template is not None:
        return group.startup_script_template
    kinds = {"startup_script": "text", "startup_script_file": "file", "startup_script_base64": "base64"}
    kinds["startup_script_url"] = "url"
    return next((kind for key, kind in kinds.items() if getattr(group, key) is not None), None)


def contracts(group: NodeGroup) -> tuple[Contract, ...]:
    """Contracts to order under, best first, whichever of the two keys said so."""
    option = OLDER_CONTRACTS[group.contract] if group.contract is not None else group.instance_option
    return CONTRACTS[option]


def _taints(taints: tuple[Taint, ...]) -> tuple[spec.Taint, ...]:
    return tuple(spec.Taint(key=taint.key, value=taint.value, effect=taint.effect) for taint in taints)


def _startup_taints(taints: tuple[StartupTaint, ...]) -> tuple[spec.StartupTaint, ...]:
    return tuple(
        spec.StartupTaint(key=taint.key, value=taint.value, effect=taint.effect, until=taint.until) for taint in taints
    )
