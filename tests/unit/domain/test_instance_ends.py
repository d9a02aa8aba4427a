from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain.instance.commands import AttemptDelete, ConfirmEnded, LearnProviderId, RecordDeleteRefused
from app.domain.instance.events import DeleteRefused, End, InstanceGone
from app.domain.instance.lifecycle import InstanceState
from app.domain.offering import Contract

from .facts import (
    A_ID,
    B_ID,
    DATA_VOLUME,
    LEADING_TO,
    OS_VOLUME,
    A,
    B,
    attempted,
    created,
    delete_attempted,
    delete_requested,
    h100,
    learned,
    lost,
    observed,
    running,
    unknown,
    wanted,
)
from .scenario import NOON

SECOND = timedelta(seconds=1)
HOUR = timedelta(hours=1)
ATTEMPT = AttemptDelete(instances=(A,))
REFUSED = RecordDeleteRefused(instance=A, code="forbidden_action", message="Can't discontinue a provisioning instance")
deleting = h100.given(*running(), observed(os_volume_id=OS_VOLUME, volume_ids=(OS_VOLUME,)), delete_requested())


def refused(attempt: int, pause: timedelta) -> DeleteRefused:
    """The fact that a deletion was not taken, and when it is tried again."""
    return DeleteRefused(
        instance=A,
        node_group="h100",
        attempt=attempt,
        code="forbidden_action",
        message="Can't discontinue a provisioning instance",
        retry_at=NOON + pause,
    )


def ended(instance_id: str = A_ID, *, known: bool = True) -> ConfirmEnded:
    """The API itself says that the machine is no more."""
    return ConfirmEnded(instance=A, instance_id=instance_id, known_by_id=known)


# --- asking for the deletion


def test_the_os_volume_goes_with_the_machine() -> None:
    """F29: unnamed it would go to the trash for 96 hours and count against the quota."""
    deleting.when(ATTEMPT).then(delete_attempted(volume_ids=(OS_VOLUME,)))


def test_volumes_that_somebody_attached_are_not_deleted_with_the_machine() -> None:
    """We order machines with a system disk only: any other volume holds somebody's data, and this is for good."""
    story = h100.given(*running(), observed(os_volume_id=OS_VOLUME, volume_ids=(OS_VOLUME, DATA_VOLUME)))
    story.given(delete_requested()).when(ATTEMPT).then(delete_attempted(volume_ids=(OS_VOLUME,)))


def test_a_machine_whose_os_volume_is_not_known_is_deleted_without_naming_any() -> None:
    """Then the API puts it into the trash itself."""
    story = h100.given(*running(), observed(volume_ids=(DATA_VOLUME,)), delete_requested())
    story.when(ATTEMPT).then(delete_attempted(volume_ids=()))


def test_only_what_is_due_is_asked_for() -> None:
    """One call for many; those not deleting, unknown to the cloud or unknown to us are left out."""
    story = deleting.given(*running(B, B_ID), wanted("h100-cccccccc"))
    command = AttemptDelete(instances=(A, B, "h100-cccccccc", "h100-zzzzzzzz"))
    story.when(command).then(delete_attempted(volume_ids=(OS_VOLUME,)))


def test_a_deletion_without_a_machine_waits_until_it_is_known_whether_there_is_one() -> None:
    """Deleted while submitting: resolved first, then deleted."""
    story = h100.given(wanted(), attempted(), delete_requested())
    story.when(ATTEMPT).then_nothing()
    story.given(unknown()).when(ATTEMPT).then_nothing()
    story.given(created()).when(ATTEMPT).then(delete_attempted())


def test_a_deletion_that_changed_nothing_is_asked_for_again_after_half_a_minute() -> None:
    """The answer 202 promises nothing."""
    story = deleting.given(ATTEMPT)
    story.when(ATTEMPT).then_nothing()
    story.given(30 * SECOND - timedelta(microseconds=1)).when(ATTEMPT).then_nothing()
    story.given(30 * SECOND).when(ATTEMPT).then(
        delete_attempted(attempt=2, volume_ids=(OS_VOLUME,), retry_at=NOON + 60 * SECOND)
    )


def test_a_deletion_whose_answer_a_crash_has_swallowed_is_asked_for_at_once() -> None:
    """The process that made the call did not live to hear what came of it; there is nothing to wait for."""
    again = AttemptDelete(instances=(A,), interrupted=frozenset({A}))
    deleting.given(ATTEMPT).when(again).then(delete_attempted(attempt=2, volume_ids=(OS_VOLUME,)))
    h100.given(*running()).when(again).then_nothing()
    h100.given(wanted(), attempted(), delete_requested()).when(again).then_nothing()


@pytest.mark.parametrize(("attempts", "seconds"), [(1, 2), (2, 4), (3, 8), (6, 60), (9, 60)])
def test_a_refused_deletion_is_tried_again_after_a_growing_pause(attempts: int, seconds: int) -> None:
    """Verda refuses to delete what is still provisioning; the intent is kept."""
    story = deleting
    for attempt in range(1, attempts + 1):
        story = story.given(delete_attempted(attempt=attempt))
    after = story.when(REFUSED).then(refused(attempts, seconds * SECOND))
    assert after.instance(A).state is InstanceState.DELETING
    assert after.instance(A).delete_code == "forbidden_action"
    after.when(ATTEMPT).then_nothing()
    assert after.given(seconds * SECOND).when(ATTEMPT).after.instance(A).delete_attempt == attempts + 1


