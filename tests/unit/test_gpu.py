import re
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.domain.gpu import (
    architecture,
    gpu_family,
    gpu_memory_mib,
    gpu_product,
    gpu_type,
    label_value,
)
from app.domain.offering import InstanceType

LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?)?")


def gpus(name: str, gpu_name: str, model: str, *, count: int = 1, memory_gb: str = "80") -> InstanceType:
    """A GPU machine as the catalogue describes it; `memory_gb` is the total of all GPUs."""
    return InstanceType(
        name=name,
        cpus=30,
        memory_gb=Decimal(120),
        gpus=count,
        gpu_memory_gb=Decimal(memory_gb),
        gpu_name=gpu_name,
        model=model,
        manufacturer="NVIDIA",
        storage_gb=None,
        on_demand_price=Decimal("2.29"),
        spot_price=Decimal("0.8015"),
        currency="usd",
    )


@pytest.mark.parametrize(
    ("kind", "slug", "product", "family", "arch"),
    [
        (
            gpus("1GB300.32V", "GB300 SXM6 288GB", "GB300", memory_gb="288"),
            "gb300",
            "NVIDIA-GB300",
            "blackwell",
            "arm64",
        ),
        (
            gpus("1B300.30V", "B300 SXM6 262GB", "B300", memory_gb="262"),
            "b300",
            "NVIDIA-B300-SXM6-AC",
            "blackwell",
            "amd64",
        ),
        (gpus("1B200.30V", "B200 SXM6 180GB", "B200", memory_gb="180"), "b200", "NVIDIA-B200", "blackwell", "amd64"),
        (gpus("1H200.141S.44V", "H200 SXM5 141GB", "H200", memory_gb="141"), "h200", "NVIDIA-H200", "hopper", "amd64"),
        (gpus("1H100.80S.32V", "H100 SXM5 80GB", "H100"), "h100", "NVIDIA-H100-80GB-HBM3", "hopper", "amd64"),
        (
            gpus("8A100.176V", "A100 SXM4 80GB", "A100 80GB", count=8, memory_gb="640"),
            "a100",
            "NVIDIA-A100-SXM4-80GB",
            "ampere",
            "amd64",
        ),
        (
            gpus("1A100.40S.22V", "A100 SXM4 40GB", "A100 40GB", memory_gb="40"),
            "a100",
            "NVIDIA-A100-SXM4-40GB",
            "ampere",
            "amd64",
        ),
        (
            gpus("1V100.6V", "Tesla V100 16GB", "Tesla V100", memory_gb="16"),
            "v100",
            "Tesla-V100-SXM2-16GB",
            "volta",
            "amd64",
        ),
        (
            gpus("1RTXPRO6000.30V", "RTX PRO 6000 96GB", "RTX PRO 6000", memory_gb="96"),
            "rtx-pro-6000",
            "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
            "blackwell",
            "amd64",
        ),
        (gpus("1L40S.20V", "L40S 48GB", "L40S", memory_gb="48"), "l40s", "NVIDIA-L40S", "ada-lovelace", "amd64"),
        (
            gpus("1RTX6000ADA.10V", "RTX 6000 Ada 48GB", "RTX 6000 Ada", memory_gb="48"),
            "rtx-6000-ada",
            "NVIDIA-RTX-6000-Ada-Generation",
            "ada-lovelace",
            "amd64",
        ),
        (
            gpus("1A6000.10V", "RTX A6000 48GB", "RTX A6000", memory_gb="48"),
            "rtx-a6000",
            "NVIDIA-RTX-A6000",
            "ampere",
            "amd64",
        ),
        (
            gpus("2GB200.186V", "GB200", "GB200", count=2, memory_gb="372"),
            "gb200",
            "NVIDIA-GB200",
            "blackwell",
            "arm64",
        ),
    ],
    ids=lambda value: value.name if isinstance(value, InstanceType) else None,
)
def test_models_verda_sells_are_named_as_drivers_name_them(
    kind: InstanceType, slug: str, product: str, family: str, arch: str
) -> None:
    """A pod that selects by product must find the group at zero and the real node alike."""
    assert (gpu_type(kind), gpu_product(kind), gpu_family(kind), architecture(kind)) == (slug, product, family, arch)


def test_a_model_nobody_has_heard_of_gets_names_by_rule() -> None:
    """F40: Verda adds types without notice; a group of them must work without a release of ours."""
    kind = gpus("4R300.1440V", "NVIDIA R300 288GB", "R300", count=4, memory_gb="1152")
    assert gpu_type(kind) == "r300"
    assert gpu_product(kind) == "NVIDIA-R300-288GB"
    assert gpu_memory_mib(kind) == 294912
    assert gpu_family(kind) == "rubin"
    assert architecture(kind) == "amd64"


def test_vera_rubin_is_an_arm_machine() -> None:
    """NVIDIA names a superchip by its CPU's and its GPU's initials; Vera is an Arm CPU as Grace is."""
    kind = gpus("1VR200.44V", "VR200 288GB", "VR200", memory_gb="288")
    assert architecture(kind) == "arm64"
    assert gpu_family(kind) == "rubin"


@pytest.mark.parametrize(
    ("kind", "slug"),
    [
        (gpus("1X9.10V", "1x X9 SXM7 24GB", ""), "x9"),
        (gpus("2X9.20V", "", "", count=2), "x9"),
        (gpus("mystery", "80GB", "NVIDIA"), "gpu"),
        (gpus("1MI300X.20V", "AMD Instinct MI300X 192GB", "AMD Instinct MI300X"), "amd-instinct-mi300x"),
    ],
)
def test_the_type_is_found_wherever_the_catalogue_tells_it(kind: InstanceType, slug: str) -> None:
    """Model, then name, then the type's own name; never an empty label value."""
    assert gpu_type(kind) == slug


def test_machines_without_gpus_have_no_gpu_type() -> None:
    """The catalogue calls a CPU machine's model `CPU Node` and its name `AMD EPYC`: neither is a GPU."""
    kind = gpus("CPU.8V.32G", "AMD EPYC", "CPU Node", count=0, memory_gb="0")
    assert gpu_type(kind) is None
    assert architecture(kind) == "amd64"
    assert gpu_memory_mib(kind) == 0


def test_memory_is_per_gpu_though_the_catalogue_tells_the_sum() -> None:
    """Four B300 have 1050 GB, which is not four times the 262 of one."""
    assert gpu_memory_mib(gpus("4B300.120V", "B300 SXM6 262GB", "B300", count=4, memory_gb="1050")) == 268800


@settings(max_examples=100)
@given(st.text(max_size=100))
def test_every_text_becomes_a_valid_label_value(text: str) -> None:
    """One invalid label makes the API server refuse the whole node."""
    assert LABEL_VALUE.fullmatch(label_value(text))


def test_dots_stay_in_label_values() -> None:
    """Names of types contain dots, which are legal there."""
    assert label_value("8H100.80S.176V") == "8H100.80S.176V"
    assert label_value("-RTX PRO 6000 (Ünicode)-") == "RTX-PRO-6000-nicode"
