from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from app.cloud.port import Deletion, DeletionResult
from app.domain.cloud import RecordSurplus
from app.domain.instance.events import DeleteAttempted, DeleteRefused
from app.domain.machine import Machine
from app.errors import CloudError, StoreUnavailable

from .house import House, spec
from .world import (
    BUSY,
    DOWN,
    ENDED,
    NO_STOCK,
    TIMEOUT,
    Answers,
    Deletions,
    OnLook,
    answers,
    deletes_and,
    deletes_not,
    does_not_list,
    does_not_look,
    lists_stale,
    refuses,
)


def asked(house: House) -> list[tuple[str, tuple[str, ...] | None]]:
    """Every deletion that the cloud was asked for: id and volumes."""
    return [(deletion.instance_id, deletion.volume_ids) for deletion in house.world.deletions]


def test_a_machine_is_deleted_with_its_system_disk_for_good(house: House) -> None:
    """F29: named in the call and permanent, or it lies in the trash for 96 hours and counts against the quota."""
    (name,) = house.running()
    house.delete(name)
    house.terminate.run()
    assert house.world.deletions == [Deletion(instance_id="id-0001", volume_ids=("os-id-0001",), permanent=True)]
    assert house.state(name) == "deleting"
    house.tick(house.observe)
    assert house.state(name) == "gone"


def test_the_trash_is_the_operator_s_choice(house: House) -> None:
    """F29: volume_policy: trash."""
    house.configure(spec(os_volume_permanent=False))
    (name,) = house.running()
    house.delete(name)
    house.terminate.run()
    assert house.world.deletions == [Deletion(instance_id="id-0001", volume_ids=("os-id-0001",), permanent=False)]


def test_a_volume_that_somebody_attached_stays(house: House) -> None:
    """A persistent volume of the cluster, a data set: nobody asked us to destroy it."""
    (name,) = house.running()
    machine = house.world.alive[name]
    house.world.records["id-0001"] = replace(machine, volume_ids=("os-id-0001", "data-1"))
    house.tick(house.observe)
    assert house.instance(name).volume_ids == ("os-id-0001", "data-1")
    house.delete(name)
    house.terminate.run()
    assert asked(house) == [("id-0001", ("os-id-0001",))]


def test_a_disk_that_appeared_since_the_last_listing_is_still_named(house: House) -> None:
    """Deleted early: the direct look learns of it; unnamed it would stay behind."""
    (name,) = house.grow()
    house.provision.run()
    house.tick(house.observe)
    assert house.instance(name).os_volume_id is None
    house.delete(name)
    house.world.boot()
    house.terminate.run()
    assert asked(house) == [("id-0001", ("os-id-0001",))]


def test_a_machine_without_a_disk_yet_is_deleted_without_naming_one(house: House) -> None:
    """The API puts what may still come into the trash by itself."""
    (name,) = house.grow()
    house.provision.run()
    house.delete(name)
    house.terminate.run()
    assert asked(house) == [("id-0001", None)]


def test_a_look_for_the_disk_that_fails_does_not_keep_the_machine(house: House) -> None:
    """It costs more than its disk."""
    (name,) = house.grow()
    house.provision.run()
    house.delete(name)
    house.world.on_look.append(does_not_look(DOWN))
    house.terminate.run()
    assert asked(house) == [("id-0001", None)]


def looks_slowly(house: House) -> OnLook:
    """Every look-up takes all the time that it may."""

    def plan(look: Callable[[], Machine | None]) -> Machine | None:
        house.clock.advance(30)
        return look()

    return plan


def test_slow_looks_for_disks_keep_no_machine_for_more_than_a_minute(house: House) -> None:
    """Fifty of them would take so long that the process is taken for stuck, and nothing is ever deleted."""
    names = house.grow(10)
    house.provision_until_quiet()
    house.delete(*names)
    house.world.always_look = looks_slowly(house)
    before = house.clock.monotonic()
    house.terminate.run()
    assert house.clock.monotonic() - before == 60
    assert sorted(instance_id for instance_id, _ in asked(house)) == [f"id-{i:04}" for i in range(1, 11)]


