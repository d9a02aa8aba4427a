"""What the GPUs of an instance type are called in Kubernetes, worked out from the catalogue alone.

Models come and go at Verda without notice, so nothing here needs to know a model in advance: what the tables do not
name follows from rules. Words for product and family are those of NVIDIA's GPU feature discovery.
"""

import re
from decimal import Decimal
from typing import Final

from app.domain.offering import InstanceType

LABEL_VALUE_LENGTH: Final = 63
"""Kubernetes: characters in a label value."""

_NOISE: Final = re.compile(r"\b(?:\d+x|\d+\s?gb|sxm\d*|pcie|nvl\d*|hbm\d*e?|nvidia|tesla|quadro|geforce)\b")
"""Words of a model's name that tell maker, socket or memory, not the model."""

_TYPE_NAME: Final = re.compile(r"\d+([A-Z][A-Z0-9]*)")
"""`8H100.80S.176V`: count, model, then sizes that must not be trusted."""

_ARM_SUPERCHIP: Final = re.compile(r"(?:gb|gh|vr)\d")
"""Grace Blackwell, Grace Hopper, Vera Rubin: NVIDIA names the pair after its Arm CPU and its GPU."""

_PRODUCTS: Final = {
    "v100": "Tesla-V100-SXM2-{memory}GB",
    "a100": "NVIDIA-A100-SXM4-{memory}GB",
    "h100": "NVIDIA-H100-80GB-HBM3",
    "h200": "NVIDIA-H200",
    "b200": "NVIDIA-B200",
    "b300": "NVIDIA-B300-SXM6-AC",
    "gb200": "NVIDIA-GB200",
    "gb300": "NVIDIA-GB300",
    "l40s": "NVIDIA-L40S",
    "rtx-a6000": "NVIDIA-RTX-A6000",
    "rtx-6000-ada": "NVIDIA-RTX-6000-Ada-Generation",
    "rtx-pro-6000": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
}
"""What the driver calls the cards Verda sells, with `-` for blanks, as feature discovery writes it."""

_WORKSTATION_FAMILIES: Final = {"rtx-a6000": "ampere", "rtx-6000-ada": "ada-lovelace", "rtx-pro-6000": "blackwell"}

_FAMILY_LETTER: Final = re.compile(r"(?:g(?=[bh])|v(?=r))?([vtalhbr])\d")
_FAMILIES: Final = {
    "v": "volta",
    "t": "turing",
    "a": "ampere",
    "l": "ada-lovelace",
    "h": "hopper",
    "b": "blackwell",
    "r": "rubin",
}
"""Data centre cards begin with the initial of their architecture (Lovelace's is L)."""


def label_value(text: str) -> str:
    """The nearest valid label value: letters, digits, `-_.`, alphanumeric at both ends, at most 63 characters."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", text)[:LABEL_VALUE_LENGTH].strip("-_.")


def gpu_type(kind: InstanceType) -> str | None:
    """The GPU model as a short label value (`h100`, `rtx-6000-ada`), None for a machine without GPUs.

    It is the model alone, without socket and memory, so that limits like `--gpu-total=a100:0:8` mean all of a model.
    """
    if kind.gpus <= 0:
        return None
    in_type_name = _TYPE_NAME.match(kind.name)
    for text in (kind.model, kind.gpu_name, in_type_name[1] if in_type_name else ""):
        slug = label_value(_NOISE.sub(" ", text.lower()).strip()).replace("_", "-")
        if slug:
            return slug
    return "gpu"


def gpu_product(kind: InstanceType) -> str:
    """What feature discovery will write into `nvidia.com/gpu.product` of a machine with GPUs.

    For a model that is not in the table: the catalogue's name with the maker before it. Drivers begin that way, but may
    tell socket and memory differently; a label of the node group overrides it.
    """
    known = _PRODUCTS.get(gpu_type(kind) or "")
    if known is not None:
        return known.format(memory=int(_memory_gb_per_gpu(kind)))
    name = kind.gpu_name or kind.model or gpu_type(kind) or ""
    return label_value(name if name.upper().startswith("NVIDIA") else f"NVIDIA {name}")


def gpu_family(kind: InstanceType) -> str | None:
    """The architecture as feature discovery names it, None when the model's name does not tell."""
    slug = gpu_type(kind) or ""
    if slug in _WORKSTATION_FAMILIES:
        return _WORKSTATION_FAMILIES[slug]
    match = _FAMILY_LETTER.match(slug)
    return _FAMILIES[match[1]] if match else None


def gpu_memory_mib(kind: InstanceType) -> int:
    """Memory of one GPU in MiB: the catalogue's figure, read as GiB. Drivers report up to 6 % less (ECC, firmware)."""
    return int(_memory_gb_per_gpu(kind) * 1024)


def architecture(kind: InstanceType) -> str:
    """CPU architecture in Kubernetes' words: arm64 for NVIDIA's superchips, which pair the GPU with an Arm CPU."""
    return "arm64" if _ARM_SUPERCHIP.match(gpu_type(kind) or "") else "amd64"


def _memory_gb_per_gpu(kind: InstanceType) -> Decimal:
    return kind.gpu_memory_gb / kind.gpus if kind.gpus > 0 else Decimal(0)
