"""What the provider and the simulated cloud under test are configured with."""

from collections.abc import Mapping
from typing import Any, Final

from tests.protocol.clients import GENERATIONS

SECRET: Final = "s3cret-of-the-conformance-suite"
GPU_LABEL: Final = "verda.com/gpu"
BRISK: Final = "400ms"
"""Between two listings of a provider that does not live long."""

_CUDA = "ubuntu-24.04-cuda-12.8-open-docker"
_PLAIN = "ubuntu-24.04"

_OPTIONS: Mapping[str, Any] = {
    "scale_down_gpu_utilization_threshold": 0.7,
    "scale_down_unneeded_time": "30m",
    "ignore_daemon_sets_utilization": True,
}

KINDS: Final[Mapping[str, Mapping[str, Any]]] = {
    "gpu": {
        "instance_type": "1A100.22V",
        "image": _CUDA,
        "location": "FIN-01",
        "max_size": 100,
        "labels": {"example.com/pool": "training"},
        "taints": ["nvidia.com/gpu=present:NoSchedule"],
    },
    "spot": {
        "instance_type": "1H100.80S.30V",
        "image": _CUDA,
        "location": "FIN-02",
        "instance_option": "spot_only",
        "max_size": 20,
        "taints": ["nvidia.com/gpu=present:NoSchedule", "spot:PreferNoSchedule"],
    },
    "small": {"instance_type": "CPU.4V.16G", "image": _PLAIN, "location": "FIN-01", "max_size": 3},
    "base": {"instance_type": "CPU.8V.32G", "image": _PLAIN, "location": "ICE-01", "min_size": 2, "max_size": 4},
    "sold-out": {"instance_type": "1GB300.32V", "image": _PLAIN, "location": "FIN-01", "max_size": 5},
    "zoned": {
        "instance_type": "8H100.80S.176V",
        "image": _CUDA,
        "locations": ["FIN-02", "ICE-01"],
        "instance_option": "prefer_spot",
        "max_size": 4,
        "labels": {"example.com/team": "research", "example.com/empty": ""},
        "taints": ["example.com/team=research:NoExecute"],
        "startup_taints": ["example.com/booting:NoSchedule"],
    },
    "tuned": {
        "instance_type": "1A6000.10V",
        "image": _CUDA,
        "location": "FIN-03",
        "max_size": 2,
        "autoscaling_options": _OPTIONS,
    },
    "tuned-forced": {
        "instance_type": "1A6000.10V",
        "image": _CUDA,
        "location": "FIN-03",
        "max_size": 2,
        "autoscaling_options": {**_OPTIONS, "force_for_new_autoscalers": True},
    },
    "stopping": {
        "instance_type": "1L40S.20V",
        "image": _CUDA,
        "location": "FIN-02",
        "max_size": 10,
        "stopped": {"after": "1s", "action": "delete"},
    },
    "misfit": {"instance_type": "1A100.22V", "image": _CUDA, "location": "FIN-01", "max_size": 5},
    "crowd": {"instance_type": "CPU.4V.16G", "image": _PLAIN, "location": "FIN-01", "max_size": 1000},
    "unknown-type": {"instance_type": "9X900.1V", "image": _PLAIN, "location": "FIN-01", "max_size": 2},
}
"""Node groups by kind; a provider has one or more of a kind."""

COPIES: Final[Mapping[str, int]] = {"gpu": 6, "spot": 2, "small": 2, "base": 2, "sold-out": 2}
"""How many groups of a kind tests may take turns in; one of every other."""

HARDWARE: Final[Mapping[str, Mapping[str, int]]] = {
    "FIN-01": {"A100": 800, "CPU": 8000, "GB300": 0},
    "FIN-02": {"H100": 800, "L40S": 80},
    "FIN-03": {"A6000": 80},
    "ICE-01": {"CPU": 8000, "H100": 80},
}
"""Stock by location and family; there is never a GB300."""


def names_of(kind: str) -> tuple[str, ...]:
    """The groups of a kind: `gpu`, `gpu-b`, `gpu-c`. One name begins another on purpose."""
    return (kind, *(f"{kind}-{letter}" for letter in "bcdefgh"[: COPIES.get(kind, 1) - 1]))


def name_for(kind: str, generation: str) -> str:
    """The group of a kind that belongs to one generation alone."""
    return f"{kind}-for-{generation.lower()}"


def shared_groups() -> dict[str, Mapping[str, Any]]:
    """Groups that tests take turns in."""
    return {name: KINDS[kind] for kind in KINDS for name in names_of(kind)}


def groups_for_each(*kinds: str) -> dict[str, Mapping[str, Any]]:
    """One group of each kind for each generation."""
    return {name_for(kind, letter): KINDS[kind] for kind in kinds for letter in GENERATIONS}


def provider_settings(groups: Mapping[str, Mapping[str, Any]], **changes: Any) -> dict[str, Any]:
    """A configuration of the provider; addresses, database and API's address come from whoever starts it.

    At most two orders of a group and four in all are under way at a time, so that wishes wait when orders are held.
    Machines are listed as often as the API's limit of 120 a minute allows for long. Nobody is the kubelet of these
    machines, so that none ever becomes a node must not stop the buying.
    """
    return {
        "cluster_name": "conformance",
        "intervals": {"observe": "600ms", "catalog": "10m"},
        "logging": {"format": "json", "level": "info"},
        "gpu_label": GPU_LABEL,
        "defaults": {"never_joined_breaker": 0},
        "node_groups": dict(groups),
        **changes,
    }


def verda_settings(base_url: str) -> dict[str, Any]:
    """The account at the simulated cloud."""
    return {
        "base_url": base_url,
        "client_id": "conformance",
        "client_secret": SECRET,
        "rate_share": 1,
        "parallel_creates": 4,
    }


CLOUD_SETTINGS: Final[Mapping[str, Any]] = {
    "seed": 11,
    "durations": {"preset": "fast"},
    "chances": {"validating": 0},
    "limits": {"enabled": False},
    "capacity": {"pools": HARDWARE},
    "auth": {"clients": {"conformance": SECRET}},
    "behaviour": {
        "allow_delete_in": [
            "ordered",
            "provisioning",
            "validating",
            "running",
            "offline",
            "error",
            "installation_failed",
            "no_capacity",
        ]
    },
}
"""A calm cloud: a machine runs a quarter of a second after its order and is gone a twentieth after its deletion.

Unlike the real one it deletes machines that are still being provisioned, which saves the suite many pauses.
"""