def test_slow_looks_for_what_is_gone_already_end_after_a_minute(house: House) -> None:
    """Those not looked at are asked for again."""
    names = house.running(10)
    house.delete(*names)
    house.world.records.clear()
    house.world.on_delete.append(answers(DeletionResult.ALREADY_GONE))
    house.world.always_look = looks_slowly(house)
    before = house.clock.monotonic()
    house.terminate.run()
    assert house.clock.monotonic() - before == 60
    assert [house.state(name) for name in names].count("gone") == 2


def test_slow_looks_at_machines_too_many_end_after_a_minute_and_go_on_with_the_others(house: House) -> None:
    """Whichever was looked at longest ago comes first."""
    for number, letter in enumerate("abcdefghij"):
        name = f"h100-{letter * 8}"
        house.world.records[f"id-{number}"] = house.machine(name, f"id-{number}")
        house.execute(RecordSurplus(instance=name, instance_id=f"id-{number}", reason="released"))
    house.world.always_look = looks_slowly(house)
    for pass_ in range(1, 6):
        before = house.clock.monotonic()
        house.terminate.run()
        assert house.clock.monotonic() - before == 60
        assert len(asked(house)) == 2 * pass_
    assert {instance_id for instance_id, _ in asked(house)} == {f"id-{number}" for number in range(10)}


def test_looking_for_a_disk_does_not_end_an_outage_in_the_log(house: House) -> None:
    """Listing fails, looking works: not one pair of facts for every look."""
    (name,) = house.grow()
    house.provision.run()
    house.world.always_list = does_not_list(DOWN)
    house.world.always_delete = answers(DeletionResult.REFUSED, "forbidden_action")
    house.delete(name)
    house.ticks(12)
    assert house.types().count("cloud.unreachable") == 1
    assert house.types().count("cloud.reachable") == 0


def test_many_machines_are_deleted_in_one_call(house: House) -> None:
    """Sixty calls a minute are allowed: a hundred deletions one by one would be too many."""
    names = house.running(12)
    calls: list[int] = []

    def count(deletions: Deletions, delete: Callable[[], Answers]) -> Answers:
        calls.append(len(deletions))
        return delete()

    house.world.always_delete = count
    house.delete(*names)
    house.terminate.run()
    assert calls == [12]
    house.tick(house.observe)
    assert {house.state(name) for name in names} == {"gone"}


def test_running_twice_asks_once(house: House) -> None:
    """The first call is given time to show."""
    (name,) = house.running()
    house.world.on_delete.append(answers(DeletionResult.ACCEPTED))
    house.delete(name)
    house.terminate.run()
    house.terminate.run()
    assert len(asked(house)) == 1


def test_a_machine_still_provisioning_is_deleted_as_soon_as_verda_takes_it(house: House) -> None:
    """The intent is kept: refused for a while, with a growing pause, then taken."""
    (name,) = house.grow()
    house.provision.run()
    house.world.change(name, "provisioning")
    house.tick(house.observe)
    house.delete(name)
    house.ticks(6)
    refusals = [item.event for item in house.log if isinstance(item.event, DeleteRefused)]
    assert {refusal.message for refusal in refusals} == {"Can't discontinue a provisioning instance"}
    assert 3 <= len(refusals) <= 6
    assert (house.state(name), house.target()) == ("deleting", 0)
    house.world.boot()
    house.ticks(8)
    assert (house.state(name), house.world.alive) == ("gone", {})


def test_the_pause_between_refused_deletions_doubles(house: House) -> None:
    """2, 4, 8, 16, 32 seconds, then a minute: seven calls in three minutes, not one a run."""
    (name,) = house.running()
    house.world.always_delete = answers(DeletionResult.REFUSED, "forbidden_action", "not now")
    house.delete(name)
    for _ in range(180):
        house.terminate.run()
        house.clock.advance(1)
    assert len(asked(house)) == 7


def test_a_deletion_that_was_taken_and_never_executed_is_asked_for_again(house: House) -> None:
    """202 promises nothing: half a minute later the machine is still listed."""
    (name,) = house.running()
    house.world.on_delete.append(answers(DeletionResult.ACCEPTED))
    house.delete(name)
    house.ticks(3)
    assert (len(asked(house)), house.state(name)) == (1, "deleting")
    house.ticks(2)
    assert (len(asked(house)), house.state(name)) == (2, "gone")
    attempts = [item.event.attempt for item in house.log if isinstance(item.event, DeleteAttempted)]
    assert attempts == [1, 2]


