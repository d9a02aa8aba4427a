"""Section 4 of the statements: NodeGroupNodes."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from tests.protocol.clients import GENERATIONS

from .autoscaler import (
    CREATING,
    DELETING,
    OTHER,
    OUT_OF_RESOURCES,
    RUNNING,
    Autoscaler,
)
from .cloud import Cloud
from .provider import Stage
from .scenes import Blackout, Penniless, Renamed, SwitchedOff, failed, grow, hold_slots, running
from .service import Lease
from .settings import SECRET, name_for
from .until import until

REFUSALS: Mapping[str, tuple[int, str, str, int]] = {
    "out of stock": (503, "service_unavailable", "No capacity available", OUT_OF_RESOURCES),
    "quota": (403, "forbidden_action", "GPU quota exceeded", OUT_OF_RESOURCES),
    "image": (400, "invalid_request", "Operating system is not valid for this instance type", OTHER),
    "order": (400, "invalid_request", "Invalid ssh-key ID", OTHER),
}
"""Refusals of an order: status, code and message of the API, and the class the autoscaler is to be told."""


def one(ca: Autoscaler, group: str) -> Any:
    """The only instance of a group."""
    (instance,) = ca.instances(group)
    return instance


def test_035_ids_are_unique_and_not_empty(ca: Autoscaler, lease: Lease) -> None:
    """Statement 35: they are what the autoscaler knows a machine by."""
    group = lease()
    ca.increase(group, 3)
    listed = [instance.id for instance in ca.instances(group)]
    assert len(set(listed)) == 3
    assert all(listed)


def test_035_the_id_is_the_provider_id_of_the_node(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 35: byte for byte what the machine's own script computes for its kubelet, known with the wish."""
    group = lease("gpu")
    ca.increase(group, 2)
    wished = set(ca.live(group))
    running(ca, group, 2)

    def computed() -> set[str]:
        return {guest["provider_id"] for guest in cloud.control("GET", "/guests") if guest["ready"]}

    until("the scripts have run", lambda: wished <= computed())
    assert set(ca.live(group)) == wished


@pytest.mark.parametrize("spelling", ["verda:///{hostname}", "VERDA://{hostname}", "datacrunch://{id}"])
def test_035_the_spelling_of_a_real_node_is_taken_over(
    ca: Autoscaler, lease: Lease, cloud: Cloud, spelling: str
) -> None:
    """Statement 35, F08: kubelets spell it differently, and the autoscaler compares byte for byte."""
    group = lease("gpu")
    (instance_id,) = grow(ca, group, 1)
    machine = cloud.machine(instance_id)
    shown = spelling.format_map(machine)
    assert ca.group_of(ca.node(shown, machine["hostname"])).id == group
    until("the node's spelling is listed", lambda: ca.live(group) == [shown])
    assert ca.group_of(ca.fake(instance_id)).id == group
    ca.delete(group, [ca.real(shown)])
    assert ca.target(group) == 0
    until("the machine is gone", lambda: not cloud.alive(group))


def test_036_every_instance_has_a_state_all_its_life(ca: Autoscaler, lease: Lease) -> None:
    """Statement 36: one without a state is forgotten by some releases and never cleaned up."""
    group, broken = lease("spot"), lease("sold-out")
    seen: set[int] = set()

    def look() -> list[int]:
        states = list(ca.states(group).values())
        seen.update(states, ca.states(broken).values())
        return states

    ca.increase(group, 2)
    ca.increase(broken, 1)
    until("both run", lambda: look() == [RUNNING, RUNNING])
    ca.delete(group, [ca.fake(each) for each in ca.live(group)])
    until("both are gone", lambda: not look())
    assert {CREATING, RUNNING} <= seen <= {CREATING, RUNNING, DELETING}  # a deletion may be over before we look


def test_037_a_slot_keeps_its_id_from_wish_to_end(ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud) -> None:
    """Statement 37: with a new id the autoscaler's timers begin anew, and failures look like new failures."""
    group = lease("gpu")
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 3)
        wished = set(ca.states(group))

    def unchanged() -> bool:
        assert set(ca.states(group)) == wished
        return set(ca.states(group).values()) == {RUNNING}

    until("all run", unchanged)
    faults = [cloud.refuse_deletion(cloud.machine(each)) for each in wished]
    ca.delete(group, [ca.fake(each) for each in wished])
    until("the deletions were refused", lambda: unchanged() or all(cloud.fired(fault) for fault in faults))


def test_037_a_failed_creation_keeps_its_id(ca: Autoscaler, lease: Lease) -> None:
    """Statement 37: in consecutive lists, or the autoscaler's back-off would never begin."""
    group = lease("sold-out")
    ca.increase(group, 1)
    wished = one(ca, group).id
    assert failed(ca, group).id == wished
    assert {one(ca, group).id for _ in range(5)} == {wished}


