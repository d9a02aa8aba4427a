"""F44, F45, F08: machines become nodes under our eyes. What is odd is told with its remedy; one thing is repaired."""

from dataclasses import replace
from datetime import timedelta

import pytest
from structlog.typing import EventDict

from app.domain.envelope import Event
from app.domain.instance.events import (
    NodeDoubt,
    NodeDoubted,
    NodeJoined,
    NodeRegistered,
    ProviderIdLearned,
    ProviderIdRepairAttempted,
)
from app.domain.nodegroup.commands import DeleteNodes
from app.errors import ClusterConflict, ClusterForbidden

from .yard import Yard


def of_nodes(yard: Yard) -> list[Event]:
    """What the log has about nodes of instances."""
    kinds = (NodeRegistered, NodeJoined, NodeDoubted, ProviderIdLearned, ProviderIdRepairAttempted)
    return [item.event for item in yard.house.log if isinstance(item.event, kinds)]


def doubts(yard: Yard) -> list[tuple[NodeDoubt, str]]:
    """What was told, and in which words."""
    return [(event.doubt, event.message) for event in of_nodes(yard) if isinstance(event, NodeDoubted)]


def test_a_machine_registers_and_gets_ready(yard: Yard) -> None:
    """Each once, with the seconds since it was seen running: the machine ran 20 s when the house showed it."""
    (name,) = yard.house.running()
    ran = yard.house.instance(name).running_at
    assert ran is not None
    yard.house.clock.advance(ran + timedelta(seconds=60) - yard.house.now)
    yard.join(name, ready=False)
    yard.tend(3)
    node = yard.cluster.node(name)
    assert node is not None
    yard.cluster.put(replace(node, ready=True))
    yard.tend(3)
    facts = {"instance": name, "node_group": "h100"}
    assert of_nodes(yard) == [
        NodeRegistered(**facts, node=name, uid=f"uid-of-{name}", provider_id=f"verda://{name}", waited_s=60),
        NodeJoined(**facts, waited_s=90),
    ]
    instance = yard.house.instance(name)
    assert instance.node_uid == f"uid-of-{name}"
    assert instance.node_ready_at == ran + timedelta(seconds=90)


def test_a_spelling_that_a_real_node_shows_is_learned(yard: Yard) -> None:
    """F08. The autoscaler compares byte for byte, so we answer with that from now on."""
    (name,) = yard.house.running()
    yard.join(name, provider_id=f"verda:///{name}")
    yard.tend(2)
    assert yard.house.instance(name).provider_id == f"verda:///{name}"
    assert [event for event in of_nodes(yard) if isinstance(event, ProviderIdLearned)] == [
        ProviderIdLearned(instance=name, node_group="h100", provider_id=f"verda:///{name}")
    ]


def test_an_empty_provider_id_is_set_once_by_name_and_address(yard: Yard, lines: list[EventDict]) -> None:
    """F45. The intent is in the log before; the next picture shows the node as ours."""
    name = nameless(yard, ip="192.0.2.7", addresses=("10.0.0.1", "192.0.2.7"))
    yard.tend(4)
    node = yard.cluster.node(name)
    assert node is not None
    assert node.provider_id == f"verda://{name}"
    attempted, registered, joined = of_nodes(yard)
    assert attempted == ProviderIdRepairAttempted(
        instance=name,
        node_group="h100",
        node=name,
        uid=f"uid-of-{name}",
        provider_id=f"verda://{name}",
        evidence="same name and same address 192.0.2.7",
    )
    assert isinstance(registered, NodeRegistered)
    assert isinstance(joined, NodeJoined)
    assert [line["node"] for line in lines if line["event"] == "provider id set"] == [name]


def nameless(yard: Yard, ip: str | None = None, **more: object) -> str:
    """A running machine whose node has no provider id."""
    (name,) = yard.house.running()
    if ip is not None:
        instance = replace(yard.house.instance(name), ip=ip)
        yard.house.ledger._books = yard.house.books.with_instance(instance)
    yard.join(name, **{"provider_id": "", **more})
    return name


