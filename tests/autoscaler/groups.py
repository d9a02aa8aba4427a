"""Node groups that scenarios play with."""

from typing import Any

from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract

_IMAGE = "ubuntu-24.04-cuda-12.8-open-docker"


def gpu(name: str = "gpu", **changes: Any) -> NodeGroupSpec:
    """One H100 a node, none to three."""
    return _group(name, **{"instance_type": "1H100.80S.30V", **changes})


def spare(name: str = "spare", **changes: Any) -> NodeGroupSpec:
    """One A100 a node, none to three."""
    return _group(name, **{"instance_type": "1A100.22V", **changes})


def base(name: str = "base", **changes: Any) -> NodeGroupSpec:
    """Eight cores a node, two to four."""
    values = {"instance_type": "CPU.8V.32G", "min_size": 2, "max_size": 4, "image": "ubuntu-24.04", **changes}
    return _group(name, **values)


def spot(name: str = "spot", **changes: Any) -> NodeGroupSpec:
    """One H100 a node, spot only, none to three."""
    return gpu(name, contracts=(Contract.SPOT,), **changes)


def _group(name: str, **changes: Any) -> NodeGroupSpec:
    values: dict[str, Any] = {
        "name": name,
        "min_size": 0,
        "max_size": 3,
        "image": _IMAGE,
        "locations": ("FIN-01",),
        **changes,
    }
    return NodeGroupSpec.model_validate(values)