def test_037_an_id_that_holds_the_clouds_own_changes_once(
    renamed: Renamed, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 37: from a stable placeholder to the final id; then both are understood."""
    ca, group = visit(renamed.stage.address), name_for("gpu", generation)
    with renamed.stage.cloud.orders_held(2):
        hold_slots(renamed.stage, ca, group, 1, in_flight=1)
        (placeholder,) = ca.live(group)
        assert ca.live(group) == [placeholder]
    (final,) = running(ca, group, 1)
    (machine,) = renamed.stage.cloud.alive(group)
    assert placeholder == f"verda://pending/{machine['hostname']}"
    assert final == f"verda://{machine['id']}"
    assert {ca.group_of(ca.fake(each)).id for each in (placeholder, final)} == {group}
    ca.delete(group, [ca.fake(placeholder), ca.real(final)])
    assert ca.target(group) == 0
    until("the machine is gone", lambda: not renamed.stage.cloud.alive(group))


def test_038_states_follow_the_machine(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 38: ordered and provisioning are creating, running is running, an accepted deletion is deleting."""
    group = lease("gpu")
    cloud.order_preset("stuck_provisioning", group)
    ca.increase(group, 1)
    (instance_id,) = ca.live(group)
    machine = _provisioning(cloud, group)
    listings = cloud.listings()
    until("it was listed so", lambda: cloud.listings() > listings + 1)
    assert ca.states(group) == {instance_id: CREATING}
    cloud.act(machine, "unstick")
    running(ca, group, 1)
    ca.delete(group, [ca.real(instance_id)])
    assert ca.states(group).items() <= {instance_id: DELETING}.items()
    until("it is gone and no longer listed", lambda: not ca.states(group))
    assert not cloud.alive(group)


def _provisioning(cloud: Cloud, group: str) -> dict[str, Any]:
    """The only machine of a group, once it is being provisioned."""

    def found() -> list[dict[str, Any]]:
        return [machine for machine in cloud.alive(group) if machine["status"] == "provisioning"]

    return until("the machine is being provisioned", found)[0]


@pytest.mark.parametrize("refusal", REFUSALS)
def test_039_a_refused_order_is_told_at_once(ca: Autoscaler, lease: Lease, cloud: Cloud, refusal: str) -> None:
    """Statement 39, F19 to F22: same id, state creating, a stable code, and a class by which others are tried."""
    group = lease("misfit" if refusal == "image" else "gpu")  # which orders nothing more afterwards
    status, code, message, error_class = REFUSALS[refusal]
    cloud.refuse_orders(group, status, message, code=code)
    ca.increase(group, 1)
    (wished,) = ca.live(group)
    instance = failed(ca, group)
    error = instance.status.errorInfo
    assert instance.id == wished
    assert instance.status.instanceState == CREATING
    assert error.instanceErrorClass == error_class
    assert message in error.errorMessage
    assert one(ca, group) == instance
    assert ca.target(group) == 1


def test_039_an_account_without_money_is_told(
    penniless: Penniless, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 39, F20: each wish says so; the cloud is asked once a minute at most, not once a wish."""
    ca = visit(penniless.stage.address)
    for kind in ("gpu", "small"):
        error = failed(ca, name_for(kind, generation)).status.errorInfo
        assert (error.errorCode, error.instanceErrorClass) == ("insufficient-funds", OUT_OF_RESOURCES)
        assert "Insufficient balance" in error.errorMessage
    assert penniless.stage.cloud.orders() < len(GENERATIONS)


@pytest.mark.parametrize(
    ("preset", "error_class"),
    [("no_capacity_async", OUT_OF_RESOURCES), ("install_error", OTHER), ("installation_failed", OTHER)],
)
def test_039_an_order_that_fails_later_is_told_too(
    ca: Autoscaler, lease: Lease, cloud: Cloud, preset: str, error_class: int
) -> None:
    """Statement 39: accepted first, then no capacity or a machine that does not come up."""
    group = lease("spot")
    cloud.order_preset(preset, group)
    ca.increase(group, 1)
    (wished,) = ca.live(group)
    instance = failed(ca, group)
    assert (instance.id, instance.status.instanceState) == (wished, CREATING)
    assert instance.status.errorInfo.instanceErrorClass == error_class


def test_039_messages_are_short_and_hold_no_secret(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 39, F68: the autoscaler shows them in events and cuts them at 500 characters."""
    group = lease("gpu")
    message = f"bad client_secret {SECRET} in a very long story " + "about nothing at all " * 60
    cloud.refuse_orders(group, 400, message, code="invalid_request")
    ca.increase(group, 1)
    told = failed(ca, group).status.errorInfo.errorMessage
    assert 0 < len(told) <= 500
    assert SECRET not in told


def test_040_only_creating_instances_carry_an_error(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 40: with an error beside another state the autoscaler never cleans the instance up."""
    group = lease("spot")
    cloud.order_preset("install_error", group)
    ca.increase(group, 1)
    broken = failed(ca, group).id
    fault = cloud.refuse_deletion(cloud.machine(broken))
    ca.delete(group, [ca.fake(broken, "create-error")])
    until("the cloud has refused the deletion", lambda: cloud.fired(fault))
    instance = one(ca, group)
    assert instance.status.instanceState == DELETING
    assert not instance.status.errorInfo.errorCode


def test_041_healthy_instances_carry_no_error(ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud) -> None:
    """Statement 41: whether they run, are ordered or wait."""
    group = lease("gpu")
    grow(ca, group, 1)
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 3)
        assert [instance.status.errorInfo.errorCode for instance in ca.instances(group)] == [""] * 4
    running(ca, group, 4)
    assert [instance.status.errorInfo.errorCode for instance in ca.instances(group)] == [""] * 4


def test_042_instances_are_listed_while_the_cloud_is_away(
    blackout: Blackout, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 42: as they were; an empty answer would lose all the autoscaler's timers."""
    ca = visit(blackout.stage.address)
    for group in (name_for("gpu", generation), name_for("sold-out", generation)):
        assert ca.sizes(group) == blackout.before[group]
    assert all(ca.instances(group) is not None for group in ca.groups())


def test_043_lost_machines_leave_the_list_and_the_target(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 43, F27: evicted, or deleted by a person."""
    spot, owned = lease("spot"), lease("gpu")
    for group in (spot, owned):
        ca.increase(group, 2)
    evicted, *_ = running(ca, spot, 2)
    deleted, *_ = running(ca, owned, 2)
    cloud.act(cloud.machine(evicted), "evict")
    cloud.act(cloud.machine(deleted), "delete")
    for group, lost in {spot: evicted, owned: deleted}.items():
        until(f"the loss of {lost} is noticed", partial(_is_one, ca, group))
        assert lost not in ca.live(group)
        assert ca.states(group).items() >= dict.fromkeys(ca.live(group), RUNNING).items()


def _is_one(ca: Autoscaler, group: str) -> bool:
    return ca.target(group) == 1


def test_043_a_machine_that_is_switched_off_leaves_if_its_group_says_so(
    switched_off: SwitchedOff, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 43, F53: it exists and costs money, so it stays where the group's policy does not give it back."""
    ca = visit(switched_off.stage.address)
    until("it is given back", lambda: ca.sizes(name_for("stopping", generation)) == (0, {}))
    kept = name_for("gpu", generation)
    assert ca.sizes(kept) == (1, {switched_off.kept[generation]: RUNNING})


def test_043_a_machine_that_dies_before_it_runs_leaves_too(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 43: issue 7976, spot machines that were taken back before they had joined."""
    group = lease("spot")
    cloud.order_preset("stuck_provisioning", group)
    ca.increase(group, 1)
    machine = _provisioning(cloud, group)
    listings = cloud.listings()
    until("it was listed so", lambda: cloud.listings() > listings + 1)
    cloud.act(machine, "evict")
    until("the loss is noticed", lambda: ca.sizes(group) == (0, {}) or _failed_one(ca, group))


def _failed_one(ca: Autoscaler, group: str) -> bool:
    return [bool(instance.status.errorInfo.errorCode) for instance in ca.instances(group)] == [True]


def test_044_machines_of_others_are_never_listed(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 44, F13: not even with our cluster's name, our form of names, or a group's name that begins ours."""
    group = lease("gpu")
    ca.increase(group, 1)
    ours = set(running(ca, group, 1))
    strangers = [
        {"hostname": f"{group}-aaaaaaaa"},
        {"hostname": f"{group}-bbbbbbbb", "description": f"ca:v1 cluster=conformance1 installation=x group={group}"},
        {"hostname": f"{group}-cccccccc", "description": f"ca:v1 cluster=conformance installation=x group={group}"},
        {"hostname": f"{group}-dddddddd", "description": f"group={group}"},
    ]
    for stranger in strangers:
        cloud.control("POST", "/instances", {**stranger, "instance_type": "1A100.22V"})
    listings = cloud.listings()
    until("the machines were listed twice", lambda: cloud.listings() > listings + 2)
    assert set(ca.states(group)) == ours
    assert ca.target(group) == 1
    everywhere = {each for name in ca.groups() for each in ca.states(name)}
    assert not {f"verda://{stranger['hostname']}" for stranger in strangers} & everywhere
    assert not ca.group_of(ca.fake(f"verda://{group}-aaaaaaaa")).id
    assert not cloud.truth()["foreign_deletes"]