def test_a_refusal_by_a_clock_that_was_ahead_keeps_no_machine() -> None:
    """No pause before a deletion is longer than a minute; the machine costs money for as long as it is left alone."""
    story = deleting.given(ATTEMPT, REFUSED)
    story.given(-58 * SECOND).when(ATTEMPT).then_nothing()
    (again,) = story.given(-59 * SECOND).when(ATTEMPT).events
    assert again.type == "instance.delete-attempted"


def test_a_refusal_without_an_attempt_is_noted_as_the_first() -> None:
    """The look before the call already failed."""
    deleting.when(REFUSED).then(refused(1, 2 * SECOND))


@pytest.mark.parametrize(
    "state", [InstanceState.RUNNING, InstanceState.GONE, InstanceState.LOST, InstanceState.CANCELLED]
)
def test_a_refused_deletion_of_what_is_not_being_deleted_is_no_news(state: InstanceState) -> None:
    """It ended while the call was under way."""
    h100.given(*LEADING_TO[state]).when(REFUSED).then_nothing()
    h100.when(REFUSED).then_nothing()


# --- the end


def test_a_machine_that_we_deleted_is_gone_and_has_a_final_cost() -> None:
    """Two hours at 2.29."""
    after = (
        deleting.given(2 * HOUR)
        .when(ended())
        .then(InstanceGone(instance=A, node_group="h100", end=End.DELETED, cost=Decimal("4.580000"), currency="usd"))
    )
    assert after.books.members("h100").is_empty
    assert after.instance(A).cost == Decimal("4.58")


@pytest.mark.parametrize(
    ("contract", "known", "end"),
    [
        (Contract.SPOT, "by id", End.EVICTED),
        (Contract.ON_DEMAND, "by id", End.DISCONTINUED),
        (Contract.SPOT, "not at all", End.VANISHED),
        (Contract.ON_DEMAND, "not at all", End.VANISHED),
    ],
)
def test_a_machine_that_ended_without_our_asking_is_lost(contract: Contract, known: str, end: End) -> None:
    """F27: with time, cost and the reason as far as it can be told; the target size falls with it."""
    story = h100.given(wanted(), attempted(contract=contract), created(), observed())
    after = story.given(HOUR).when(ended(known=known == "by id")).then(lost(end=end, cost="2.290000"))
    assert after.books.target_size("h100") == 0


@pytest.mark.parametrize("state", [InstanceState.PROVISIONING, InstanceState.RUNNING, InstanceState.STOPPED])
def test_a_live_machine_can_be_lost_in_any_state(state: InstanceState) -> None:
    """A spot machine may be evicted seconds after its creation."""
    assert h100.given(*LEADING_TO[state], ended()).instance(A).state is InstanceState.LOST


def test_a_failed_instance_stays_listed_when_its_machine_ends() -> None:
    """The autoscaler has been told of the failure and collects it; it would miss it otherwise."""
    story = h100.given(wanted(), attempted(), created()).given(
        observed(InstanceState.PROVISIONING, "error"),
    )
    failed = story.given(*LEADING_TO[InstanceState.FAILED][-1:])
    failed.when(ended()).then_nothing()


@pytest.mark.parametrize("state", [InstanceState.GONE, InstanceState.LOST, InstanceState.CANCELLED])
def test_an_end_is_recorded_once(state: InstanceState) -> None:
    """Two jobs may learn of it at the same time."""
    h100.given(*LEADING_TO[state]).when(ended()).then_nothing()


def test_the_end_of_another_machine_is_not_the_instance_s() -> None:
    """The look-up was for an id that is not the instance's (any more)."""
    deleting.when(ended(B_ID)).then_nothing()
    h100.given(wanted()).when(ended()).then_nothing()
    h100.when(ended()).then_nothing()


# --- the provider id


def test_the_spelling_of_kubernetes_is_learned() -> None:
    """F08: one slash too many and every node looks unregistered; the autoscaler compares byte for byte."""
    command = LearnProviderId(instance=A, provider_id="VERDA:///H100-AAAAAAAA")
    after = h100.given(*running()).when(command).then(learned("VERDA:///H100-AAAAAAAA"))
    assert after.instance(A).provider_id == "VERDA:///H100-AAAAAAAA"
    assert after.books.find("VERDA:///H100-AAAAAAAA", "") == after.instance(A)


def test_the_spelling_we_have_is_no_news() -> None:
    """The normal case writes nothing."""
    h100.given(*running()).when(LearnProviderId(instance=A, provider_id=f"verda://{A}")).then_nothing()


def test_a_spelling_is_learned_once() -> None:
    """A second node that claims the same machine must not make the answer flap."""
    story = h100.given(*running(), learned("verda:///h100-aaaaaaaa"))
    story.when(LearnProviderId(instance=A, provider_id="datacrunch://h100-aaaaaaaa")).then_nothing()
    story.when(LearnProviderId(instance=A, provider_id=f"verda://{A}")).then_nothing()


@pytest.mark.parametrize("state", [InstanceState.GONE, InstanceState.LOST, InstanceState.CANCELLED])
def test_nothing_is_learned_of_what_has_ended(state: InstanceState) -> None:
    """Its node object may linger for days."""
    command = LearnProviderId(instance=A, provider_id="verda:///h100-aaaaaaaa")
    h100.given(*LEADING_TO[state]).when(command).then_nothing()
    h100.when(command).then_nothing()
