"""The `Cloud` port, one suite for both adapters: deleting, and one story told by both."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from app.cloud.port import Deletion, DeletionResult
from app.domain.machine import Machine
from app.domain.offering import Contract
from app.errors import OutcomeUnknown, Rejected

from .contract import CONFIG, NOWHERE, ORDER, SPOT, Side, in_process, over_http, whole


def test_a_provisioning_machine_is_not_deleted_yet(side: Side) -> None:
    """Ask again later; the API's words say why."""
    machine = side.created()
    side.clock.advance(6)
    (answer,) = side.cloud.delete_instances([whole(machine)])
    assert (answer.result, answer.code) == (DeletionResult.REFUSED, "forbidden_action")
    assert answer.message == "Can't discontinue a provisioning instance"
    side.clock.advance(100)
    assert side.delete(whole(machine)) is DeletionResult.ACCEPTED


def test_a_deleted_machine_goes_step_by_step(side: Side) -> None:
    """Listed as deleting, then only to be looked up; its disk is gone for good."""
    machine = side.running()
    assert side.delete(whole(machine)) is DeletionResult.ACCEPTED
    assert [each.status for each in side.cloud.list_instances()] == ["deleting"]
    side.clock.advance(15)
    assert list(side.cloud.list_instances()) == []
    ended = side.cloud.get_instance(machine.instance_id)
    assert ended is not None
    assert ended.status == "discontinued"
    assert list(side.cloud.volumes()) == []


def test_deleting_twice_is_fine(side: Side) -> None:
    """Today's servers answer 204."""
    machine = side.running()
    side.cloud.delete_instances([whole(machine)])
    side.clock.advance(15)
    assert side.delete(whole(machine)) is DeletionResult.ALREADY_GONE


def test_deleting_twice_was_a_refusal_once(old_side: Side) -> None:
    """Servers before March 2026 answered 403 in these words; they also quoted their ids here."""
    machine = old_side.running()
    old_side.cloud.delete_instances([whole(machine)])
    old_side.clock.advance(15)
    assert old_side.delete(whole(machine)) is DeletionResult.ALREADY_GONE


def test_deleting_what_never_was_is_fine(side: Side) -> None:
    """Not there is what was asked for."""
    assert side.delete(Deletion(instance_id=NOWHERE, volume_ids=None)) is DeletionResult.ALREADY_GONE


@pytest.mark.parametrize(
    "deletion_of",
    [lambda each: whole(each, permanent=False), lambda each: Deletion(instance_id=each.instance_id, volume_ids=None)],
)
def test_a_disk_that_is_not_deleted_for_good_goes_to_the_trash(
    side: Side, deletion_of: Callable[[Machine], Deletion]
) -> None:
    """It is no volume of the project any more."""
    machine = side.running()
    assert side.delete(deletion_of(machine)) is DeletionResult.ACCEPTED
    side.clock.advance(15)
    assert list(side.cloud.volumes()) == []


def test_many_are_deleted_and_each_is_answered(side: Side) -> None:
    """Some accepted, some not yet, some long gone; in the order asked."""
    cpu = replace(ORDER, instance_type="CPU.4V.16G")
    ready = [side.cloud.create_instance(replace(cpu, hostname=f"cpu-{number}")) for number in range(12)]
    side.clock.advance(106)
    young = [side.cloud.create_instance(replace(cpu, hostname=f"cpu-{number}")) for number in range(12, 24)]
    side.clock.advance(6)
    machines = {machine.instance_id: machine for machine in side.cloud.list_instances()}
    wishes = [whole(machines[each]) for pair in zip(ready, young, strict=True) for each in pair]
    wishes.append(Deletion(instance_id=NOWHERE, volume_ids=None))
    answers = side.cloud.delete_instances(wishes)
    assert [each.instance_id for each in answers] == [each.instance_id for each in wishes]
    assert [each.result for each in answers] == [
        *[DeletionResult.ACCEPTED, DeletionResult.REFUSED] * 12,
        DeletionResult.ALREADY_GONE,
    ]


@pytest.mark.parametrize("name", ["delete_timeout_before_commit", "delete_timeout_after_commit"])
def test_a_deletion_without_an_answer_is_unknown(side: Side, name: str) -> None:
    """Asking again is right in either case."""
    machine = side.running()
    side.trouble(name)
    with pytest.raises(OutcomeUnknown):
        side.cloud.delete_instances([whole(machine)])
    assert side.delete(whole(machine)) in {DeletionResult.ACCEPTED, DeletionResult.ALREADY_GONE}


def test_one_unclear_answer_does_not_take_the_others_away(side: Side) -> None:
    """What was accepted is known to be accepted."""
    first, second = side.running(), side.running(SPOT)
    side.trouble("delete_timeout_before_commit")
    answers = side.cloud.delete_instances([whole(first), whole(second)])
    assert [each.result for each in answers] == [DeletionResult.REFUSED, DeletionResult.ACCEPTED]


def test_an_evicted_spot_machine_vanishes_with_its_disk(side: Side) -> None:
    """Without notice: only a look-up still shows it."""
    machine = side.running(SPOT)
    side.trouble("evict", instance=machine.instance_id)
    side.clock.advance(15)
    assert list(side.cloud.list_instances()) == []
    ended = side.cloud.get_instance(machine.instance_id)
    assert ended is not None
    assert ended.status == "discontinued"
    assert list(side.cloud.volumes()) == []


def test_a_kept_volume_can_be_deleted_later_and_again(side: Side) -> None:
    """What is already gone is fine."""
    machine = side.running()
    (volume,) = side.cloud.volumes()
    assert (volume.volume_id, volume.name) == (machine.os_volume_id, ORDER.hostname)
    assert (volume.size_gb, volume.is_os_volume, volume.instance_id) == (100, True, machine.instance_id)
    with pytest.raises(Rejected):
        side.cloud.delete_volume(volume.volume_id, permanent=True)
    side.cloud.delete_instances([Deletion(instance_id=machine.instance_id, volume_ids=(NOWHERE,))])
    side.clock.advance(15)
    (kept,) = side.cloud.volumes()
    assert kept.instance_id is None
    for _ in range(2):
        side.cloud.delete_volume(kept.volume_id, permanent=True)
        side.clock.advance(1)
    assert list(side.cloud.volumes()) == []


def test_both_adapters_tell_the_same_story() -> None:
    """What the deterministic simulation proves with one of them holds for the other."""

    def story(side: Side) -> list[object]:
        told: list[object] = []
        cloud = side.cloud

        def look() -> None:
            told.extend((cloud.list_instances(), cloud.volumes(), cloud.balance()))

        kept = side.running()
        gone = side.running(SPOT)
        look()
        told.append(cloud.delete_instances([whole(kept, permanent=False), whole(gone)]))
        look()
        side.clock.advance(15)
        look()
        told.append([cloud.get_instance(each.instance_id) for each in (kept, gone)])
        told.append(cloud.delete_instances([whole(kept), whole(gone)]))
        told.extend((cloud.instance_types(), cloud.locations(), cloud.images()))
        told.extend(cloud.availability(contract) for contract in Contract)
        return told

    with over_http(CONFIG) as one, in_process(CONFIG) as other:
        assert story(one) == story(other)