def test_boot_evidence_is_enough(yard: Yard) -> None:
    """Behind a private network the address says nothing; the node was born after the machine ran, and has booted."""
    name = nameless(yard, boot_id="b007")
    yard.tend(2)
    node = yard.cluster.node(name)
    assert node is not None
    assert node.provider_id == f"verda://{name}"


@pytest.mark.parametrize("why", ["no boot id", "born before the machine", "repairs are off"])
def test_without_evidence_it_is_only_told(yard: Yard, why: str) -> None:
    """A name alone proves nothing; the flag that the kubelet lacks is told, once."""
    if why == "repairs are off":
        yard.repairs = False
        yard.begin()
    born = yard.house.now - timedelta(days=1) if why == "born before the machine" else yard.house.now
    name = nameless(yard, boot_id="" if why == "no boot id" else "b007", created_at=born)
    yard.tend(5)
    node = yard.cluster.node(name)
    assert node is not None
    assert node.provider_id == ""
    message = (
        f"node {name} has no provider id, so the autoscaler does not know it: start its kubelet with "
        f"--provider-id=verda://{name} and kubectl delete node {name}"
    )
    assert doubts(yard) == [(NodeDoubt.NO_PROVIDER_ID, message)]


@pytest.mark.parametrize("shown", ["verda://", "aws:///eu-west-1a/i-0abc", "verda://somebody-else", "hcloud://7"])
def test_a_wrong_provider_id_is_told_with_the_exact_flag(yard: Yard, shown: str) -> None:
    """F45. It cannot be changed. Told once, in the log and to the log's reader; nothing is done to the node."""
    (name,) = yard.house.running()
    before = yard.join(name, provider_id=shown)
    yard.tend(5)
    message = (
        f"node {name} has the provider id {shown}, which cannot be changed, and the autoscaler looks for "
        f"verda://{name}: start its kubelet with --provider-id=verda://{name} and kubectl delete node {name}"
    )
    assert doubts(yard) == [(NodeDoubt.WRONG_PROVIDER_ID, message)]
    assert yard.cluster.node(name) == before
    assert yard.house.instance(name).node_problem == message


def test_two_nodes_that_claim_one_machine_are_told_and_left(yard: Yard) -> None:
    """Nobody knows which is the machine; nothing is learned from either, nothing is deleted."""
    (name,) = yard.house.running()
    yard.join(name, provider_id=f"verda:///{name}")
    yard.join("other", provider_id=f"verda://{name}")
    yard.tend(3)
    ((doubt, message),) = doubts(yard)
    assert doubt is NodeDoubt.CLAIMED_TWICE
    assert message.startswith(f"nodes {name} and other claim the provider id verda://{name}: nothing is done")
    assert len(of_nodes(yard)) == 1
    assert yard.names() == sorted([name, "other"])
    yard.cluster.drop("other")
    yard.tend(2)
    assert yard.house.instance(name).node_registered_at is not None
    assert yard.house.instance(name).node_problem is None


def test_a_node_older_than_its_machine_is_not_the_machines(yard: Yard) -> None:
    """F44. A Node object with a new machine's name and id was there before: told, and not counted as joined."""
    (name,) = yard.house.running()
    yard.join(name, created_at=yard.house.now - timedelta(days=3))
    yard.tend(3)
    message = (
        f"node {name} is older than the machine: if nothing runs there, kubectl delete node {name}, and its kubelet "
        "registers anew"
    )
    assert doubts(yard) == [(NodeDoubt.OLDER_THAN_MACHINE, message)]
    assert yard.house.instance(name).node_registered_at is None


