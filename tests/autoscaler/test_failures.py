"""Machines that cannot be had, and machines that come to nothing."""

from datetime import timedelta

import pytest

from .ca.flags import Flags, Options
from .ca.releases import ENDS, Change, Release
from .conftest import MakeStage
from .faults import NO_H100, refusal
from .groups import base, gpu, spare
from .stage.sights import Sight

CALM_LOOPS = Flags(frequent_loops=False)
"""One loop every ten seconds in every release, so that all tell the same story."""


def fell_over(release: Release, failed_at: int, code: str) -> list[str]:
    """The story of a wish that failed, and of the other group that was tried after it."""
    then = failed_at if release.has(Change.GOES_ON_AFTER_FAILED_CREATIONS) else failed_at + 10
    return [
        "30 ScaledUpGroup gpu 1",
        f"{failed_at} ScaleUpFailed gpu {code} 1",
        f"{failed_at} DeleteFailed gpu 1",
        f"{then} ScaledUpGroup spare 1",
    ]


def test_a_stock_out_sends_the_autoscaler_to_the_next_group(make_stage: MakeStage, release: Release) -> None:
    """Scenario 2, F04, F19. Known at once: back-off, deletion and the other group within two loops."""
    stage = make_stage(gpu(), spare(), cloud=NO_H100)
    stage.cluster.submit("train", gpus=1)
    stage.until(60)
    failed_at = 30 if release.has(Change.FREQUENT_LOOPS) else 40
    assert stage.story() == fell_over(release, failed_at, "out-of-stock")
    assert stage.sight("gpu") == Sight("target 0, Backoff", "nothing", "nothing")
    assert stage.sight("spare") == Sight(
        "target 1, 1 unregistered, 1 upcoming, InProgress", "1 provisioning", "1 provisioning"
    )
    stage.until(300)
    assert stage.cluster.pending() == []
    assert stage.sight("spare") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]
    assert stage.failed_loops() == []


def test_an_accepted_order_that_is_never_placed_is_a_stock_out_too(make_stage: MakeStage, release: Release) -> None:
    """F19. The cloud takes the order and says no fifteen seconds later; nothing of it stays."""
    stage = make_stage(gpu(), spare())
    stage.cloud.trouble("no_capacity_async", body={"instance_type": "^1H100"})
    stage.cluster.submit("train", gpus=1)
    stage.until(70)
    assert stage.story() == fell_over(release, 50, "out-of-stock")
    stage.until(300)
    assert stage.sight("gpu") == Sight("target 0, Backoff", "nothing", "nothing")
    assert stage.sight("spare") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")


@pytest.mark.parametrize("release", ENDS, ids=str, indirect=True)
@pytest.mark.parametrize("preset", ["install_error", "installation_failed"])
def test_a_machine_that_breaks_while_it_is_made_goes_with_its_volume(
    make_stage: MakeStage, release: Release, preset: str
) -> None:
    """It exists and costs money: reported as failed, deleted by the autoscaler, and then deleted in the cloud."""
    stage = make_stage(gpu(), spare())
    stage.cloud.trouble(preset, body={"instance_type": "^1H100"})
    stage.cluster.submit("train", gpus=1)
    stage.until(300)
    assert stage.story() == fell_over(release, 120, "machine-error")
    assert stage.sight("gpu") == Sight("target 0, Backoff", "nothing", "nothing")
    assert stage.world.state.counters.deletes_committed == 1


