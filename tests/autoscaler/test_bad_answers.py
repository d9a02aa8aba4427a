"""What the autoscaler makes of answers that a provider must not give.

The scenarios beside this file show that ours does not give them; these show why that matters, and that the model would
notice.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta

import pytest

from tests.protocol.clients import Client

from .ca.flags import Flags
from .ca.objects import TO_BE_DELETED
from .ca.releases import Change, Release, release
from .ca.wire import AutoscalerCrashed
from .toy import CREATING, DELETING, RUNNING, UNSPECIFIED, Bench, ToyGroup

MakeBench = Callable[..., Bench]


@pytest.fixture
def bench_for(clients: Mapping[str, Client]) -> MakeBench:
    """Benches for any release."""

    def make(chosen: Release, *groups: ToyGroup, flags: Flags | None = None) -> Bench:
        return Bench(clients[chosen.generation], chosen, *groups, flags=flags)

    return make


@pytest.fixture
def bench(bench_for: MakeBench, release: Release) -> MakeBench:
    """Benches for the release of the test."""

    def make(*groups: ToyGroup, flags: Flags | None = None) -> Bench:
        return bench_for(release, *groups, flags=flags)

    return make


def test_a_target_without_instances_locks_the_group_for_ever(bench: MakeBench) -> None:
    """Short of two nodes more than anybody can explain; nothing is listed, so nothing is ever cleaned up."""
    scene = bench(ToyGroup(target=5, max_size=9))
    scene.cluster.submit("web", cpu="9")
    scene.cluster.submit("web-2", cpu="1")
    scene.loops(120)
    assert not scene.autoscaler.registry.is_healthy("toy")
    assert scene.toy.count("NodeGroupIncreaseSize") == scene.toy.count("NodeGroupDecreaseTargetSize") == 0


def test_deleting_instances_in_the_target_halt_everything(bench: MakeBench, release: Release) -> None:
    """The size fixer asks for the difference back; refused, every loop fails from then on, for all groups.

    1.27 waits for the instance to become a node instead, and deletes it again.
    """
    group = ToyGroup(target=2, instances=[("toy-1", RUNNING, ""), ("toy-2", DELETING, "")])
    scene = bench(group, ToyGroup(id="other"), flags=Flags(scale_down_delay_after_add=timedelta(hours=9)))
    scene.toy.failing["NodeGroupDecreaseTargetSize", "toy"] = "FAILED_PRECONDITION"
    scene.cluster.submit("web", cpu="7")
    scene.register("toy-1")
    scene.loops(20)
    if not release.has(Change.EXPECTS_ONLY_SOUND_INSTANCES):
        assert "17 DeleteUnregistered toy 1" in scene.story
        return
    assert scene.errors[-1].startswith("NodeGroupDecreaseTargetSize: FAILED_PRECONDITION")
    failed = len(scene.errors)
    scene.cluster.submit("help", cpu="7")
    scene.loops(10)
    assert len(scene.errors) == failed + 10
    assert scene.toy.count("NodeGroupIncreaseSize") == 0


def test_one_group_without_a_size_halts_all(bench: MakeBench) -> None:
    """No loop gets past the sizes while one of them cannot be had."""
    scene = bench(ToyGroup(), ToyGroup(id="other"))
    scene.toy.failing["NodeGroupTargetSize", "other"] = "INTERNAL"
    scene.cluster.submit("web")
    scene.loops(5)
    assert len(scene.errors) == 5
    assert scene.toy.count("NodeGroupIncreaseSize") == 0


def test_no_groups_is_what_an_error_of_node_groups_looks_like(bench: MakeBench) -> None:
    """The loops succeed and do nothing."""
    scene = bench(ToyGroup())
    scene.toy.failing["NodeGroups", ""] = "UNAVAILABLE"
    scene.cluster.submit("web")
    scene.loops(5)
    assert scene.errors == []
    assert scene.toy.count("NodeGroupIncreaseSize") == 0


def test_a_template_in_one_field_only_crashes_the_others(bench_for: MakeBench) -> None:
    """Up to C the embedded node is read, E reads the bytes, D either."""
    readers = {"nodeInfo": "ABCD", "nodeBytes": "DE"}
    for place, letters in readers.items():
        for chosen in (release(28), release(31), release(33), release(34), release(36)):
            scene = bench_for(chosen, ToyGroup(template_in=frozenset({place})))
            if chosen.generation in letters:
                scene.loop()
                assert scene.errors == []
            else:
                with pytest.raises(AutoscalerCrashed):
                    scene.loop()


def test_options_without_times_crash_or_delete_what_boots(bench: MakeBench, release: Release) -> None:
    """E takes a missing time for zero: what boots is too old at once. Before E the process crashes over it."""
    scene = bench(ToyGroup(target=1, instances=[("toy-1", CREATING, "")], options={}))
    if release.generation != "E":
        with pytest.raises(AutoscalerCrashed):
            scene.loops(2)
        return
    scene.loop()
    scene.loop()
    assert scene.story == ["0 DeleteUnregistered toy 1"]


def test_an_error_without_a_state_is_not_seen(bench: MakeBench) -> None:
    """Whatever error comes without a state: it is a running instance that takes fifteen minutes to be late."""
    scene = bench(ToyGroup(target=1, instances=[("toy-1", UNSPECIFIED, "out-of-stock")]))
    scene.loops(14)
    assert scene.story == []
    scene.loops(4)
    assert scene.story[0] == "17 DeleteUnregistered toy 1"


def test_an_error_in_state_running_is_never_cleaned_up(bench: MakeBench, release: Release) -> None:
    """From 1.28 an instance with an error is not waited for, and only errors in state creating are acted on: a leak."""
    scene = bench(ToyGroup(target=1, instances=[("toy-1", RUNNING, "broken")]))
    scene.loops(60)
    deletes = scene.toy.count("NodeGroupDeleteNodes")
    assert (deletes == 0) == release.has(Change.EXPECTS_ONLY_SOUND_INSTANCES)


def test_another_id_begins_the_waiting_anew(bench: MakeBench) -> None:
    """The timer of an unregistered instance hangs on its id, so the id must be there from the beginning and stay."""
    group = ToyGroup(target=1, instances=[("toy-placeholder", CREATING, "")])
    scene = bench(group)
    scene.loops(14)
    group.instances = [("toy-1", CREATING, "")]
    scene.loops(14)
    assert scene.toy.count("NodeGroupDeleteNodes") == 0
    scene.loops(6)
    assert scene.toy.count("NodeGroupDeleteNodes") > 0


def test_an_error_in_the_background_forgets_the_timers(bench: MakeBench) -> None:
    """The instances are taken for none, so when they are back they are new."""
    scene = bench(ToyGroup(target=1, instances=[("toy-1", CREATING, "")]))
    scene.loops(13)
    scene.toy.failing["NodeGroupNodes", "toy"] = "UNAVAILABLE"
    scene.loops(2)
    del scene.toy.failing["NodeGroupNodes", "toy"]
    scene.loops(13)
    assert scene.story == []
    assert scene.errors == []


def test_a_failure_that_belongs_to_nobody_stops_old_releases(bench: MakeBench, release: Release) -> None:
    """Up to 1.30 the group of a failed creation is asked for. Without one, no loop gets any further."""
    scene = bench(ToyGroup(target=1, instances=[("toy-1", CREATING, "out-of-stock")]))
    scene.toy.unmanaged.add("toy-1")
    scene.loops(3)
    if release.has(Change.FAILURES_KNOW_THEIR_GROUP):
        assert scene.toy.count("NodeGroupDeleteNodes") == 3
    else:
        assert {loop.ended for loop in scene.autoscaler.loops} == {"failed creation toy-1 has no group"}
        assert scene.toy.count("NodeGroupDeleteNodes") == 0


@pytest.mark.parametrize("minor", [27, 28, 29, 30, 36])
def test_a_node_that_turns_unmanaged_before_its_deletion(bench_for: MakeBench, minor: int) -> None:
    """Between taint and deletion. 1.28 and 1.29 crash; the others take the taint back and try again later."""
    quick = Flags(frequent_loops=False, node_delete_delay_after_taint=timedelta(seconds=15))
    scene = bench_for(release(minor), ToyGroup(target=1, instances=[("toy-1", RUNNING, "")]), flags=quick)
    node = scene.register("toy-1")
    scene.loop()
    scene.loops(11)
    assert TO_BE_DELETED in node.taints
    scene.toy.unmanaged.add("toy-1")
    scene.autoscaler.provider.refresh()
    if minor in {28, 29}:
        with pytest.raises(AutoscalerCrashed):
            scene.loop(20)
        return
    scene.loop(20)
    assert scene.story == ["12 ScaleDown toy 1 failed: UNMANAGED"]
    assert TO_BE_DELETED not in node.taints


def test_limits_that_come_without_the_node_are_zero(bench: MakeBench) -> None:
    """The minimum that protects a node is the one in the answer to NodeGroupForNode, not the one in NodeGroups."""
    group = ToyGroup(target=2, min_size=2, instances=[("toy-1", RUNNING, ""), ("toy-2", RUNNING, "")])
    scene = bench(group)
    scene.register("toy-1")
    scene.register("toy-2")
    scene.loops(15)
    assert scene.toy.count("NodeGroupDeleteNodes") == 0
    scene.toy.limits_with_nodes = False
    scene.loops(15)
    assert scene.toy.count("NodeGroupDeleteNodes") > 0


def test_each_refusal_makes_the_rest_twice_as_long(bench: MakeBench) -> None:
    """Five minutes, ten, twenty, and never more than thirty."""
    scene = bench(ToyGroup())
    scene.toy.failing["NodeGroupIncreaseSize", "toy"] = "RESOURCE_EXHAUSTED"
    scene.cluster.submit("web")
    scene.loops(110)
    asked = [int(words.split()[0]) for words in scene.story]
    assert asked == [1, 7, 18, 39, 70, 101]


def test_a_cluster_of_broken_nodes_stops_everything(bench: MakeBench) -> None:
    """More than three, and more than 45 percent, also if they belong to nobody."""
    scene = bench(ToyGroup())
    for number in range(4):
        scene.register(f"ghost-{number}", ready=False)
    scene.loops(16)
    scene.cluster.submit("web")
    scene.loops(3)
    assert scene.autoscaler.loops[-1].ended == "cluster unhealthy"
    assert scene.toy.count("NodeGroupIncreaseSize") == 0
    scene.cluster.remove("ghost-0")
    scene.loops(1)
    assert scene.toy.count("NodeGroupIncreaseSize") == 1
