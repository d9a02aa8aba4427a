"""Section 6 of the statements, first part: NodeGroupTemplateNodeInfo."""

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

import pytest

from .autoscaler import Autoscaler
from .scenes import Blackout, Revived, template_bytes
from .service import Lease
from .settings import GPU_LABEL, KINDS
from .wire import payload

_UNITS: Final[Mapping[str, Decimal | int]] = {
    "": 1,
    "m": Decimal("0.001"),
    "k": 10**3,
    "M": 10**6,
    "G": 10**9,
    "Ki": 2**10,
    "Mi": 2**20,
    "Gi": 2**30,
}
GIB: Final = 2**30

MACHINES: Final[Mapping[str, tuple[int, int, int]]] = {
    "gpu": (22, 120, 1),
    "spot": (30, 120, 1),
    "small": (4, 16, 0),
    "base": (8, 32, 0),
    "sold-out": (32, 225, 1),
    "zoned": (176, 1480, 8),
}
"""Cores, gigabytes of memory and GPUs of each kind's instance type, as Verda's catalogue shows them."""

PLACES: Final[Mapping[str, tuple[str, str, str]]] = {
    "gpu": ("FIN", "FIN-01", "1A100.22V"),
    "spot": ("FIN", "FIN-02", "1H100.80S.30V"),
    "small": ("FIN", "FIN-01", "CPU.4V.16G"),
    "base": ("ICE", "ICE-01", "CPU.8V.32G"),
    "sold-out": ("FIN", "FIN-01", "1GB300.32V"),
    "zoned": ("FIN", "FIN-02", "8H100.80S.176V"),
}
"""Region, zone and instance type; the zone of several is the preferred one."""

MODELS: Final = {"gpu": "a100", "spot": "h100", "sold-out": "gb300", "zoned": "h100"}


def amount(quantity: Any) -> Decimal:
    """A Kubernetes quantity as a number."""
    found = re.fullmatch(r"([0-9.]+)([a-zA-Z]*)", quantity.string)
    assert found, quantity.string
    return Decimal(found[1]) * _UNITS[found[2]]


def sizes(quantities: Mapping[str, Any]) -> dict[str, Decimal]:
    """Resource → number."""
    return {resource: amount(quantity) for resource, quantity in quantities.items()}


def test_056_old_and_new_field_hold_the_same_node(ca: Autoscaler, lease: Lease) -> None:
    """Statement 56, F02: up to 1.34 the node is embedded in field 1, from 1.34.2 on it is bytes in field 2."""
    data = template_bytes(ca, lease())
    assert payload(data, 1) == payload(data, 2)
    assert payload(data, 1)


def test_056_every_generation_finds_a_node(ca: Autoscaler, lease: Lease) -> None:
    """Statement 56: one that finds none crashes."""
    node = ca.template(lease())
    assert node.metadata.labels
    assert node.status.allocatable


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("kind", MACHINES)
def test_057_the_node_has_what_the_machine_has_and_promises_no_more(ca: Autoscaler, kind: str) -> None:
    """Statement 57, F33, F36: the scheduler is simulated with allocatable; missing pods or GPUs mean none fit."""
    status = ca.template(kind).status
    capacity, allocatable = sizes(status.capacity), sizes(status.allocatable)
    cores, gigabytes, gpus = MACHINES[kind]
    assert set(capacity) == set(allocatable)
    assert set(capacity) >= {"cpu", "memory", "pods", "ephemeral-storage"}
    assert all(0 < allocatable[resource] <= capacity[resource] for resource in capacity)
    assert capacity["cpu"] == cores
    assert cores * Decimal("0.9") <= allocatable["cpu"] <= cores
    assert capacity["memory"] <= gigabytes * GIB
    assert allocatable["memory"] >= gigabytes * GIB * Decimal("0.7")
    assert (allocatable.get("nvidia.com/gpu", 0), capacity.get("nvidia.com/gpu", 0)) == (gpus, gpus)


@pytest.mark.usefixtures("stage")
@pytest.mark.parametrize("kind", PLACES)
def test_058_the_labels_are_those_of_the_real_node(ca: Autoscaler, kind: str) -> None:
    """Statement 58: selectors and affinities are matched against them."""
    labels = dict(ca.template(kind).metadata.labels)
    region, zone, instance_type = PLACES[kind]
    assert labels["kubernetes.io/os"] == "linux"
    assert labels["kubernetes.io/arch"] == ("arm64" if kind == "sold-out" else "amd64")
    assert labels["node.kubernetes.io/instance-type"] == instance_type
    assert labels["topology.kubernetes.io/region"] == region
    assert labels["topology.kubernetes.io/zone"] == zone
    assert labels.items() >= dict(KINDS[kind].get("labels", {})).items()
    assert labels.get(ca.call("GPULabel").label) == MODELS.get(kind)


@pytest.mark.usefixtures("stage")
def test_058_nodes_without_gpu_do_not_carry_the_gpu_label(ca: Autoscaler) -> None:
    """Statement 58, F35: with the key, whatever its value, the autoscaler waits for a GPU that never comes."""
    for group in ca.groups():
        node = ca.template(group)
        assert (GPU_LABEL in node.metadata.labels) == ("nvidia.com/gpu" in node.status.allocatable), group


@pytest.mark.usefixtures("stage")
def test_059_taints_are_those_of_the_real_node(ca: Autoscaler) -> None:
    """Statement 59: but not those that it has only while it starts."""
    taints = {
        kind: {(taint.key, taint.value, taint.effect) for taint in ca.template(kind).spec.taints}
        for kind in ("gpu", "spot", "zoned", "small")
    }
    gpu = ("nvidia.com/gpu", "present", "NoSchedule")
    assert taints == {
        "gpu": {gpu},
        "spot": {gpu, ("spot", "", "PreferNoSchedule")},
        "zoned": {("example.com/team", "research", "NoExecute")},
        "small": set(),
    }


def test_059_pods_can_be_scheduled(ca: Autoscaler, lease: Lease) -> None:
    """Statement 59: an unschedulable template fits nothing."""
    assert not ca.template(lease()).spec.unschedulable


def test_060_the_template_is_the_same_every_time(ca: Autoscaler, lease: Lease) -> None:
    """Statement 60: to the byte, also when there are machines."""
    group = lease()
    data = template_bytes(ca, group)
    ca.increase(group, 1)
    assert {template_bytes(ca, group) for _ in range(5)} == {data}


def test_060_templates_are_known_while_the_cloud_is_away(
    blackout: Blackout, visit: Callable[[str], Autoscaler]
) -> None:
    """Statement 60: an error of one group would stop all groups up to 1.30."""
    ca = visit(blackout.stage.address)
    assert {group: template_bytes(ca, group) for group in ca.groups()} == blackout.templates


def test_060_templates_survive_a_restart(revived: Revived, visit: Callable[[str], Autoscaler]) -> None:
    """Statement 60, F33: the catalogue is remembered."""
    ca = visit(revived.stage.address)
    assert {group: template_bytes(ca, group) for group in ca.groups()} == revived.templates


@pytest.mark.usefixtures("stage")
def test_060_a_group_without_template_is_not_offered(ca: Autoscaler) -> None:
    """Statement 60, F10: every group that is listed has one; the others wait for the catalogue."""
    assert "unknown-type" not in ca.groups()
    assert all(payload(template_bytes(ca, group), 2) for group in ca.groups())
