"""Machines of another tool, taken over by an operator's word."""

import json
from dataclasses import replace

import pytest

from app.domain.adoption import AdoptMachines, judged
from app.domain.envelope import Cause, Recorded
from app.domain.explain.instance import Story, explain_instance
from app.domain.instance.events import InstanceAdopted
from app.domain.instance.fold import begin
from app.domain.instance.lifecycle import InstanceState
from app.domain.machine import Machine
from app.domain.registry import decode
from app.errors import InvalidRequest, NotFound, RuleViolation

from .facts import A_ID, B_ID, H100, A, B, adopted, configured, h100, machine, retired, running, wanted
from .scenario import NOON, Scenario

THEIRS = replace(machine(), description="", hostname="gpu-vm-7f")


def adopt(*machines: Machine, group: str = "h100") -> AdoptMachines:
    """The operator's word."""
    return AdoptMachines(node_group=group, machines=machines, operator="anna", reason="moving house")


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


def test_the_log_says_by_whose_word_and_why() -> None:
    """Such machines carry no mark of ours: nothing else tells how they came into the books."""
    first, *_ = h100.when(adopt(THEIRS)).events
    assert isinstance(first, InstanceAdopted)
    assert (first.operator, first.reason) == ("anna", "moving house")
    h100.when(replace(adopt(THEIRS), reason=" ")).then_refused(InvalidRequest)


def test_an_older_log_says_neither() -> None:
    """It is read as ever."""
    older = {
        "instance": "gpu-vm-7f",
        "node_group": "h100",
        "instance_id": A_ID,
        "provider_id": "verda://gpu-vm-7f",
        "instance_type": None,
        "image": None,
    }
    event = decode("instance.adopted", 1, json.dumps(older))
    assert isinstance(event, InstanceAdopted)
    assert (event.operator, event.reason) == (None, None)


@pytest.mark.parametrize(
    ("event", "actor", "words"),
    [
        (
            adopted().model_copy(update={"operator": "anna (uid 1000)", "reason": "moving house"}),
            "operator",
            f"nobody in this log: the machine {A_ID} was taken over by anna (uid 1000): moving house.",
        ),
        (adopted(), "operator", f"nobody in this log: the machine {A_ID} was taken over by an operator."),
        (
            adopted(),
            "reconcile/observe",
            f"nobody in this log: the machine {A_ID} carries our mark and was taken over by reconcile/observe.",
        ),
    ],
)
def test_it_is_explained_as_what_it_was(event: InstanceAdopted, actor: str, words: str) -> None:
    """A mark is spoken of only where there is one."""
    cause = Cause(actor=actor, correlation_id="1")
    first = Recorded(position=1, stream=event.stream, version=1, recorded_at=NOON, cause=cause, event=event)
    page = explain_instance(Story(instance=begin(first), events=(first,), beside=(), doubles=(), now=NOON))
    assert any(line.endswith(words) for line in page.lines)