def test_a_deletion_cut_off_by_a_crash_is_asked_for_at_once_after_the_restart(house: House) -> None:
    """Nobody heard the answer, so there is nothing to wait for; and it is asked for once, not each time."""
    (name,) = house.running()
    house.world.on_delete.append(answers(DeletionResult.ACCEPTED))
    house.delete(name)
    house.terminate.run()
    house.restart()
    house.terminate.run()
    assert len(asked(house)) == 2
    house.terminate.run()
    assert len(asked(house)) == 2


@pytest.mark.parametrize("error", [TIMEOUT, DOWN, BUSY], ids=["unknown", "not sent", "throttled"])
def test_a_deletion_that_failed_is_asked_for_again(house: House, error: CloudError) -> None:
    """Asking again is right whether it was executed or not."""
    (name,) = house.running()
    house.world.on_delete.append(deletes_not(error))
    house.delete(name)
    house.terminate.run()
    assert (house.state(name), house.instance(name).delete_code) == ("deleting", error.code)
    house.ticks(3)
    assert (house.state(name), house.world.alive) == ("gone", {})


def test_a_deletion_whose_answer_was_lost_is_seen_in_the_next_listing(house: House) -> None:
    """No second call is needed."""
    (name,) = house.running()
    house.world.on_delete.append(deletes_and(TIMEOUT))
    house.delete(name)
    house.tick()
    assert (house.state(name), len(asked(house))) == ("gone", 1)


@pytest.mark.parametrize("record", ["discontinued", "none"])
def test_what_is_gone_already_is_a_success_once_a_look_confirms_it(house: House, record: str) -> None:
    """F28: 403 `can't discontinue a discontinued instance`, 404, or a part of a 207."""
    (name,) = house.running()
    house.delete(name)
    if record == "none":
        house.world.vanish(name)
    else:
        house.world.change(name, ENDED)
    house.terminate.run()
    assert house.state(name) == "gone"


def test_gone_already_is_not_believed_of_a_machine_that_answers(house: House) -> None:
    """F28: 204 also means: in the wanted state, which deleting is too."""
    (name,) = house.running()
    house.world.on_delete.append(answers(DeletionResult.ALREADY_GONE))
    house.delete(name)
    house.terminate.run()
    assert house.state(name) == "deleting"
    house.world.on_delete.append(answers(DeletionResult.ALREADY_GONE))
    house.world.on_look.append(does_not_look(DOWN))
    house.clock.advance(30)
    house.terminate.run()
    assert house.state(name) == "deleting"
    house.clock.advance(30)
    house.ticks(2)
    assert house.state(name) == "gone"


def test_one_refusal_of_many_keeps_the_others_going(house: House) -> None:
    """F28: 207: each machine has its own answer."""
    first, second, third = house.running(3)
    house.world.change(second, "provisioning")
    house.delete(first, second, third)
    house.ticks(2)
    assert [house.state(name) for name in (first, second, third)] == ["gone", "deleting", "gone"]


def test_repeated_and_parallel_deletions_delete_each_machine_once(house: House) -> None:
    """F06: ten times the same, then the others: exactly five calls."""
    names = house.running(6)
    for _ in range(10):
        house.delete(names[0])
        house.tick()
    assert house.target() == 5
    for name in names[1:5]:
        house.delete(name)
    assert house.target() == 1
    house.ticks(3)
    assert len({instance_id for instance_id, _ in asked(house)}) == 5
    assert set(house.world.alive) == {names[5]}


def test_a_failed_instance_with_a_machine_is_deleted_at_the_cloud(house: House) -> None:
    """installation_failed bills until it is deleted."""
    (name,) = house.grow()
    house.provision.run()
    house.tick(house.observe)
    house.world.change(name, "installation_failed")
    house.tick(house.observe)
    assert house.state(name) == "failed"
    house.delete(name)
    house.ticks(2)
    assert (house.state(name), house.world.alive) == ("gone", {})


def test_a_failed_instance_without_a_machine_makes_no_call(house: House) -> None:
    """There is nothing to terminate."""
    house.world.always_create = refuses(NO_STOCK)
    (name,) = house.grow()
    house.ticks(2)
    assert house.state(name) == "failed"
    house.delete(name)
    house.ticks(3)
    assert (house.state(name), asked(house)) == ("cancelled", [])


