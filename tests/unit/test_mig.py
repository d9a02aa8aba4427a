"""MIG: what a layout makes of a GPU, by NVIDIA's MIG user guide and its manager's names."""

from decimal import Decimal

import pytest

from app.domain.mig import MigLayout, MigStrategy, mig_layout, mig_refusal, mig_strategy_refusal
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.template import build_template, kubelet_labels


def gpus(model: str, memory_gb: int, count: int = 1) -> InstanceType:
    """An instance type with GPUs of this model and memory."""
    return InstanceType(
        name=f"{count}{model.replace(' ', '')}.30V",
        cpus=30,
        memory_gb=Decimal(120),
        gpus=count,
        gpu_memory_gb=Decimal(memory_gb * count),
        gpu_name=model,
        model=model,
        manufacturer="NVIDIA",
        storage_gb=None,
        on_demand_price=None,
        spot_price=None,
        currency="usd",
    )


def group(kind: InstanceType, profile: str, strategy: MigStrategy) -> NodeGroupSpec:
    """A group whose GPUs are cut."""
    return NodeGroupSpec(
        name="mig",
        min_size=0,
        max_size=2,
        instance_type=kind.name,
        image="ubuntu-24.04",
        locations=("FIN-01",),
        mig_profile=profile,
        mig_strategy=strategy,
    )


@pytest.mark.parametrize(
    ("profile", "model", "memory_gb", "devices"),
    [
        ("all-1g.10gb", "H100", 80, 7),
        ("all-1g.20gb", "H100", 80, 4),
        ("all-2g.20gb", "A100", 80, 3),
        ("all-3g.40gb", "A100", 80, 2),
        ("all-4g.40gb", "H100", 80, 1),
        ("all-7g.80gb", "H100", 80, 1),
        ("all-1g.5gb", "A100", 40, 7),
        ("all-1g.10gb", "A100", 40, 4),
        ("all-3g.20gb", "A100", 40, 2),
        ("all-1g.18gb", "H200", 141, 7),
        ("all-3g.71gb", "H200", 141, 2),
        ("all-1g.23gb", "B200", 180, 7),
        ("all-2g.45gb", "B200", 180, 3),
        ("all-1g.24gb", "RTX PRO 6000", 96, 4),
        ("all-4g.96gb", "RTX PRO 6000", 96, 1),
    ],
)
def test_devices_are_counted_as_nvidias_guide_counts_them(
    profile: str, model: str, memory_gb: int, devices: int
) -> None:
    """The same profile is another number on another memory."""
    size = profile.removeprefix("all-")
    assert mig_layout(profile, gpus(model, memory_gb)) == MigLayout(devices=(size,) * devices)


def test_a_balanced_layout_has_devices_of_three_sizes() -> None:
    """Two of one slice, one of two, one of three: seven slices in all."""
    layout = mig_layout("all-balanced", gpus("H100", 80, count=8))
    assert layout == MigLayout(devices=("1g.10gb", "1g.10gb", "2g.20gb", "3g.40gb"))
    assert layout.resources(MigStrategy.MIXED, 8) == {
        "nvidia.com/mig-1g.10gb": 16,
        "nvidia.com/mig-2g.20gb": 8,
        "nvidia.com/mig-3g.40gb": 8,
    }
    assert not layout.is_uniform


@pytest.mark.parametrize("profile", ["all-disabled", "1g.10gb", "all-8g.80gb", "all-1g.10gb.me", "all-1g.18gb", ""])
def test_layouts_that_the_model_does_not_have_are_none(profile: str) -> None:
    """Nothing is guessed: a pod would wait for a device that never comes."""
    assert mig_layout(profile, gpus("H100", 80)) is None


def test_gpus_that_cannot_be_cut_have_no_layout() -> None:
    """Volta, Ada, a machine without GPUs, one that the catalogue has not filled in."""
    for kind in (gpus("V100", 16), gpus("L40S", 48), gpus("H100", 80, count=0), gpus("H100", 0)):
        assert mig_layout("all-1g.10gb", kind) is None


@pytest.mark.parametrize(
    ("instance_type", "profile", "refusal"),
    [
        ("1H100.80S.32V", "all-1g.10gb", None),
        ("1A100.22V", "all-1g.5gb", None),
        ("1A100.22V", "all-1g.10gb", None),
        ("8H100.80S.176V", "all-balanced", None),
        ("1RTXPRO6000.30V", "all-1g.24gb", None),
        ("1A100.40S.22V", "all-1g.20gb", "1A100.40S.22V has no such layout, but all-1g.5gb, all-1g.10gb, "),
        ("1RTXPRO6000.30V", "all-balanced", "1RTXPRO6000.30V has no such layout, but all-1g.24gb, "),
        ("1V100.6V", "all-1g.5gb", "the GPUs of 1V100.6V cannot be cut: only A100, H100, H200, B200, B300, GB300, "),
        ("1RTX6000ADA.10V", "all-1g.24gb", "the GPUs of 1RTX6000ADA.10V cannot be cut"),
        ("CPU.4V.16G", "all-1g.10gb", "CPU.4V.16G has no GPU"),
    ],
)
def test_wrong_pairs_are_told_by_the_type_s_name(instance_type: str, profile: str, refusal: str | None) -> None:
    """Before the catalogue is known; memory counts where the name has it."""
    told = mig_refusal(profile, instance_type)
    assert told is None if refusal is None else (told is not None and told.startswith(refusal))


def test_only_a_uniform_layout_goes_with_the_single_strategy() -> None:
    """The device plugin refuses to start otherwise."""
    assert mig_strategy_refusal("all-1g.10gb", MigStrategy.SINGLE) is None
    assert mig_strategy_refusal("all-balanced", MigStrategy.MIXED) is None
    assert "several sizes" in str(mig_strategy_refusal("all-balanced", MigStrategy.SINGLE))


def test_under_the_mixed_strategy_a_node_shows_devices_by_size_and_no_whole_gpu() -> None:
    """And no GPU label, or the autoscaler would hold the node for unready for ever; the MIG manager's label it has."""
    kind = gpus("H100", 80, count=2)
    spec = group(kind, "all-1g.10gb", MigStrategy.MIXED)
    node = build_template(spec, kind, Contract.SPOT)
    assert node.capacity["nvidia.com/mig-1g.10gb"] == node.allocatable["nvidia.com/mig-1g.10gb"] == 14
    assert "nvidia.com/gpu" not in node.capacity
    assert "verda.com/gpu" not in node.labels
    assert {key: value for key, value in node.labels.items() if key.startswith("nvidia.com/")} == {
        "nvidia.com/mig.config": "all-1g.10gb",
        "nvidia.com/mig.strategy": "mixed",
        "nvidia.com/gpu.present": "true",
        "nvidia.com/gpu.family": "hopper",
        "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3",
        "nvidia.com/gpu.count": "2",
    }
    assert kubelet_labels(spec, kind, Contract.SPOT)["nvidia.com/mig.config"] == "all-1g.10gb"


def test_under_the_single_strategy_devices_are_gpus() -> None:
    """Seven a GPU, so fourteen; the strategy's label is feature discovery's."""
    kind = gpus("H100", 80, count=2)
    node = build_template(group(kind, "all-1g.10gb", MigStrategy.SINGLE), kind, Contract.ON_DEMAND)
    assert node.capacity["nvidia.com/gpu"] == 14
    assert node.labels["nvidia.com/mig.strategy"] == "single"
    assert node.labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3-MIG-1g.10gb"
