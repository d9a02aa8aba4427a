"""What every story is set in: three node groups with traps in their names, and a small cloud with moods of its own."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract
from app.simulator.config import SimulatorConfig, parse_config
from app.startup.sources import ScriptSource
from tests.simulation.chance import stream

CLUSTER = "sim"
LOSS_BRAKE = 0.2
PARALLEL = 4

_GPU_IMAGE = "ubuntu-24.04-cuda-12.8-open-docker"
_CREATE_TIMEOUT = timedelta(minutes=6)
_PROVISION_TIMEOUT = timedelta(minutes=12)
_STOPPED_AFTER = timedelta(minutes=8)

GPU = NodeGroupSpec(
    name="gpu",
    min_size=0,
    max_size=4,
    instance_type="1H100.80S.30V",
    image=_GPU_IMAGE,
    locations=("FIN-01", "FIN-02"),
    create_timeout=_CREATE_TIMEOUT,
    provision_timeout=_PROVISION_TIMEOUT,
    stopped_after=_STOPPED_AFTER,
)
GPU_SPOT = NodeGroupSpec(
    name="gpu-spot",
    min_size=0,
    max_size=5,
    instance_type="1H100.80S.30V",
    image=_GPU_IMAGE,
    locations=("FIN-01", "FIN-02"),
    contracts=(Contract.SPOT, Contract.ON_DEMAND),
    startup_script="text",
    startup_script_keep=timedelta(minutes=2),
    create_timeout=_CREATE_TIMEOUT,
    provision_timeout=_PROVISION_TIMEOUT,
    stopped_after=_STOPPED_AFTER,
)
CPU = NodeGroupSpec(
    name="cpu",
    min_size=1,
    max_size=3,
    instance_type="CPU.4V.16G",
    image="ubuntu-24.04",
    locations=("FIN-03",),
    contracts=(Contract.SPOT,),
    provider_id_template="verda://{instance_id}",
    create_timeout=_CREATE_TIMEOUT,
    provision_timeout=_PROVISION_TIMEOUT,
    stopped_after=_STOPPED_AFTER,
    stopped_action="delete",
)

CONFIGURATIONS: tuple[tuple[NodeGroupSpec, ...], ...] = (
    (GPU, GPU_SPOT, CPU),
    (GPU, CPU),
    (GPU.model_copy(update={"max_size": 2}), GPU_SPOT, CPU),
    (
        GPU.model_copy(update={"locations": ("FIN-02",)}),
        GPU_SPOT.model_copy(update={"contracts": (Contract.ON_DEMAND,), "locations": ("FIN-02", "FIN-01")}),
        CPU,
    ),
)
"""What the operator may have written: everything; a group removed; one made smaller; other places and contracts."""

SCRIPTS: Mapping[str, ScriptSource] = {"gpu-spot": ScriptSource(template="#!/bin/sh\njoin {{ hostname }}\n")}
FOREIGN_SCRIPT = "ca:v1:other:gpu-spot-aaaaaaaa:1"
"""Somebody else's, under a name of another installation."""

GROUPS = tuple(spec.name for spec in CONFIGURATIONS[0])

POOLS: Mapping[str, Mapping[str, int]] = {
    "FIN-01": {"H100": 4, "CPU": 8},
    "FIN-02": {"H100": 3},
    "FIN-03": {"CPU": 12, "H100": 0},
}


def world_config(seed: int) -> SimulatorConfig:
    """The cloud of a seed: short lives, little stock, and one choice of everything that nobody has documented."""
    draw = stream("world", seed)
    data: dict[str, Any] = {
        "seed": seed,
        "clock": {"mode": "real"},
        "capacity": {"pools": POOLS},
        "scripts": ({"name": FOREIGN_SCRIPT, "text": "#!/bin/sh\n"},),
        "quotas": {"scripts": 5},
        "chances": {"validating": 0.4, "async_no_capacity": draw.choice((0.0, 0.3, 1.0))},
        "durations": {
            "preset": "realistic",
            "ordering": {"low": 1, "high": 12},
            "provisioning": {"low": 10, "high": draw.choice((60, 180, 400))},
            "validating": {"low": 1, "high": 8},
            "guest": {"low": 10, "high": 60},
            "shutting_down": {"low": 2, "high": 20},
            "booting": {"low": 5, "high": 30},
            "deleting": {"low": 1, "high": draw.choice((10, 70, 300))},
            "no_capacity": {"low": 1, "high": 30},
            "no_capacity_linger": draw.choice((30, 240)),
        },
        "behaviour": {
            "repeat_delete": draw.choice((204, 403)),
            "evict_via_deleting": draw.random() < 0.5,
            "quoted_ids": draw.random() < 0.2,
            "history_ttl_s": draw.choice((None, 900)),
        },
    }
    return parse_config(data)
