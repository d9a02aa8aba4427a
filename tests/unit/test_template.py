import re
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.nodegroup.spec import NodeGroupSpec, StartupTaint, Taint, TaintEffect
from app.domain.offering import Contract, InstanceType
from app.domain.template import TemplateNode, build_template, gpu_count, kubelet_labels, region_of

KIB = 1024
GIB = 2**30
LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")

CPU_TYPE = InstanceType(
    name="CPU.4V.16G",
    cpus=4,
    memory_gb=Decimal(16),
    gpus=0,
    gpu_memory_gb=Decimal(0),
    gpu_name="AMD EPYC",
    model="CPU Node",
    manufacturer="AMD",
    storage_gb=None,
    on_demand_price=Decimal("0.02790"),
    spot_price=Decimal("0.009800"),
    currency="usd",
)
H100_TYPE = InstanceType(
    name="1H100.80S.32V",
    cpus=32,
    memory_gb=Decimal(185),
    gpus=1,
    gpu_memory_gb=Decimal(80),
    gpu_name="H100 SXM5 80GB",
    model="H100",
    manufacturer="NVIDIA",
    storage_gb=None,
    on_demand_price=Decimal("2.290"),
    spot_price=Decimal("0.8015"),
    currency="usd",
)
V100_TYPE = InstanceType(
    name="1V100.6V",
    cpus=6,
    memory_gb=Decimal(23),
    gpus=1,
    gpu_memory_gb=Decimal(16),
    gpu_name="Tesla V100 16GB",
    model="Tesla V100",
    manufacturer="NVIDIA",
    storage_gb=Decimal(225),
    on_demand_price=Decimal("0.1381"),
    spot_price=Decimal("0.04830"),
    currency="usd",
)
GB300_TYPE = H100_TYPE.model_copy(
    update={"name": "1GB300.32V", "gpu_name": "GB300 SXM6 288GB", "model": "GB300", "gpu_memory_gb": Decimal(288)}
)


def group(kind: InstanceType, **settings_: Any) -> NodeGroupSpec:
    """A node group of this type with everything else at its default."""
    values: dict[str, Any] = {"locations": ("FIN-01",), **settings_}
    return NodeGroupSpec(
        name="workers", min_size=0, max_size=4, instance_type=kind.name, image="ubuntu-24.04", **values
    )


def template(kind: InstanceType, **settings_: Any) -> TemplateNode:
    """The on-demand template of such a group."""
    return build_template(group(kind, **settings_), kind, Contract.ON_DEMAND, None)


def test_a_gpu_node_is_sized_as_its_kubelet_would_size_it() -> None:
    """F33, F36: all five resources, rounded down, and less than the machine has.

    Memory: 185 GiB * 0.93 = 172.05 GiB = 180407500.8 KiB. Held back: 25 % of 4 GiB, 20 % of 4, 10 % of 8 and 6 % of 112
    are 9.32 GiB = 9772728.32 KiB; 2 % of what is above 128 GiB, 46189772 KiB, are 923795.44 KiB; eviction 102400 KiB.
    CPU: 6 % + 1 % + 2 * 0.5 % + 28 * 0.25 % = 0.15 cores.
    Disk: 50 * 10^9 bytes * 0.95 = 46386718.75 KiB; a tenth of it is for eviction.
    """
    node = template(H100_TYPE)
    assert node.capacity == {
        "cpu": 32,
        "memory": 180407500 * KIB,
        "ephemeral-storage": 46386718 * KIB,
        "pods": 110,
        "nvidia.com/gpu": 1,
    }
    assert node.allocatable == {
        "cpu": Decimal("31.85"),
        "memory": 169608576 * KIB,
        "ephemeral-storage": 41748046 * KIB,
        "pods": 110,
        "nvidia.com/gpu": 1,
    }


def test_a_small_cpu_node_is_sized_by_the_lower_tiers() -> None:
    """14.88 GiB are 15602810 KiB; held back: 1.8 GiB of the first 8 and a tenth of the 7214202 KiB above, and 100 MiB.

    That is 1887436.8 + 721420.2 + 102400 = 2711257 KiB. CPU: 0.06 + 0.01 + 0.01 cores of four.
    """
    node = template(CPU_TYPE)
    assert node.capacity["memory"] == 15602810 * KIB
    assert node.allocatable["memory"] == 12891553 * KIB
    assert node.allocatable["cpu"] == Decimal("3.92")
    assert "nvidia.com/gpu" not in node.capacity


