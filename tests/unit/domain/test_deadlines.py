from datetime import timedelta

import pytest

from app.domain.instance.commands import CheckDeadlines
from app.domain.instance.events import DeleteReason, ErrorClass, FailureCode
from app.domain.instance.lifecycle import InstanceState
from app.domain.observation import ObserveMachines, Readopt

from .facts import (
    H100,
    LEADING_TO,
    A,
    B,
    attempted,
    cancelled,
    configured,
    delete_requested,
    failed,
    h100,
    machine,
    observed,
    refused,
    retired,
    running,
    unknown,
    wanted,
)
from .scenario import NOON

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
A_MOMENT = timedelta(microseconds=1)
CHECK = CheckDeadlines(failed_expiry=30 * MINUTE)
NOT_IN_TIME = failed(A, ErrorClass.OTHER, FailureCode.CREATE_TIMEOUT, "no machine could be ordered in time")
NEVER_KNOWN = failed(
    A, ErrorClass.OTHER, FailureCode.CREATE_TIMEOUT, "nobody knows whether the machine was ever created"
)
NEVER_RAN = failed(
    A, ErrorClass.OTHER, FailureCode.PROVISION_TIMEOUT, "the machine exists and was not running after 0:30:00"
)
provisioning = h100.given(*LEADING_TO[InstanceState.PROVISIONING])


def test_a_wish_without_a_machine_fails_after_ten_minutes() -> None:
    """Below the autoscaler's fifteen: it hears of the failure instead of waiting for it."""
    story = h100.given(wanted())
    story.given(10 * MINUTE - A_MOMENT).when(CHECK).then_nothing()
    story.given(10 * MINUTE).when(CHECK).then(NOT_IN_TIME)


def test_a_wish_fails_with_the_last_reason_that_was_seen() -> None:
    """Ten minutes of a cloud that does not answer are told as that."""
    away = refused(
        error_class=ErrorClass.OTHER,
        code=FailureCode.CLOUD_UNREACHABLE,
        message="connection refused",
        rung_closed=False,
        retry_at=NOON + 2 * MINUTE,
    )
    story = h100.given(wanted(), attempted(), away, 10 * MINUTE)
    story.when(CHECK).then(failed(A, ErrorClass.OTHER, FailureCode.CLOUD_UNREACHABLE, "connection refused"))


def test_an_order_under_way_is_not_given_up() -> None:
    """Its answer decides; only a doubt can last."""
    h100.given(wanted(), attempted(), HOUR).when(CHECK).then_nothing()


def test_an_order_in_doubt_fails_after_ten_minutes_and_is_still_looked_for() -> None:
    """The autoscaler goes elsewhere; a machine that shows up later is deleted, not lost."""
    story = h100.given(wanted(), attempted(), unknown())
    story.given(10 * MINUTE - A_MOMENT).when(CHECK).then_nothing()
    after = story.given(10 * MINUTE).when(CHECK).then(NEVER_KNOWN)
    assert after.instance(A).unknown_since == NOON
    assert after.instance(A).may_exist


def test_a_slow_machine_is_not_given_up_before_its_own_longer_time() -> None:
    """F23: fourteen minutes of provisioning are not a failure; at thirty nobody waits any more."""
    provisioning.given(14 * MINUTE).when(CHECK).then_nothing()
    provisioning.given(30 * MINUTE - A_MOMENT).when(CHECK).then_nothing()
    after = provisioning.given(30 * MINUTE).when(CHECK).then(NEVER_RAN)
    assert after.instance(A).may_exist


def test_the_times_are_the_group_s_own() -> None:
    """Bare metal takes longer."""
    spec = H100.model_copy(update={"create_timeout": 2 * MINUTE, "provision_timeout": HOUR})
    h100.given(configured(spec), wanted(), 2 * MINUTE).when(CHECK).then(NOT_IN_TIME)
    provisioning.given(configured(spec), HOUR - A_MOMENT).when(CHECK).then_nothing()
    assert provisioning.given(configured(spec), HOUR).when(CHECK).events


def test_a_running_machine_has_no_deadline() -> None:
    """However long it runs."""
    h100.given(*running(), 1000 * HOUR).when(CHECK).then_nothing()


