"""What the log remembers of a node group."""

from datetime import timedelta
from decimal import Decimal

import pytest

from app.config.specs import to_specs
from app.domain.mig import MigStrategy
from app.domain.nodegroup.spec import AutoscalingOptions, NodeGroupSpec, StartupTaint, Taint, TaintEffect
from app.domain.offering import Contract

from .harness import GROUP, Desk


def test_a_short_group_has_the_defaults_of_the_page(desk: Desk) -> None:
    """Everything else follows from six lines."""
    assert to_specs(desk.load(GROUP).config) == (
        NodeGroupSpec(
            name="gpu",
            min_size=0,
            max_size=3,
            instance_type="1A100.22V",
            image="ubuntu-24.04",
            locations=("FIN-01",),
            os_volume_size_gb=100,
        ),
    )


def test_every_key_arrives(desk: Desk) -> None:
    """Nothing an operator wrote is lost on the way into the log."""
    text = """\
gpu_label: example.com/gpu
provider_id_template: "verda://{instance_id}"
node_groups:
  gpu:
    instance_type: 1A100.22V
    image: ubuntu-24.04
    min_size: 1
    max_size: 3
    locations: [FIN-01, FIN-03]
    instance_option: prefer_spot
    hourly_price: 0.60
    ssh_key_ids: [a, b]
    startup_script_id: c
    os_volume: {size_gb: 200, policy: trash}
    labels: {example.com/gpu: a100}
    taints: ["gpu=true:NoSchedule"]
    startup_taints: ["starting:NoExecute"]
    override_num_gpus: 2
    resources: {memory: 100Gi}
    reserved: {cpu: 500m}
    autoscaling_options:
      scale_down_utilization_threshold: 0.5
      scale_down_gpu_utilization_threshold: 0.4
      scale_down_unneeded_time: 5m
      scale_down_unready_time: 6m
      max_node_provision_time: 20m
      zero_or_max_node_scaling: true
      ignore_daemon_sets_utilization: false
      force_for_new_autoscalers: true
    create_timeout: 5m
    provision_timeout: 25m
    stopped: {after: 2h, action: delete}
    max_hourly_cost: 12.5
    ladder_cooldown: 3m
    startup_script_keep: 4m
    mig_profile: all-1g.10gb
    mig_strategy: mixed
"""
    (spec,) = to_specs(desk.load(text).config)
    assert spec == NodeGroupSpec(
        name="gpu",
        kind="verda",
        min_size=1,
        max_size=3,
        instance_type="1A100.22V",
        image="ubuntu-24.04",
        locations=("FIN-01", "FIN-03"),
        contracts=(Contract.SPOT, Contract.ON_DEMAND),
        hourly_price=Decimal("0.60"),
        ssh_key_ids=("a", "b"),
        startup_script_id="c",
        os_volume_size_gb=200,
        os_volume_permanent=False,
        labels={"example.com/gpu": "a100"},
        taints=(Taint(key="gpu", value="true", effect=TaintEffect.NO_SCHEDULE),),
        startup_taints=(StartupTaint(key="starting", effect=TaintEffect.NO_EXECUTE),),
        gpu_label="example.com/gpu",
        provider_id_template="verda://{instance_id}",
        override_num_gpus=2,
        startup_script_keep=timedelta(minutes=4),
        mig_profile="all-1g.10gb",
        mig_strategy=MigStrategy.MIXED,
        ladder_cooldown=timedelta(minutes=3),
        resources={"memory": "100Gi"},
        reserved={"cpu": "500m"},
        autoscaling_options=AutoscalingOptions(
            scale_down_utilization_threshold=0.5,
            scale_down_gpu_utilization_threshold=0.4,
            scale_down_unneeded_time=timedelta(minutes=5),
            scale_down_unready_time=timedelta(minutes=6),
            max_node_provision_time=timedelta(minutes=20),
            zero_or_max_node_scaling=True,
            ignore_daemon_sets_utilization=False,
            force_for_new_autoscalers=True,
        ),
        create_timeout=timedelta(minutes=5),
        provision_timeout=timedelta(minutes=25),
        stopped_after=timedelta(hours=2),
        stopped_action="delete",
        max_hourly_cost=Decimal("12.5"),
    )
    unset = {"kind", "startup_script", "replace_lost", "never_joined_breaker"}  # refused for now, or instead of an id
    defaults = {
        name: field.get_default(call_default_factory=True) for name, field in NodeGroupSpec.model_fields.items()
    }
    assert {name for name, value in spec if value == defaults[name]} == unset, "a new field needs a value above"


@pytest.mark.parametrize(
    ("line", "contracts"),
    [
        ("instance_option: on_demand_only", (Contract.ON_DEMAND,)),
        ("instance_option: spot_only", (Contract.SPOT,)),
        ("instance_option: prefer_spot", (Contract.SPOT, Contract.ON_DEMAND)),
        ("instance_option: prefer_on_demand", (Contract.ON_DEMAND, Contract.SPOT)),
        ("contract: PAY_AS_YOU_GO", (Contract.ON_DEMAND,)),
        ("contract: SPOT", (Contract.SPOT,)),
        ("min_size: 0", (Contract.ON_DEMAND,)),
    ],
)
def test_contracts(desk: Desk, line: str, contracts: tuple[Contract, ...]) -> None:
    """Best first, from either key."""
    (spec,) = to_specs(desk.load(GROUP + f"    {line}\n").config)
    assert spec.contracts == contracts


def test_the_older_disk_size(desk: Desk) -> None:
    """It is the same volume."""
    (spec,) = to_specs(desk.load(GROUP + "    disk_size_gb: 60\n").config)
    assert (spec.os_volume_size_gb, spec.os_volume_permanent) == (60, True)


def test_groups_keep_the_files_order(desk: Desk) -> None:
    """People find them again where they wrote them."""
    body = "{instance_type: x, image: y, max_size: 1, location: z}"
    text = "node_groups:\n" + "".join(f"  {name}: {body}\n" for name in ("b", "a", "c"))
    assert [spec.name for spec in to_specs(desk.load(text).config)] == ["b", "a", "c"]