def test_a_machine_that_never_joins_is_deleted_after_the_provision_time(
    make_stage: MakeStage, release: Release
) -> None:
    """Scenario 3. Running, paid for, never a node. 1.36 also takes the scale-up back, which must hurt nobody."""
    stage = make_stage(gpu(), flags=CALM_LOOPS)
    stage.cloud.trouble("guest_never_joins")
    stage.cluster.submit("train", gpus=1)
    stage.until(930)
    assert stage.sight("gpu") == Sight("target 1, 1 unregistered, 1 upcoming, InProgress", "1 running", "1 running")
    stage.until(940)
    reverts = ["940 FailedToRevertScaleUp gpu FAILED_PRECONDITION"] if release.has(Change.REVERTS_TIMED_OUT) else []
    began = ["30 ScaledUpGroup gpu 1", "940 ScaleUpTimedOut gpu", *reverts]
    assert stage.story() == began
    upcoming = "" if release.has(Change.UPCOMING_NEEDS_A_REQUEST) else "1 upcoming, "
    assert stage.sight("gpu") == Sight(f"target 1, 1 unregistered, {upcoming}Backoff", "1 running", "1 running")
    stage.until(950)
    assert stage.sight("gpu") == Sight("target 1, 1 long unregistered, Backoff", "1 deleting", "1 deleting")
    stage.until(970)
    assert stage.sight("gpu") == Sight("target 0, Backoff", "nothing", "nothing")
    stage.until(1400)
    assert stage.story() == [*began, "950 DeleteUnregistered gpu 1", "1250 ScaledUpGroup gpu 1"]
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.cluster.pending() == []
    assert stage.failed_loops() == []


def test_with_frequent_loops_the_newest_release_does_not_rest(make_stage: MakeStage, release: Release) -> None:
    """In the loop that finds the scale-up late the instance is late too, so 1.36 calls the scale-up finished.

    It then buys again at once, and would do so every fifteen minutes. No provider can prevent that by its answers.
    """
    stage = make_stage(gpu())
    stage.cloud.trouble("guest_never_joins")
    stage.cluster.submit("train", gpus=1)
    stage.until(1400)
    if release.has(Change.FINISHED_MEANS_NOTHING_UPCOMING):
        expected = ["940 DeleteUnregistered gpu 1", "940 ScaledUpGroup gpu 1"]
    elif release.has(Change.FREQUENT_LOOPS):
        expected = ["940 ScaleUpTimedOut gpu", "940 DeleteUnregistered gpu 1", "1250 ScaledUpGroup gpu 1"]
    else:
        expected = ["940 ScaleUpTimedOut gpu", "950 DeleteUnregistered gpu 1", "1250 ScaledUpGroup gpu 1"]
    assert stage.story() == ["30 ScaledUpGroup gpu 1", *expected]
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")


def test_wishes_that_got_no_machine_are_taken_back_in_time(make_stage: MakeStage, release: Release) -> None:
    """F03. The API is down for longer than the provision time, and our own patience is longer still.

    1.36 decreases the target by both wishes, and in the same loop deletes one of them by name, because it still has it
    on its list. That must be no error and lower nothing twice. Older releases delete them one after the other.
    """
    patient = base(min_size=0, create_timeout=timedelta(minutes=25), provision_timeout=timedelta(minutes=30))
    stage = make_stage(patient, flags=CALM_LOOPS)
    stage.cluster.submit("web-0", cpu="6")
    stage.until(200)
    stage.cloud.down = True
    stage.cluster.submit("web-1", cpu="6")
    stage.until(215)
    stage.cluster.submit("web-2", cpu="6")
    stage.until(1120)
    assert stage.sight("base") == Sight(
        "target 3, 1 ready, 2 unregistered, 2 upcoming, InProgress", "2 requested, 1 running", "1 running"
    )
    stage.until(1130)
    reverts = release.has(Change.REVERTS_TIMED_OUT)
    began = [f"{at} ScaledUpGroup base 1" for at in (10, 210, 220)]
    late = ["1130 ScaleUpTimedOut base", "1130 DeleteUnregistered base 1"]
    assert stage.story() == [*began, *late]
    assert stage.calls("NodeGroupDecreaseTargetSize") == (["OK"] if reverts else [])
    assert stage.sight("base").books == ("1 running" if reverts else "1 requested, 1 running")
    stage.until(1150)
    second = [] if reverts else ["1140 DeleteUnregistered base 1"]
    assert stage.story() == [*began, *late, *second]
    assert stage.sight("base") == Sight("target 1, 1 ready, Backoff", "1 running", "1 running")
    stage.cloud.down = False
    stage.until(1300)
    assert stage.world.state.counters.creates_requested == 1
    assert stage.failed_loops() == []