def test_a_type_sold_with_120_gb_promises_less_than_its_kubelet_reports() -> None:
    """F36: a real kubelet of such a machine reported 117.6 GiB capacity and 116.4 GiB allocatable."""
    kind = H100_TYPE.model_copy(update={"memory_gb": Decimal(120)})
    node = template(kind)
    assert node.capacity["memory"] < Decimal("117.6") * GIB
    assert node.allocatable["memory"] < Decimal("116.4") * GIB


@pytest.mark.parametrize(
    ("kind", "volume_gb", "kib"),
    [
        (H100_TYPE, 100, 92773437),
        (V100_TYPE, None, 208740234),
        (V100_TYPE, 100, 92773437),
        (CPU_TYPE, None, 46386718),
    ],
)
def test_storage_is_the_volumes_or_the_types_or_verdas_default(
    kind: InstanceType, volume_gb: int | None, kib: int
) -> None:
    """95 GB, 213.75 GB and 47.5 GB in whole KiB."""
    assert template(kind, os_volume_size_gb=volume_gb).capacity["ephemeral-storage"] == kib * KIB


def test_resources_of_the_group_replace_ours_and_add_others() -> None:
    """An operator who has seen a real node knows better than the catalogue."""
    node = template(
        H100_TYPE,
        resources={"memory": "180Gi", "cpu": "30", "pods": "250", "rdma/hca": "8", "ephemeral-storage": "1Ti"},
    )
    assert node.capacity["memory"] == 180 * GIB
    assert node.capacity["cpu"] == 30
    assert node.capacity["pods"] == 250
    assert node.capacity["rdma/hca"] == node.allocatable["rdma/hca"] == 8
    assert node.capacity["ephemeral-storage"] == 2**40


def test_no_group_can_promise_more_memory_than_the_machine_is_sold_with() -> None:
    """The guest can never see more than the catalogue's figure, so pods that need more would buy machines for ever."""
    assert template(H100_TYPE, resources={"memory": "400Gi"}).capacity["memory"] == 185 * GIB


def test_reservations_of_the_group_are_the_whole_reservation() -> None:
    """Who names one figure means the difference between the kubelet's capacity and allocatable."""
    node = template(CPU_TYPE, reserved={"memory": "1Gi", "cpu": "500m", "ephemeral-storage": "0"})
    assert node.allocatable["memory"] == (15602810 - 1048576) * KIB
    assert node.allocatable["cpu"] == Decimal("3.5")
    assert node.allocatable["ephemeral-storage"] == node.capacity["ephemeral-storage"]


def test_reserving_more_than_there_is_leaves_nothing_not_less() -> None:
    """Negative quantities would make the node invalid."""
    node = template(CPU_TYPE, reserved={"memory": "64Gi", "cpu": "-1"})
    assert node.allocatable["memory"] == 0
    assert node.allocatable["cpu"] == node.capacity["cpu"] == 4


def test_labels_of_a_gpu_node_are_complete() -> None:
    """What kubelet, our start-up script and GPU feature discovery will put on the real node."""
    assert template(H100_TYPE, labels={"team": "ml"}).labels == {
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "kubernetes.io/hostname": "workers-template",
        "node.kubernetes.io/instance-type": "1H100.80S.32V",
        "topology.kubernetes.io/region": "FIN",
        "topology.kubernetes.io/zone": "FIN-01",
        "verda.com/contract": "on-demand",
        "verda.com/gpu": "h100",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "1",
        "nvidia.com/gpu.memory": "81920",
        "nvidia.com/gpu.family": "hopper",
        "team": "ml",
    }


def test_no_label_names_the_group() -> None:
    """With one, the autoscaler would never take two groups for similar and never balance them."""
    first = template(H100_TYPE)
    second = build_template(group(H100_TYPE).model_copy(update={"name": "others"}), H100_TYPE, Contract.ON_DEMAND, None)
    differing = {key for key in first.labels if first.labels[key] != second.labels[key]}
    assert differing == {"kubernetes.io/hostname"}


def test_grace_machines_are_arm64() -> None:
    """A pod built for amd64 cannot run on a GB300."""
    assert template(GB300_TYPE).labels["kubernetes.io/arch"] == "arm64"


