"""Section 5 of the statements: NodeGroupDeleteNodes."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc

from .autoscaler import CREATING, DELETING, RUNNING, Autoscaler, refused
from .cloud import Cloud
from .provider import Stage
from .scenes import Blackout, Hanging, Revived, failed, grow, hold_slots, running
from .service import Lease
from .settings import name_for
from .until import until

BAD_NODE = (grpc.StatusCode.NOT_FOUND, grpc.StatusCode.INVALID_ARGUMENT)


def test_045_deleted_machines_leave_the_target_at_once_and_the_cloud_soon(
    ca: Autoscaler, lease: Lease, cloud: Cloud
) -> None:
    """Statement 45: each is being deleted or gone in the very next answer; the others stay."""
    group = lease("gpu")
    first, second, third = grow(ca, group, 3)
    ca.delete(group, [ca.real(first), ca.real(second)])
    assert ca.target(group) == 1
    states = ca.states(group)
    assert states.pop(third) == RUNNING
    assert states.items() <= {first: DELETING, second: DELETING}.items()
    until("both are terminated", lambda: len(cloud.alive(group)) == 1)
    until("both are no longer listed", lambda: ca.states(group) == {third: RUNNING})
    assert cloud.machine(third)["delete_requests"] == 0


def test_045_slots_leave_the_target_at_once(ca: Autoscaler, lease: Lease) -> None:
    """Statement 45: whatever has become of them yet."""
    group = lease()
    ca.increase(group, 3)
    first, second, third = ca.live(group)
    ca.delete(group, [ca.fake(first), ca.fake(second)])
    assert ca.target(group) == 1
    assert ca.live(group) == [third]


def test_046_deleting_again_is_fine_while_it_is_being_deleted(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 46, F06: ten times, and the target falls by one."""
    group = lease("gpu")
    first, second = grow(ca, group, 2)
    fault = cloud.refuse_deletion(cloud.machine(first))
    for _ in range(10):
        ca.delete(group, [ca.real(first)])
        assert ca.sizes(group) == (1, {first: DELETING, second: RUNNING})
    until("the cloud has refused the deletion", lambda: cloud.fired(fault))
    ca.delete(group, [ca.real(first)])
    assert ca.sizes(group) == (1, {first: DELETING, second: RUNNING})