def test_an_adopted_machine_in_an_unknown_state_is_not_failed_for_its_age() -> None:
    """It may carry pods: its time to show a state that we know begins when we first see it."""
    old = machine(status="migrating", created_at=NOON - 100 * HOUR)
    story = h100.given(ObserveMachines(machines=(old,), backend="simulator", claim=False))
    story.when(CHECK).then_nothing()
    story.given(30 * MINUTE - A_MOMENT).when(CHECK).then_nothing()
    story.given(30 * MINUTE).when(CHECK).then(NEVER_RAN)


def test_a_machine_that_ran_before_it_was_lost_and_returned_is_not_failed_for_its_age() -> None:
    """It came back under a word that nobody knows; it was a node once and may be one still."""
    story = h100.given(*running(), *LEADING_TO[InstanceState.LOST][-1:], HOUR)
    story = story.given(Readopt(instance=A, machine=machine(status="migrating")))
    assert story.instance(A).state is InstanceState.RUNNING
    story.when(CHECK).then_nothing()
    story.given(1000 * HOUR).when(CHECK).then_nothing()


def test_a_clock_of_the_cloud_that_is_behind_ours_fails_nothing_early() -> None:
    """The machine cannot have been created before it was wanted."""
    story = provisioning.given(observed(InstanceState.PROVISIONING, "ordered", created_at=NOON - HOUR))
    story.given(29 * MINUTE).when(CHECK).then_nothing()


def test_a_failure_that_nobody_collects_expires() -> None:
    """The autoscaler deletes it within two loops; half an hour later nobody is coming for it."""
    story = h100.given(*LEADING_TO[InstanceState.FAILED])
    story.given(30 * MINUTE - A_MOMENT).when(CHECK).then_nothing()
    after = story.given(30 * MINUTE).when(CHECK).then(cancelled())
    assert after.books.target_size("h100") == 0


def test_an_expired_failure_with_a_machine_is_deleted() -> None:
    """It costs money."""
    story = provisioning.given(NEVER_RAN, 30 * MINUTE)
    story.when(CHECK).then(delete_requested(A, DeleteReason.FAILED_EXPIRED))


def test_a_machine_left_switched_off_is_an_alarm_by_default() -> None:
    """F53: it costs money, and somebody had a reason."""
    h100.given(*LEADING_TO[InstanceState.STOPPED], 1000 * HOUR).when(CHECK).then_nothing()


def test_a_machine_left_switched_off_is_deleted_where_the_operator_says_so() -> None:
    """An hour after it was switched off, not after it was made."""
    spec = H100.model_copy(update={"stopped_action": "delete"})
    story = h100.given(configured(spec), *running(), HOUR, observed(InstanceState.STOPPED, "offline"))
    story.given(HOUR - A_MOMENT).when(CHECK).then_nothing()
    story.given(HOUR).when(CHECK).then(delete_requested(A, DeleteReason.STOPPED_TOO_LONG))
    story.given(30 * MINUTE, observed(), 30 * MINUTE).when(CHECK).then_nothing()


@pytest.mark.parametrize(
    "state", [InstanceState.DELETING, InstanceState.GONE, InstanceState.LOST, InstanceState.CANCELLED]
)
def test_what_is_on_its_way_out_has_no_deadline(state: InstanceState) -> None:
    """A deletion is repeated until it worked."""
    h100.given(*LEADING_TO[state], 1000 * HOUR).when(CHECK).then_nothing()


def test_instances_of_a_retired_group_are_held_to_its_last_settings() -> None:
    """It is served until it is empty."""
    h100.given(wanted(), attempted(), unknown(), retired(instances=1), 10 * MINUTE).when(CHECK).then(NEVER_KNOWN)


def test_a_check_right_after_a_check_finds_nothing() -> None:
    """What just failed has not expired."""
    story = h100.given(wanted(A), wanted(B), 10 * MINUTE)
    outcome = story.when(CHECK)
    assert {event.model_dump()["instance"] for event in outcome.events} == {A, B}
    outcome.after.when(CHECK).then_nothing()