def test_a_machine_stuck_in_provisioning_is_given_back_when_the_cloud_lets_it(make_stage: MakeStage) -> None:
    """The cloud refuses to delete what it is still making. The wish is gone for the autoscaler, the intent stays.

    It goes as soon as its status moves, before it can join and take the pod; the pod gets another one.
    """
    stage = make_stage(gpu(), flags=CALM_LOOPS)
    stage.cloud.trouble("stuck_provisioning")
    stage.cluster.submit("train", gpus=1)
    stage.until(970)
    assert stage.sight("gpu") == Sight("target 0, Backoff", "1 deleting", "1 provisioning")
    stage.restart_provider(killed=True)
    stage.until(1200)
    assert stage.sight("gpu") == Sight("target 0, Backoff", "1 deleting", "1 provisioning")
    stage.cloud.trouble("unstick")
    stage.until(1235)
    assert stage.sight("gpu") == Sight("target 0, Backoff", "nothing", "nothing")
    stage.until(1600)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.calls("NodeGroupDeleteNodes") == ["OK"]


def test_without_money_every_group_rests_and_nothing_else_happens(make_stage: MakeStage) -> None:
    """F20. One order shows it for every slot; what runs stays; after a top-up it works again by itself."""
    stage = make_stage(gpu(), spare())
    stage.cluster.submit("train", gpus=1)
    stage.until(200)
    broke = stage.cloud.inject(refusal(402, "insufficient_funds", "Insufficient funds"))
    stage.cluster.submit("train-2", "train-3", gpus=1)
    stage.until(400)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, Backoff", "1 running", "1 running")
    assert stage.sight("spare") == Sight("target 0, Backoff", "nothing", "nothing")
    assert stage.world.state.counters.creates_requested == 2
    stage.cloud.exchange.faults.remove(broke)
    stage.until(800)
    assert stage.sight("gpu") == Sight("target 3, 3 ready, NoActivity", "3 running", "3 running")
    failures = [words for words in stage.story() if "ScaleUpFailed" in words]
    assert [words.split(maxsplit=1)[1] for words in failures] == [
        "ScaleUpFailed gpu insufficient-funds 2",
        "ScaleUpFailed spare insufficient-funds 2",
    ]
    assert stage.failed_loops() == []


def test_a_quota_at_one_place_is_no_failure_while_another_has_room(make_stage: MakeStage) -> None:
    """F21. The next place is tried without the autoscaler hearing of it."""
    stage = make_stage(gpu(locations=("FIN-01", "FIN-02")))
    stage.cloud.inject(refusal(403, "forbidden_action", "GPU quota exceeded", location_code="FIN-01"))
    stage.cluster.submit("train", gpus=1)
    stage.until(200)
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    (machine,) = stage.world.state.instances.values()
    assert machine.location == "FIN-02"
    assert stage.world.state.counters.creates_requested == 2


def test_an_image_that_does_not_fit_is_not_taken_for_a_lack_of_stock(make_stage: MakeStage, release: Release) -> None:
    """F22. One try, no other place, and a code that names the image."""
    stage = make_stage(gpu(locations=("FIN-01", "FIN-02")), spare())
    words = "Operating system is not valid for this instance type"
    stage.cloud.inject(refusal(400, "invalid_request", words, instance_type="^1H100"))
    stage.cluster.submit("train", gpus=1)
    stage.until(60)
    failed_at = 30 if release.has(Change.FREQUENT_LOOPS) else 40
    assert stage.story() == fell_over(release, failed_at, "image-not-supported")
    assert stage.world.state.counters.creates_requested == 2


def test_a_slow_boot_is_no_failure(make_stage: MakeStage) -> None:
    """F23. Fourteen minutes in provisioning, twenty-five allowed: creating all the time, nobody gives up."""
    flags = Flags(defaults=Options(max_node_provision_time=timedelta(minutes=25)))
    stage = make_stage(gpu(), flags=flags, cloud={"durations": {"preset": "fast", "ordering": 5, "provisioning": 840}})
    stage.cluster.submit("train", gpus=1)
    stage.until(870)
    assert stage.sight("gpu") == Sight(
        "target 1, 1 unregistered, 1 upcoming, InProgress", "1 provisioning", "1 provisioning"
    )
    stage.until(890)
    assert stage.sight("gpu") == Sight("target 1, 1 ready, NoActivity", "1 running", "1 running")
    assert stage.story() == ["30 ScaledUpGroup gpu 1"]
