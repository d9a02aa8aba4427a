"""Machines of another tool, taken over by an operator's word."""

from dataclasses import replace

import pytest

from app.domain.adoption import AdoptMachines, judged
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.errors import NotFound, RuleViolation

from .facts import A_ID, B_ID, H100, A, B, configured, h100, machine, retired, running, wanted
from .scenario import Scenario

THEIRS = replace(machine(), description="", hostname="gpu-vm-7f")


def adopt(*machines: Machine, group: str = "h100") -> AdoptMachines:
    """The operator's word."""
    return AdoptMachines(node_group=group, machines=machines)


def test_a_machine_becomes_an_instance_under_its_own_name() -> None:
    """Its node is matched by the older tool's provider id, and it counts in the target size."""
    spec = H100.model_copy(update={"provider_id_template": "datacrunch://{instance_id}"})
    after = h100.given(configured(spec), adopt(THEIRS))
    instance = after.instance("gpu-vm-7f")
    assert (instance.state, instance.instance_id, instance.node_group) == (InstanceState.RUNNING, A_ID, "h100")
    assert instance.provider_id == f"datacrunch://{A_ID}"
    assert after.books.target_size("h100") == 1
    assert after.books.find(f"datacrunch://{A_ID}", "gpu-vm-7f") == instance
    after.when(adopt(THEIRS)).then_nothing()


@pytest.mark.parametrize(
    ("story", "seen"),
    [
        (h100.given(*running()), machine()),
        (h100.given(wanted()), replace(machine(instance_id=B_ID), description="", hostname=A)),
        (h100, replace(THEIRS, status="discontinued")),
        (h100, replace(THEIRS, status="no_capacity")),
        (h100, replace(THEIRS, description="ca:v1 cluster=c1 installation=inst2 group=h100")),
        (h100, replace(THEIRS, hostname="Gpu_VM")),
        (h100, replace(THEIRS, instance_type="1V100.6V")),
    ],
    ids=["ours", "a name of ours", "gone", "never placed", "another installation's", "no node name", "another type"],
)
def test_what_speaks_against_a_machine_leaves_it_alone(story: Scenario, seen: Machine) -> None:
    """Never by guessing: the rest is somebody else's."""
    story.when(adopt(seen)).then_nothing()
    good = replace(THEIRS, instance_id="9", hostname=B)
    assert story.given(adopt(seen, good)).instance(B).instance_id == "9"


def test_of_machines_with_one_name_none_is_taken() -> None:
    """An instance has one machine: the other would be forgotten under its name and bill for ever."""
    namesake = replace(THEIRS, instance_id=B_ID)
    h100.when(adopt(THEIRS, namesake)).then_nothing()
    group = h100.books.groups["h100"]
    words = "2 machines have this host name: delete all but one"
    assert [against for _, against in judged((THEIRS, namesake), group, h100.books)] == [words, words]
    dead = replace(namesake, status="discontinued")
    assert h100.given(adopt(dead, THEIRS)).instance(THEIRS.hostname).instance_id == A_ID


def test_only_a_group_that_is_served_takes_machines_in() -> None:
    """Nor one that left the configuration."""
    h100.when(adopt(THEIRS, group="nowhere")).then_refused(NotFound)
    h100.given(*running(), retired(instances=1)).when(adopt(THEIRS)).then_refused(RuleViolation)