def test_046_deleting_again_is_fine_when_it_is_gone(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 46: one machine goes, and it goes once."""
    group = lease("gpu")
    first, second = grow(ca, group, 2)
    ca.delete(group, [ca.real(first)])
    until("it is gone", lambda: ca.states(group) == {second: RUNNING})
    for _ in range(5):
        ca.delete(group, [ca.real(first)])
        assert ca.sizes(group) == (1, {second: RUNNING})
    assert cloud.machine(first)["delete_requests"] == 1
    assert cloud.machine(second)["delete_requests"] == 0


def test_046_deleting_again_is_fine_for_slots(ca: Autoscaler, lease: Lease) -> None:
    """Statement 46: the autoscaler repeats the call as long as it sees the instance."""
    group = lease()
    ca.increase(group, 2)
    first, second = ca.live(group)
    for _ in range(3):
        ca.delete(group, [ca.fake(first)])
        assert ca.target(group) == 1
    assert ca.live(group) == [second]


def test_046_deleting_again_after_a_restart_is_fine(
    revived: Revived, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 46: the autoscaler does not know that we were restarted."""
    ca, group, (gone, left) = visit(revived.stage.address), name_for("spot", generation), revived.kept[generation].pair
    ca.delete(group, [ca.real(gone)])
    assert ca.target(group) == 1
    assert ca.live(group) == [left]


def test_047_the_same_node_twice_counts_once(ca: Autoscaler, lease: Lease) -> None:
    """Statement 47: also when it is spelled differently."""
    group = lease()
    ca.increase(group, 2)
    first, second = ca.live(group)
    ca.delete(group, [ca.fake(first), ca.fake(first), ca.real(first)])
    assert ca.target(group) == 1
    assert ca.live(group) == [second]


def test_048_a_failed_creation_can_be_deleted(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 48, F04, F05: nothing is terminated, for nothing exists; the slot is gone and not filled again."""
    group = lease("sold-out")
    ca.increase(group, 1)
    instance = failed(ca, group)
    ordered = cloud.orders()
    ca.delete(group, [ca.fake(instance.id, "create-error")])
    assert ca.sizes(group) == (0, {})
    ca.delete(group, [ca.fake(instance.id, "create-error")])
    assert ca.sizes(group) == (0, {})
    assert not cloud.machines(group)
    assert cloud.orders() == ordered


def test_048_wishes_and_orders_under_way_can_be_deleted(
    ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud
) -> None:
    """Statement 48: wishes are dropped; what comes of orders that are under way is terminated."""
    group = lease("gpu")
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 4)
        wished = ca.live(group)
        ca.delete(group, [ca.fake(each) for each in wished[:3]])
        assert ca.target(group) == 1
        assert len(ca.live(group)) == 1
    running(ca, group, 1)
    until("one machine is left", lambda: len(cloud.alive(group)) == 1)
    assert ca.states(group) == {wished[3]: RUNNING}


def test_048a_a_slot_released_before_can_be_deleted(ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud) -> None:
    """Statement 48a: from 1.36 on a decrease and a deletion of the same slot come in one loop."""
    group = lease("gpu")
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 4)
        wished = ca.live(group)
        ca.decrease(group, -2)
        released = set(wished) - set(ca.live(group))
        assert len(released) == 2
        ca.delete(group, [ca.fake(each) for each in released])
        assert ca.target(group) == 2
    assert set(running(ca, group, 2)) == set(wished) - released


def test_048a_a_slot_released_before_a_restart_can_be_deleted(
    revived: Revived, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 48a: what was released is remembered for longer than the process lives."""
    ca, group = visit(revived.stage.address), name_for("small", generation)
    released = set(revived.kept[generation].wishes) - set(ca.states(group))
    assert len(released) == 2
    ca.delete(group, [ca.fake(each) for each in released])
    assert ca.target(group) == 1


def test_049_the_minimum_does_not_matter(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 49, F05: a failed creation goes at minimum size, and so does a machine; neither is replaced by us."""
    group = lease("base")
    assert ca.groups()[group].minSize == 2
    grow(ca, group, 1)
    cloud.order_preset("no_capacity_503", group)
    ca.increase(group, 1)
    broken = until(
        "a creation has failed", lambda: [each.id for each in ca.instances(group) if each.status.errorInfo.errorCode]
    )
    ca.delete(group, [ca.fake(broken[0], "create-error")])
    assert ca.target(group) == 1
    ca.delete(group, [ca.real(ca.live(group)[0])])
    assert ca.target(group) == 0
    until("the machine is gone", lambda: ca.sizes(group) == (0, {}))


def test_050_one_strange_node_saves_all(ca: Autoscaler, lease: Lease) -> None:
    """Statement 50: unknown to us or of no group; all are checked before anything is done."""
    group = lease()
    ca.increase(group, 2)
    mine, before = ca.live(group), ca.target(group)
    for stranger in ("verda://gpu-aaaaaaaa", "aws:///eu-1a/i-0"):
        for nodes in ([mine[0], stranger], [stranger, mine[0]], [stranger]):
            with refused(*BAD_NODE):
                ca.delete(group, [ca.fake(each) for each in nodes])
    assert ca.target(group) == before
    assert ca.live(group) == mine


def test_050_a_node_of_another_group_saves_all(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 50: the same holds for a node of another group."""
    group, other = lease("gpu"), lease("gpu")
    (mine,) = grow(ca, group, 1)
    (theirs,) = grow(ca, other, 1)
    with refused(*BAD_NODE):
        ca.delete(group, [ca.real(mine), ca.real(theirs)])
    assert (ca.sizes(group), ca.sizes(other)) == ((1, {mine: RUNNING}), (1, {theirs: RUNNING}))
    assert not any(machine["delete_requests"] for each in (group, other) for machine in cloud.alive(each))


def test_051_twenty_deletions_at_once_count_as_twenty(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 51, F06: without batching the autoscaler makes one call a node, many in parallel."""
    group = lease("gpu")
    ca.increase(group, 22)
    doomed = ca.live(group)[:20]
    with ThreadPoolExecutor(20) as pool:
        list(pool.map(lambda each: ca.delete(group, [ca.fake(each)]), doomed))
    assert ca.target(group) == 2
    assert not set(doomed) & set(ca.live(group))
    left = running(ca, group, 2)
    assert {f"verda://{machine['hostname']}" for machine in cloud.alive(group)} == set(left)


def test_051_deletions_at_once_of_running_machines(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 51: exactly those machines are terminated."""
    group = lease("gpu")
    machines = grow(ca, group, 6)
    with ThreadPoolExecutor(5) as pool:
        list(pool.map(lambda each: ca.delete(group, [ca.real(each)]), machines[:5]))
    assert ca.target(group) == 1
    until("five are gone", lambda: ca.states(group) == {machines[5]: RUNNING})
    assert {f"verda://{machine['hostname']}" for machine in cloud.alive(group)} == {machines[5]}


def test_052_a_node_can_be_named_instead_of_identified(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 52: kubelets without `--provider-id` exist."""
    group = lease("gpu")
    first, second = grow(ca, group, 2)
    ca.delete(group, [ca.node(name=first.removeprefix("verda://"))])
    assert ca.target(group) == 1
    assert ca.live(group) == [second]
    until("the machine is terminated", lambda: len(cloud.alive(group)) == 1)


def test_052_a_node_without_name_and_id_is_refused(ca: Autoscaler, lease: Lease) -> None:
    """Statement 52: and nothing else of the call is done."""
    group = lease()
    ca.increase(group, 1)
    (instance_id,) = ca.live(group)
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        ca.delete(group, [ca.fake(instance_id), ca.node()])
    assert ca.target(group) == 1
    assert ca.live(group) == [instance_id]


def test_053_deleting_nothing_is_fine(ca: Autoscaler, lease: Lease) -> None:
    """Statement 53: and changes nothing."""
    group = lease()
    ca.increase(group, 1)
    before = ca.target(group), ca.live(group)
    ca.delete(group, [])
    assert (ca.target(group), ca.live(group)) == before


def test_054_a_deleted_slot_is_never_filled_again(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 54, F50: the wish for fewer wins over the wish for more; new wishes get new names."""
    group = lease("gpu")
    first, second = grow(ca, group, 2)
    ca.delete(group, [ca.real(first)])
    ca.increase(group, 1)
    until("the first is gone", lambda: first not in ca.states(group))
    left = running(ca, group, 2)
    assert second in left
    assert first not in left
    listings = cloud.listings()
    until("the machines were listed twice", lambda: cloud.listings() > listings + 1)
    assert ca.target(group) == 2
    hostnames = [machine["hostname"] for machine in cloud.machines(group)]
    assert hostnames.count(first.removeprefix("verda://")) == 1
    assert len(cloud.alive(group)) == 2


def test_054_nothing_comes_in_the_place_of_what_was_deleted(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 54, F05: keeping a number of machines is the autoscaler's business."""
    group = lease("base")
    first, second = grow(ca, group, 2)
    ca.delete(group, [ca.real(first)])
    until("the machine is gone", lambda: ca.states(group) == {second: RUNNING})
    listings = cloud.listings()
    until("the machines were listed twice", lambda: cloud.listings() > listings + 1)
    assert ca.sizes(group) == (1, {second: RUNNING})
    assert len(cloud.alive(group)) == 1


def test_054_a_deletion_goes_on_after_a_restart(
    revived: Revived, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 54: until the cloud confirms it; here it refused from before the kill until after the restart."""
    ca, group, kept = visit(revived.stage.address), name_for("base", generation), revived.kept[generation]
    assert kept.refusals
    assert ca.target(group) == 0
    assert ca.states(group).items() <= {kept.stubborn: DELETING}.items()
    assert not ca.group_of(ca.real(kept.stubborn)).id
    until("the machine is terminated", lambda: not revived.stage.cloud.alive(group))
    until("it is no longer listed", lambda: ca.sizes(group) == (0, {}))


def test_055_a_deletion_is_accepted_while_the_cloud_is_away(
    blackout: Blackout, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 55: on an error the autoscaler would take its taint back and use the node again."""
    ca, group = visit(blackout.stage.address), name_for("spot", generation)
    ((instance_id, state),) = blackout.before[group][1].items()
    assert state == RUNNING
    ca.delete(group, [ca.real(instance_id)])
    assert ca.sizes(group) == (0, {instance_id: DELETING})
    assert not ca.group_of(ca.real(instance_id)).id


def test_055_a_deletion_is_accepted_while_the_cloud_hangs(
    hanging: Hanging, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 55: within a second, although the call to the cloud hangs for a minute."""
    hanging.trouble("hang")
    ca, group = visit(hanging.stage.address), name_for("base", generation)
    (instance_id,) = ca.live(group)
    request = ca.request("NodeGroupDeleteNodes", id=group, nodes=[ca.real(instance_id)]).SerializeToString()
    ca.raw("NodeGroupDeleteNodes", request, timeout=1.0)
    assert ca.sizes(group) == (0, {instance_id: DELETING})
    assert CREATING not in ca.states(group).values()
