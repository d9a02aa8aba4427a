"""How NVIDIA's Multi-Instance GPU cuts a GPU into devices: which layouts a model has, and what nodes then show.

Names of layouts are those of the configuration that NVIDIA's MIG manager ships; sizes and counts are those of the MIG
user guide. A layout cuts every GPU of a machine alike.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from app.domain.gpu import gpu_type
from app.domain.offering import InstanceType


class MigStrategy(StrEnum):
    """How the device plugin names the devices: all as `nvidia.com/gpu`, or each by its size."""

    SINGLE = "single"
    MIXED = "mixed"


_MODELS: Final[Mapping[tuple[str, int], Mapping[str, int]]] = {
    ("a100", 40): {"1g.5gb": 7, "1g.10gb": 4, "2g.10gb": 3, "3g.20gb": 2, "4g.20gb": 1, "7g.40gb": 1},
    ("a100", 80): {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    ("h100", 80): {"1g.10gb": 7, "1g.20gb": 4, "2g.20gb": 3, "3g.40gb": 2, "4g.40gb": 1, "7g.80gb": 1},
    ("h200", 141): {"1g.18gb": 7, "1g.35gb": 4, "2g.35gb": 3, "3g.71gb": 2, "4g.71gb": 1, "7g.141gb": 1},
    ("b200", 180): {"1g.23gb": 7, "1g.45gb": 4, "2g.45gb": 3, "3g.90gb": 2, "4g.90gb": 1, "7g.180gb": 1},
    ("b300", 262): {"1g.34gb": 7, "1g.67gb": 4, "2g.67gb": 3, "3g.135gb": 2, "4g.135gb": 1, "7g.269gb": 1},
    ("gb300", 288): {"1g.35gb": 7, "1g.70gb": 4, "2g.70gb": 3, "3g.139gb": 2, "4g.139gb": 1, "7g.278gb": 1},
    ("rtx-pro-6000", 96): {"1g.24gb": 4, "2g.48gb": 2, "4g.96gb": 1},
}
"""Model and GB of a GPU as the catalogue has them → size of a device → most of them on one GPU."""

_BALANCED: Final = {"1g": 2, "2g": 1, "3g": 1}
"""The manager's `all-balanced`: by compute slices, with the smallest memory that each of them has."""

_UNIFORM: Final = re.compile(r"all-(?P<size>[1-7]g\.[0-9]{1,3}gb)")
_IN_TYPE_NAME: Final = re.compile(r"[0-9]+(?P<model>[A-Z]+[0-9]+[A-Z]*)(?:\.(?P<memory>[0-9]+)S)?\.[0-9]+V")


@dataclass(frozen=True, slots=True, kw_only=True)
class MigLayout:
    """What one GPU becomes: the size of each of its devices, largest last."""

    devices: tuple[str, ...]

    @property
    def is_uniform(self) -> bool:
        """All devices have one size, so that the "single" strategy can be used."""
        return len(set(self.devices)) == 1

    def resources(self, strategy: MigStrategy, gpus: int) -> dict[str, int]:
        """Resource names and counts that a node with so many GPUs shows.

        The "single" strategy of a layout that it cannot name leaves the GPUs whole.
        """
        if strategy is MigStrategy.SINGLE:
            return {"nvidia.com/gpu": (len(self.devices) if self.is_uniform else 1) * gpus}
        return {f"nvidia.com/mig-{size}": count * gpus for size, count in Counter(self.devices).items()}


def mig_layout(profile: str, kind: InstanceType) -> MigLayout | None:
    """The layout of a machine's GPUs, None if its model has none of that name."""
    if kind.gpus <= 0:
        return None
    sizes = _MODELS.get((gpu_type(kind) or "", round(kind.gpu_memory_gb / kind.gpus)))
    return None if sizes is None else _layout(profile, sizes)


def mig_refusal(profile: str, instance_type: str) -> str | None:
    """Why a machine of this type cannot be cut like that, as far as its name tells; None if it may be.

    For the check before the catalogue is known. Models that the table does not have are refused: a layout that nobody
    has counted promises pods what may not be there.
    """
    if instance_type.startswith("CPU."):
        return f"{instance_type} has no GPU"
    found = _IN_TYPE_NAME.fullmatch(instance_type)
    model = found["model"].lower() if found else instance_type.lower()
    memory = int(found["memory"]) if found and found["memory"] else None
    known = [sizes for (slug, gb), sizes in _MODELS.items() if slug.replace("-", "") == model and memory in {None, gb}]
    if not known:
        models = ", ".join(dict.fromkeys(slug.upper() for slug, _ in _MODELS))
        return f"the GPUs of {instance_type} cannot be cut: only {models} can"
    if any(_layout(profile, sizes) is not None for sizes in known):
        return None
    names = dict.fromkeys(f"all-{size}" for sizes in known for size in sizes)
    return f"{instance_type} has no such layout, but {', '.join(names)} and all-balanced"


def mig_strategy_refusal(profile: str, strategy: MigStrategy) -> str | None:
    """Why a layout does not go with a strategy."""
    if strategy is MigStrategy.SINGLE and not _UNIFORM.fullmatch(profile):
        return f"{profile} makes devices of several sizes, which only mig_strategy mixed can name"
    return None


def _layout(profile: str, sizes: Mapping[str, int]) -> MigLayout | None:
    found = _UNIFORM.fullmatch(profile)
    if found is not None:
        count = sizes.get(found["size"])
        return MigLayout(devices=(found["size"],) * count) if count else None
    if profile != "all-balanced" or not all(any(size.startswith(part) for size in sizes) for part in _BALANCED):
        return None
    parts = ((next(size for size in sizes if size.startswith(part)), count) for part, count in _BALANCED.items())
    return MigLayout(devices=tuple(size for size, count in parts for _ in range(count)))