def test_a_failure_that_nobody_collects_is_deleted_in_the_end(house: House) -> None:
    """The autoscaler is gone; its machine must not bill for ever."""
    (name,) = house.grow()
    house.provision.run()
    house.tick(house.observe)
    house.world.change(name, "error")
    house.ticks(31 * 6)
    assert (house.state(name), house.world.alive) == ("gone", {})


def test_a_switched_off_machine_is_deleted_where_the_operator_says_so(house: House) -> None:
    """F53: policy `delete` after an hour."""
    house.configure(spec(stopped_action="delete"))
    (name,) = house.running()
    house.world.change(name, "offline")
    house.ticks(60 * 6)
    assert house.state(name) == "stopped"
    house.ticks(4)
    assert (house.state(name), house.world.alive) == ("gone", {})


# --- machines too many


def test_a_machine_too_many_is_deleted_with_its_disk_until_it_is_gone(house: House) -> None:
    """Refused while provisioning, then taken; the fact that it is gone ends it."""
    (name,) = house.running()
    extra = replace(
        house.world.alive[name],
        instance_id="id-extra",
        status="provisioning",
        os_volume_id="os-extra",
        volume_ids=("os-extra", "data-1"),
    )
    house.world.records["id-extra"] = extra
    house.ticks(2)
    assert "id-extra" in house.books.cloud.surplus
    house.world.records["id-extra"] = replace(extra, status="running")
    house.ticks(6)
    assert not house.books.cloud.surplus
    assert ("id-extra", ("os-extra",)) in asked(house)
    assert house.world.alive[name].instance_id == "id-0001"
    assert house.state(name) == "running"


def test_a_machine_too_many_is_asked_for_with_a_pause(house: House) -> None:
    """Not in every run: four times a minute, also while the wall clock is set back."""
    (name,) = house.running()
    extra = replace(house.world.alive[name], instance_id="id-extra", status="provisioning")
    house.world.records["id-extra"] = extra
    house.tick(house.observe)
    for _ in range(60):
        house.terminate.run()
        house.clock.advance(1)
        house.clock.step_wall(timedelta(minutes=-1))
    assert len(asked(house)) == 4


@pytest.mark.parametrize("error", [DOWN, TIMEOUT, BUSY])
def test_a_machine_too_many_survives_trouble_as_an_intent(house: House, error: CloudError) -> None:
    """The job goes on with it later, and after a restart."""
    house.world.records["id-extra"] = house.machine("h100-aaaaaaaa", "id-extra")
    house.execute(RecordSurplus(instance="h100-aaaaaaaa", instance_id="id-extra", reason="released"))
    house.world.on_look.append(does_not_look(error))
    house.terminate.run()
    assert asked(house) == []
    house.clock.advance(15)
    house.world.on_delete.append(deletes_not(error))
    house.terminate.run()
    house.restart()
    house.ticks(4)
    assert not house.books.cloud.surplus
    assert house.world.alive == {}


def test_a_machine_too_many_of_the_trash_policy_goes_to_the_trash(house: House) -> None:
    """F29: the operator's policy holds for every machine of the group."""
    house.configure(spec(os_volume_permanent=False))
    (name,) = house.running()
    extra = replace(house.world.alive[name], instance_id="id-extra", os_volume_id="os-extra")
    house.world.records["id-extra"] = extra
    house.ticks(1, house.observe, house.terminate)
    assert house.world.deletions == [Deletion(instance_id="id-extra", volume_ids=("os-extra",), permanent=False)]


def test_a_full_disk_stops_the_job_before_the_call(house: House) -> None:
    """No effect without its intent."""
    (name,) = house.running()
    house.delete(name)

    def full(_: object) -> None:
        raise StoreUnavailable("the disk is full")

    house.trap.on_append = full
    with pytest.raises(StoreUnavailable):
        house.terminate.run()
    assert asked(house) == []
    house.trap.on_append = lambda _: None
    house.ticks(2)
    assert house.state(name) == "gone"


def test_a_machine_deleted_while_lists_lag_is_gone_only_when_a_look_says_so(house: House) -> None:
    """The list shows it for a while longer; then it lacks it."""
    (name,) = house.running()
    shown = house.world.alive[name]
    house.delete(name)
    house.world.always_list = lists_stale(shown)
    house.ticks(3)
    assert house.state(name) == "deleting"
    house.world.always_list = lambda show: show()
    house.tick(house.observe)
    assert house.state(name) == "gone"
    assert house.instance(name).ended_at == house.now - timedelta(seconds=10)
