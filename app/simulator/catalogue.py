"""What can be bought: types with moving prices, images, locations, volume types."""

import functools
import math
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from app.simulator.catalogue_data import DEFAULT_IMAGE, FAMILIES, IMAGES, LOCATIONS, TYPES, TypeRow
from app.simulator.core import Core

_ROWS: Mapping[str, TypeRow] = MappingProxyType({row.name: row for row in TYPES})
_SPOT_BASE = 0.35
_EUR = {"usd": 1.0, "eur": 0.92}
"""Guess: the API converts, but nobody publishes at which rate."""


def significant(price: float) -> str:
    """Four significant digits with trailing zeros, as the API prints prices: `5.450`, `0.02790`, `10.90`."""
    return f"{price:#.4g}"


def _fixed_id(kind: str, name: str) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"https://api.verda.com/{kind}/{name}"))


@functools.cache
def hardware(row: TypeRow) -> Mapping[str, object]:
    """The part of a type's and an instance's object that describes the machine."""
    family = FAMILIES[row.family]
    return {
        "cpu": {"description": f"{row.cpus} CPU", "number_of_cores": row.cpus},
        "gpu": {"description": f"{row.gpus}x {family.label}" if row.gpus else "", "number_of_gpus": row.gpus},
        "gpu_memory": {
            "description": f"{row.gpu_memory_gb}GB GPU RAM" if row.gpus else "",
            "size_in_gigabytes": row.gpu_memory_gb,
        },
        "memory": {"description": f"{row.memory_gb}GB RAM", "size_in_gigabytes": row.memory_gb},
    }


@dataclass(frozen=True, slots=True)
class TypeOnSale:
    """One instance type at this moment; prices in dollars per hour as the API prints them."""

    name: str
    row: TypeRow
    price: str
    spot_price: str

    @property
    def units(self) -> int:
        """What one machine takes from its pool: GPUs, or vCPUs for a type without GPUs."""
        return self.row.gpus or self.row.cpus

    def price_micro(self, *, spot: bool) -> int:
        """Millionths of a dollar per hour."""
        return round(float(self.spot_price if spot else self.price) * 1_000_000)

    @property
    def supported_os(self) -> tuple[str, ...]:
        """Images the type accepts; empty means the API does not say."""
        return FAMILIES[self.row.family].supported_os


class Catalogue:
    """The shop window."""

    def __init__(self, core: Core) -> None:
        self._core = core

    def find(self, name: str) -> TypeOnSale | None:
        """The type of that name, unless it was taken off the list."""
        market = self._core.state.market
        original = market.renamed.get(name, name)
        row = _ROWS.get(original)
        if row is None or name in market.removed:
            return None
        factor = market.factor.get(original, 1.0)
        ratio = market.spot_ratio.get(original, _SPOT_BASE) / _SPOT_BASE
        price, spot = significant(float(row.price) * factor), significant(float(row.spot_price) * factor * ratio)
        return TypeOnSale(name=name, row=row, price=price, spot_price=spot)

    def row(self, name: str) -> TypeRow:
        """The hardware behind a type's name, even when it is no longer sold."""
        return _ROWS[self._core.state.market.renamed.get(name, name)]

    def units(self, name: str) -> int:
        """What a machine of a type takes from its pool: GPUs, or vCPUs for a type without GPUs."""
        row = self.row(name)
        return row.gpus or row.cpus

    def types(self) -> Iterator[TypeOnSale]:
        """Every type on the list, in the API's order."""
        names = {original: name for name, original in self._core.state.market.renamed.items()}
        for row in TYPES:
            if found := self.find(names.get(row.name, row.name)):
                yield found

    def step_prices(self) -> None:
        """One step of the price walk: a small lognormal move, pulled back to the base price, within bounds."""
        core, market, rules = self._core, self._core.state.market, self._core.config.prices
        market.steps += 1
        for row in TYPES:
            generator = core.chance.stream("price", f"{row.name}|{market.steps}")
            factor = market.factor.get(row.name, 1.0)
            pulled = math.log(factor) * (1 - rules.pull) + generator.gauss(0, rules.sigma)
            market.factor[row.name] = min(max(math.exp(pulled), 0.5), 1.5)
            ratio = market.spot_ratio.get(row.name, _SPOT_BASE)
            moved = ratio + (_SPOT_BASE - ratio) * rules.pull + generator.gauss(0, rules.sigma)
            market.spot_ratio[row.name] = min(max(moved, 0.25), 0.5)

    def jump_price(self, name: str, factor: float) -> None:
        """Multiply one type's price, or every type's when the name is `*`."""
        market = self._core.state.market
        for row in TYPES:
            if name in {"*", row.name}:
                market.factor[row.name] = market.factor.get(row.name, 1.0) * factor