def test_the_label_of_the_contract_says_what_was_ordered() -> None:
    """F32: spot nodes say spot, so that pods can keep away from them."""
    node = build_template(group(H100_TYPE, contracts=(Contract.SPOT,)), H100_TYPE, Contract.SPOT, "ICE-01")
    assert node.labels["verda.com/contract"] == "spot"
    assert node.labels["topology.kubernetes.io/zone"] == "ICE-01"
    assert node.labels["topology.kubernetes.io/region"] == "ICE"


def test_of_several_locations_the_template_shows_one() -> None:
    """F37: a list in one label value matches no selector; unless told otherwise it is the preferred location."""
    spec = group(H100_TYPE, locations=("FIN-03", "FIN-01"))
    assert build_template(spec, H100_TYPE, Contract.SPOT, None).labels["topology.kubernetes.io/zone"] == "FIN-03"
    assert build_template(spec, H100_TYPE, Contract.SPOT, "FIN-01").labels["topology.kubernetes.io/zone"] == "FIN-01"


@pytest.mark.parametrize(
    ("location", "region"), [("FIN-01", "FIN"), ("ICE-01", "ICE"), ("US-EAST-2", "US-EAST"), ("LAB", "LAB"), ("", "")]
)
def test_the_region_is_the_location_without_its_number(location: str, region: str) -> None:
    """New codes may appear in any form."""
    assert region_of(location) == region


def test_cpu_groups_never_carry_the_gpu_label() -> None:
    """F35: with the key, whatever its value, the autoscaler waits for a GPU that never comes."""
    node = template(
        CPU_TYPE, gpu_label="my.org/gpu", labels={"my.org/gpu": "false"}, override_num_gpus=4, mig_profile="all-1g.10gb"
    )
    assert not [key for key in node.labels if "gpu" in key or "nvidia" in key]
    assert "nvidia.com/gpu" not in {*node.capacity, *node.allocatable}


def test_groups_own_value_of_the_gpu_label_wins() -> None:
    """Machines of the older provider are started with `verda.com/gpu=true`; pods select what the node really says."""
    assert template(H100_TYPE, labels={"verda.com/gpu": "true"}).labels["verda.com/gpu"] == "true"
    assert template(H100_TYPE).labels["verda.com/gpu"] == "h100"


def test_labels_of_the_group_win_except_the_reserved() -> None:
    """Prices are told by instance type and contract: these stay true whatever the group says."""
    node = template(
        H100_TYPE,
        labels={
            "kubernetes.io/arch": "riscv64",
            "kubernetes.io/hostname": "liar",
            "kubernetes.io/os": "plan9",
            "node.kubernetes.io/instance-type": "liar",
            "nvidia.com/gpu.product": "NVIDIA-H100-NVL",
            "topology.kubernetes.io/zone": "cellar",
            "verda.com/contract": "liar",
        },
    )
    assert node.labels["kubernetes.io/arch"] == "riscv64"
    assert node.labels["topology.kubernetes.io/zone"] == "cellar"
    assert node.labels["nvidia.com/gpu.product"] == "NVIDIA-H100-NVL"
    assert node.labels["kubernetes.io/os"] == "linux"
    assert node.labels["verda.com/gpu"] == "h100"
    assert "liar" not in node.labels.values()


def test_the_kubelets_labels_are_those_it_does_not_find_out_itself() -> None:
    """What a start-up script has to pass: no architecture, no hostname, nothing of feature discovery."""
    spec = group(H100_TYPE, labels={"team": "a b"}, mig_profile="all-1g.10gb")
    assert kubelet_labels(spec, H100_TYPE, Contract.SPOT, "FIN-02") == {
        "node.kubernetes.io/instance-type": "1H100.80S.32V",
        "topology.kubernetes.io/region": "FIN",
        "topology.kubernetes.io/zone": "FIN-02",
        "verda.com/contract": "spot",
        "verda.com/gpu": "h100",
        "nvidia.com/mig.config": "all-1g.10gb",
        "team": "a-b",
    }


