"""Section 3 of the statements: target sizes, growing and releasing."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from .autoscaler import CREATING, DELETING, RUNNING, Autoscaler, refused
from .cloud import Cloud
from .provider import Stage
from .scenes import Blackout, Hanging, failed, grow, hold_slots, running, thousand
from .service import Lease, Service
from .settings import name_for
from .until import until
from .watch import Watch, nothing_happens


def test_021_target_size_is_the_number_of_live_instances_at_every_moment(
    ca: Autoscaler, lease: Lease, cloud: Cloud
) -> None:
    """Statement 21, F09: through growth, a failed creation, deletions and a loss; else the autoscaler dead-locks."""
    group = lease("spot")
    watch = Watch(ca, group)
    with watch.watching():
        grow(ca, group, 3)
        watch.settle()
        cloud.order_preset("no_capacity_503", group)
        ca.increase(group, 1)
        broken = until(
            "a creation has failed", lambda: [each for each, state in ca.states(group).items() if state == 2]
        )
        until("it says why", lambda: _error_of(ca, group, broken[0]))
        watch.settle()
        ca.delete(group, [ca.fake(broken[0])])
        watch.settle()
        ca.delete(group, [ca.fake(ca.live(group)[0])])
        until("the machine is gone", lambda: len(ca.states(group)) == 2)
        cloud.act(cloud.machine(ca.live(group)[0]), "evict")
        until("the loss is noticed", lambda: ca.target(group) == 1)
    assert not watch.mistakes
    assert set(watch.sizes) == {0, 1, 2, 3, 4}


def _error_of(ca: Autoscaler, group: str, instance_id: str) -> str:
    errors = {instance.id: instance.status.errorInfo.errorCode for instance in ca.instances(group)}
    return str(errors[instance_id])


def test_021_every_slot_is_listed(ca: Autoscaler, lease: Lease) -> None:
    """Statement 21: a target size whose slots are listed nowhere is never cleaned up."""
    group = lease()
    ca.increase(group, 2)
    assert ca.target(group) == len(ca.live(group)) == 2


def test_022_what_is_being_deleted_does_not_count(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 22, F17: however long the cloud takes with the deletion."""
    group = lease("gpu")
    first, second = grow(ca, group, 2)
    fault = cloud.refuse_deletion(cloud.machine(first))
    ca.delete(group, [ca.real(first)])
    until("the cloud has refused the deletion", lambda: cloud.fired(fault))
    assert ca.sizes(group) == (1, {first: DELETING, second: RUNNING})