def type_document(item: TypeOnSale, currency: str = "usd") -> dict[str, object]:
    """One element of GET /instance-types."""
    row, family = item.row, FAMILIES[item.row.family]
    rate = _EUR.get(currency, 1.0)
    price, spot = float(item.price) * rate, float(item.spot_price) * rate
    storage: dict[str, object] = {"description": "dynamic"}
    if row.fixed_storage_gb is not None:
        storage = {"description": f"{row.fixed_storage_gb}GB NVME", "size_in_gigabytes": row.fixed_storage_gb}
    return {
        "best_for": list(family.best_for),
        **hardware(row),
        "deploy_warning": family.deploy_warning,
        "description": "Dedicated Hardware Instance",
        "id": _fixed_id("instance-type", row.name),
        "instance_type": item.name,
        "model": family.model,
        "name": family.label,
        "p2p": row.p2p,
        "price_per_hour": significant(price),
        "spot_price": significant(spot),
        "dynamic_price": significant(price),
        "max_dynamic_price": significant(price * 1.5),
        "serverless_price": significant(price * 1.1),
        "serverless_spot_price": significant(spot * 1.1),
        "storage": storage,
        "currency": currency,
        "manufacturer": family.manufacturer,
        "display_name": "Genoa" if row.cpus >= 180 and not row.gpus else family.display_name,  # noqa: PLR2004
        "supported_os": list(family.supported_os),
    }


@functools.cache
def image_name(image_type: str) -> str:
    """The display name: `ubuntu-24.04-cuda-12.8-open-docker` is `Ubuntu 24.04 + CUDA 12.8 Open + Docker`."""
    if not image_type.startswith("ubuntu-"):
        return image_type.replace(".", " ").title()
    words = image_type.split("-")
    name = f"Ubuntu {words[1]}"
    if "cuda" in words:
        name += f" + CUDA {words[words.index('cuda') + 1]}"
    name += " Open" if "open" in words else ""
    name += " + Docker" if "docker" in words else ""
    return name + (" Cluster" if "cluster" in words else "")


def image_id(image_type: str) -> str:
    """The image's UUID, which a create accepts as well as the name."""
    return _fixed_id("image", image_type)


_BY_ID: Mapping[str, str] = MappingProxyType({image_id(name): name for name in IMAGES})


def _category(image_type: str) -> str:
    if "kubernetes" in image_type:
        return "kubernetes"
    if "jupyter" in image_type:
        return "jupyter"
    return "docker" if image_type.endswith("-docker") else "ubuntu"


def image_documents(supported: tuple[str, ...] | None = None) -> list[dict[str, object]]:
    """GET /images, all or those a type supports."""
    return [
        {
            "id": image_id(name),
            "image_type": name,
            "name": image_name(name),
            "is_default": name == DEFAULT_IMAGE,
            "is_cluster": name.endswith("-cluster"),
            "details": image_name(name).split(" + "),
            "category": _category(name),
        }
        for name in IMAGES
        if supported is None or name in supported
    ]


def resolve_image(image: str) -> str | None:
    """The `image_type` meant by a name or a UUID."""
    return image if image in _BY_ID.values() else _BY_ID.get(image)


def location_documents() -> list[dict[str, object]]:
    """GET /locations."""
    return [{"code": code, "name": name, "country_code": country} for code, name, country in LOCATIONS]


def volume_type_documents(price: float) -> list[dict[str, object]]:
    """GET /volume-types; the price is dollars per GB and month."""
    return [
        {
            "type": kind,
            "price": {"price_per_month_per_gb": price, "cps_per_gb": price / (730 * 3600), "currency": "usd"},
            "is_shared_fs": shared,
            "burst_bandwidth": 2500,
            "continuous_bandwidth": 2000,
            "internal_network_speed": 50,
            "iops": "100k",
            "throughput_gbps": 4,
        }
        for kind, shared in (("NVMe", False), ("NVMe_Shared", True))
    ]