def test_start_up_taints_are_not_in_the_template() -> None:
    """F38: they are gone before a pod is placed, so they must not stand in the way of the simulation."""
    gpu_only = Taint(key="gpu", value="true", effect=TaintEffect.NO_SCHEDULE)
    not_ready = StartupTaint(key="node.cilium.io/agent-not-ready", value="true", effect=TaintEffect.NO_EXECUTE)
    assert template(H100_TYPE, taints=(gpu_only,), startup_taints=(not_ready,)).taints == (gpu_only,)


@pytest.mark.parametrize(
    ("settings_", "count"),
    [
        ({}, 1),
        ({"override_num_gpus": 8}, 8),
        ({"override_num_gpus": 0}, 0),
        ({"mig_profile": "all-1g.10gb"}, 7),
        ({"mig_profile": "all-balanced"}, 1),
        ({"resources": {"nvidia.com/gpu": "4"}}, 4),
        ({"resources": {"nvidia.com/gpu": "4"}, "mig_profile": "all-1g.10gb"}, 4),
        ({"resources": {"nvidia.com/gpu": "4"}, "mig_profile": "all-1g.10gb", "override_num_gpus": 3}, 3),
    ],
)
def test_the_number_of_gpus_has_an_order_of_authority(settings_: dict[str, Any], count: int) -> None:
    """Override, resources, MIG profile, catalogue."""
    spec = group(H100_TYPE, **settings_)
    assert gpu_count(spec, H100_TYPE) == count
    assert template(H100_TYPE, **settings_).capacity.get("nvidia.com/gpu", 0) == count


def test_mig_devices_are_labelled_as_feature_discovery_labels_them() -> None:
    """Strategy "single": product and count are those of the devices."""
    labels = template(H100_TYPE, mig_profile="all-1g.10gb").labels
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
    assert labels["nvidia.com/gpu.count"] == "7"
    assert "nvidia.com/gpu.memory" not in labels


def test_of_shared_gpus_nothing_uncertain_is_promised() -> None:
    """Time slicing renames the product on some clusters and not on others."""
    labels = template(H100_TYPE, override_num_gpus=4).labels
    assert labels["nvidia.com/gpu.present"] == "true"
    assert labels["nvidia.com/gpu.family"] == "hopper"
    assert "nvidia.com/gpu.product" not in labels


def test_mixed_mig_nodes_show_no_whole_gpus_and_carry_no_gpu_label() -> None:
    """With the label the autoscaler would hold the node for unready for ever: it looks for `nvidia.com/gpu` alone."""
    node = template(H100_TYPE, resources={"nvidia.com/gpu": "0", "nvidia.com/mig-1g.10gb": "7"})
    assert node.capacity["nvidia.com/mig-1g.10gb"] == node.allocatable["nvidia.com/mig-1g.10gb"] == 7
    assert "nvidia.com/gpu" not in node.capacity
    assert "verda.com/gpu" not in node.labels


def test_a_malformed_quantity_is_a_value_error() -> None:
    """Loading the configuration refuses it before; here it must not pass silently."""
    with pytest.raises(ValueError, match="16GB"):
        template(CPU_TYPE, resources={"memory": "16GB"})


@settings(max_examples=60)
@given(
    name=st.text(min_size=1, max_size=80),
    cpus=st.integers(0, 1024),
    memory_gb=st.decimals(0, 10_000, places=2),
    gpus=st.integers(0, 16),
    gpu_name=st.text(max_size=80),
    labels=st.dictionaries(st.text(min_size=1, max_size=20), st.text(max_size=80), max_size=4),
)
def test_whatever_the_catalogue_says_the_node_is_valid(
    name: str, cpus: int, memory_gb: Decimal, gpus: int, gpu_name: str, labels: dict[str, str]
) -> None:
    """F40: no new type may break the template; sizes stay sane and every label value legal."""
    kind = CPU_TYPE.model_copy(
        update={"name": name, "cpus": cpus, "memory_gb": memory_gb, "gpus": gpus, "gpu_name": gpu_name, "model": ""}
    )
    node = template(kind, labels=labels)
    assert node.allocatable.keys() == node.capacity.keys()
    for resource, size in node.capacity.items():
        assert 0 <= node.allocatable[resource] <= size
    assert node.capacity["memory"] <= memory_gb * GIB
    assert all(LABEL_VALUE.fullmatch(value) for value in node.labels.values())
    assert ("verda.com/gpu" in node.labels) == (gpus > 0)
