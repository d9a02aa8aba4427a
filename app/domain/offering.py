"""What can be bought: instance types as the catalogue shows them, contracts, prices."""

from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum

from pydantic import BaseModel, ConfigDict


class Contract(StrEnum):
    """How a machine is paid for. Long-term contracts are bought ahead and never autoscaled."""

    ON_DEMAND = "on-demand"
    SPOT = "spot"


class InstanceType(BaseModel):
    """One entry of the cloud's catalogue.

    Sizes are the machine's totals as the API states them: `memory_gb` and `gpu_memory_gb` in the API's gigabytes, the
    latter summed over all GPUs; `storage_gb` only for types with a fixed disk. Prices are per hour for the whole
    machine. An empty `supported_images` means the API does not say, not that there are none.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    cpus: int
    memory_gb: Decimal
    gpus: int
    gpu_memory_gb: Decimal
    gpu_name: str
    model: str
    manufacturer: str
    storage_gb: Decimal | None
    on_demand_price: Decimal | None
    spot_price: Decimal | None
    currency: str
    supported_images: tuple[str, ...] = ()

    def price(self, contract: Contract) -> Decimal | None:
        """Price per hour under a contract, None if the catalogue does not say."""
        return self.spot_price if contract is Contract.SPOT else self.on_demand_price


@dataclass(frozen=True, slots=True, kw_only=True)
class Offering:
    """Something that can be ordered: an instance type at a location under a contract."""

    instance_type: str
    location: str
    contract: Contract