def test_a_machine_that_never_joins_is_told_after_the_provision_time(yard: Yard) -> None:
    """Half an hour, to the second. It stays: the autoscaler decides, and a wrong API server would miss all of them."""
    (name,) = yard.house.running()
    ran = yard.house.instance(name).running_at
    assert ran is not None
    yard.house.clock.advance(ran + timedelta(minutes=30) - yard.house.now - timedelta(seconds=1))
    yard.job.run()
    assert doubts(yard) == []
    yard.house.clock.advance(1)
    yard.tend(3)
    ((doubt, message),) = doubts(yard)
    assert doubt is NodeDoubt.MISSED
    assert f"--provider-id=verda://{name}" in message
    assert yard.house.state(name) == "running"
    assert yard.house.target() == 1
    assert not yard.house.books.groups["h100"].joining.failures


def test_what_is_known_goes_into_the_failure(yard: Yard) -> None:
    """The autoscaler gives the machine back as never registered; the reason is the kubelet's provider id."""
    (name,) = yard.house.running()
    yard.join(name, provider_id="aws:///i-0abc")
    yard.tend(12)
    yard.house.execute(DeleteNodes(node_group="h100", instances=(name,), unregistered=frozenset({name})))
    told = [item.event for item in yard.house.log if item.event.type == "nodegroup.join-failed"]
    assert [getattr(event, "message", "") for event in told] == [yard.house.instance(name).node_problem]


def test_a_picture_without_our_nodes_changes_nothing(yard: Yard) -> None:
    """The API server lies, or is another cluster's: scaling goes on, no breaker, nothing deleted, nothing counted."""
    names = yard.house.running(5)
    yard.tend(400)
    assert {yard.house.state(name) for name in names} == {"running"}
    yard.house.delete(*names)
    assert not yard.house.books.groups["h100"].joining.failures
    assert yard.house.grow(2)


def test_a_node_that_changed_meanwhile_is_not_repaired(yard: Yard) -> None:
    """The picture is old: somebody set another id, or another node has the name. A fresh look decides."""
    name = nameless(yard, boot_id="b007")
    yard.cluster.stale = yard.cluster.nodes()
    yard.join(name, uid="another", provider_id="aws:///i-0")
    yard.tend(2)
    assert of_nodes(yard) == []


def test_a_lost_race_is_tried_again_with_one_intent(yard: Yard) -> None:
    """Somebody wrote the node between look and change."""
    name = nameless(yard, boot_id="b007")
    yard.cluster.forbidden["change_node"] = ClusterConflict("changed")
    yard.tend(3)
    assert yard.troubles.reasons() == ()
    yard.cluster.forbidden.clear()
    yard.tend(2)
    node = yard.cluster.node(name)
    assert node is not None
    assert node.provider_id == f"verda://{name}"
    assert len([event for event in of_nodes(yard) if isinstance(event, ProviderIdRepairAttempted)]) == 1


def test_repair_that_is_not_granted_does_not_stop_the_rest(yard: Yard) -> None:
    """One reason says what is missing; ghosts are removed all the same."""
    nameless(yard, boot_id="b007")
    (ghost,) = yard.house.running(1, "spot")
    yard.join(ghost)
    yard.evict(ghost)
    yard.fall_silent(ghost, timedelta(minutes=1))
    yard.cluster.forbidden["change_node"] = ClusterForbidden("cannot patch nodes")
    yard.tend(3)
    (reason,) = yard.troubles.reasons()
    assert reason.message.startswith("the cluster side cannot set provider ids: cannot patch nodes")
    assert ghost not in yard.names()


def test_a_provider_id_that_is_not_final_is_not_set(yard: Yard) -> None:
    """Verda's id of the machine is part of it and not known yet: a wrong one could never be changed."""
    (name,) = yard.house.running()
    instance = replace(yard.house.instance(name), provider_id=f"verda://pending/{name}")
    yard.house.ledger._books = yard.house.books.with_instance(instance)
    yard.join(name, provider_id="", boot_id="b007")
    yard.tend(2)
    node = yard.cluster.node(name)
    assert node is not None
    assert node.provider_id == ""