def test_023_the_target_size_is_known_while_the_cloud_is_away(
    blackout: Blackout, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 23: an error for one group would stop the autoscaler for all groups."""
    ca = visit(blackout.stage.address)
    assert all(isinstance(ca.target(group), int) for group in ca.groups())
    for kind, size in {"gpu": 2, "sold-out": 1}.items():
        assert ca.target(name_for(kind, generation)) == size


def test_023_the_target_size_is_known_while_the_cloud_hangs(
    hanging: Hanging, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 23: nor may it wait for anything."""
    hanging.trouble("hang")
    ca = visit(hanging.stage.address)
    assert all(isinstance(ca.target(group), int) for group in ca.groups())
    assert ca.target(name_for("gpu", generation)) == 1


def test_024_growth_shows_in_the_very_next_answer(
    ca: Autoscaler, lease: Lease, service: Service, request: pytest.FixtureRequest
) -> None:
    """Statement 24: the autoscaler reads the target size again at once; each new slot is an instance being created."""
    group = lease()
    if not service.is_external:
        request.getfixturevalue("cloud").order_preset("stuck_ordered", group, times=2)
    ca.increase(group, 2)
    assert ca.target(group) == 2
    states = ca.states(group)
    assert list(states.values()) == [CREATING, CREATING]
    ca.increase(group, 1)
    assert ca.target(group) == 3
    assert states.items() <= ca.states(group).items()


@pytest.mark.parametrize("delta", [0, -1, -(2**31)])
def test_025_growth_by_nothing_is_refused(ca: Autoscaler, lease: Lease, delta: int) -> None:
    """Statement 25: it is a mistake of the caller."""
    group = lease()
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        ca.increase(group, delta)
    assert ca.sizes(group) == (0, {})


@pytest.mark.parametrize("beyond", [1, 1000, 2**30])
def test_026_growth_beyond_the_maximum_is_refused_as_a_whole(ca: Autoscaler, lease: Lease, beyond: int) -> None:
    """Statement 26: not even those that would have fitted."""
    group = lease()
    largest = ca.groups()[group].maxSize
    with refused(grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.FAILED_PRECONDITION):
        ca.increase(group, largest + beyond)
    assert ca.sizes(group) == (0, {})


def test_026_the_present_size_counts(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 26: two of three and two more are too many, one more is not."""
    group = lease("small")
    grow(ca, group, 2)
    with nothing_happens(ca, cloud, group), refused(grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.FAILED_PRECONDITION):
        ca.increase(group, 2)
    ca.increase(group, 1)
    assert ca.target(group) == 3


def test_027_growth_does_not_wait_for_the_cloud(
    hanging: Hanging, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 27: accepted is accepted, although the order may hang for a minute."""
    hanging.trouble("hang")
    ca, group = visit(hanging.stage.address), name_for("spot", generation)
    request = ca.request("NodeGroupIncreaseSize", id=group, delta=2).SerializeToString()
    ca.raw("NodeGroupIncreaseSize", request, timeout=1.0)
    assert ca.target(group) == 2


def test_027_growth_is_accepted_while_the_cloud_is_away(
    blackout: Blackout, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 27: and kept for the time when it is back."""
    ca, group = visit(blackout.stage.address), name_for("small", generation)
    ca.increase(group, 2)
    assert ca.target(group) == len(ca.live(group)) == 2


def test_027_a_thousand_nodes_are_accepted_within_the_deadline(
    hanging: Hanging, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 27: so many the autoscaler asks for at once; a late OK counts as failed, and it would buy elsewhere."""
    ca, group = visit(hanging.stage.address), name_for("crowd", generation)
    with thousand(ca, group):
        assert ca.target(group) == 1000


def test_028_only_one_of_two_gets_the_last_place(ca: Autoscaler, lease: Lease) -> None:
    """Statement 28: whoever comes second must see what the first has taken."""
    group = lease("small")
    grow(ca, group, 2)
    assert sorted(_at_once(ca, group, 2), key=str) == [grpc.StatusCode.FAILED_PRECONDITION, grpc.StatusCode.OK]
    assert ca.target(group) == 3


def test_028_eight_at_once_for_three_places(ca: Autoscaler, lease: Lease) -> None:
    """Statement 28, F15: exactly three succeed, the others get the same clear refusal."""
    group = lease("small")
    codes = _at_once(ca, group, 8)
    assert codes.count(grpc.StatusCode.OK) == 3
    assert codes.count(grpc.StatusCode.FAILED_PRECONDITION) == 5
    assert ca.target(group) == len(ca.live(group)) == 3


def _at_once(ca: Autoscaler, group: str, callers: int) -> list[grpc.StatusCode]:
    together = threading.Barrier(callers)

    def grab(_: int) -> grpc.StatusCode:
        together.wait(30)
        try:
            ca.increase(group, 1)
        except grpc.RpcError as error:
            return error.code()
        return grpc.StatusCode.OK

    with ThreadPoolExecutor(callers) as pool:
        return list(pool.map(grab, range(callers)))


@pytest.mark.parametrize("delta", [0, 1, 2**31 - 1])
def test_029_a_decrease_upwards_is_refused(ca: Autoscaler, lease: Lease, delta: int) -> None:
    """Statement 29: the delta of a decrease is negative."""
    group = lease()
    ca.increase(group, 1)
    before = ca.target(group), ca.live(group)
    with refused(grpc.StatusCode.INVALID_ARGUMENT):
        ca.decrease(group, delta)
    assert (ca.target(group), ca.live(group)) == before


def test_030_unfulfilled_slots_are_released(ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud) -> None:
    """Statement 30: as many as asked for; nothing is deleted at the cloud, for there is nothing."""
    group = lease("gpu")
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 5)
        ca.decrease(group, -2)
        assert ca.target(group) == len(ca.live(group)) == 3
    running(ca, group, 3)
    assert len(cloud.alive(group)) == 3
    assert not any(machine["delete_requests"] for machine in cloud.alive(group))


def test_031_machines_are_never_released(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 31, F03: a decrease is no deletion."""
    group = lease("gpu")
    grow(ca, group, 2)
    with nothing_happens(ca, cloud, group), refused(grpc.StatusCode.FAILED_PRECONDITION):
        ca.decrease(group, -1)


def test_031_an_order_under_way_is_not_released(ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud) -> None:
    """Statement 31: a machine may come of it."""
    group = lease("gpu")
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 2)
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            ca.decrease(group, -2)
        assert ca.target(group) == 2
    running(ca, group, 2)


def test_032_fewer_than_asked_for_is_a_success(ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud) -> None:
    """Statement 32, F03: the autoscaler counts slots with a machine too; a refusal would stop its loop for ever."""
    group = lease("gpu")
    (machine,) = grow(ca, group, 1)
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 3)
        ca.decrease(group, -4)
        assert ca.target(group) == 3
        assert machine in ca.live(group)
        with refused(grpc.StatusCode.FAILED_PRECONDITION):
            ca.decrease(group, -1)
    running(ca, group, 3)
    assert not any(each["delete_requests"] for each in cloud.alive(group))


def test_033_a_decrease_goes_below_the_minimum_but_not_below_zero(
    blackout: Blackout, visit: Callable[[str], Autoscaler], generation: str
) -> None:
    """Statement 33: the autoscaler takes back what it asked for in vain, at any size."""
    ca, group = visit(blackout.stage.address), name_for("base", generation)
    assert ca.groups()[group].minSize == 2
    ca.increase(group, 4)
    until("all are released", lambda: _released(ca, group, -100))
    assert ca.sizes(group) == (0, {})


def _released(ca: Autoscaler, group: str, delta: int) -> bool:
    """Release what is no order under way at this moment; whether nothing is left."""
    try:
        ca.decrease(group, delta)
    except grpc.RpcError as error:
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION  # noqa: PT017 - one of two outcomes
    assert ca.target(group) == len(ca.live(group)) >= 0
    return ca.target(group) == 0


def test_034_a_released_slot_never_becomes_a_machine(ca: Autoscaler, lease: Lease, stage: Stage, cloud: Cloud) -> None:
    """Statement 34: the orders under way come through, the released ones are never sent."""
    group = lease("gpu")
    with cloud.orders_held(2):
        hold_slots(stage, ca, group, 4)
        wished = set(ca.live(group))
        ca.decrease(group, -2)
        kept = set(ca.live(group))
    assert set(running(ca, group, 2)) == kept
    hostnames = {f"verda://{machine['hostname']}" for machine in cloud.machines(group)}
    assert kept <= hostnames
    assert not (wished - kept) & hostnames


def test_034_releases_race_orders_without_a_machine_too_many(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 34: whichever comes first, in the end there are as many machines as slots."""
    group = lease("gpu")
    for _ in range(3):
        ca.increase(group, 2)
        _released(ca, group, -2)
    size = ca.target(group)
    assert set(running(ca, group, size)) == {f"verda://{machine['hostname']}" for machine in cloud.alive(group)}


def test_031_a_failed_creation_is_no_unfulfilled_slot(ca: Autoscaler, lease: Lease, cloud: Cloud) -> None:
    """Statement 31: the autoscaler has been told of it and deletes it by name."""
    group = lease("sold-out")
    ca.increase(group, 1)
    failed(ca, group)
    with nothing_happens(ca, cloud, group), refused(grpc.StatusCode.FAILED_PRECONDITION):
        ca.decrease(group, -1)
