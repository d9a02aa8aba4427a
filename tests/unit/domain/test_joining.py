"""F41: machines that run and never become nodes. The autoscaler is the witness; the breaker ends the buying."""

from dataclasses import replace
from datetime import timedelta

import pytest

from app.domain.instance.commands import AttemptCreate
from app.domain.instance.events import ErrorClass, FailureCode, NodeDoubt, NodeDoubted, NodeJoined
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.commands import DeleteNodes, RecordJoined, ResumeNodeGroup
from app.domain.nodegroup.events import (
    BreakerClosed,
    BreakerClosing,
    BreakerOpened,
    BreakerProbed,
    JoinFailed,
    JoinSucceeded,
    Rejection,
    ScaleUpRejected,
)
from app.errors import RuleViolation

from .facts import (
    H100,
    LEADING_TO,
    A,
    B,
    C,
    D,
    attempted,
    configured,
    created,
    delete_requested,
    failed,
    gone,
    h100,
    learned,
    lost,
    observed,
    running,
    wanted,
)
from .scenario import NOON, Outcome, Scenario
from .wishes import configuration, increase

QUARTER = timedelta(minutes=15)
E = "h100-eeeeeeee"
MESSAGE = (
    "never-joined: the last 3 machines of h100 ran and never became nodes; the next is tried from 2026-06-01 13:15 UTC "
    "on; mend its startup script, join token or provider id, then resume h100 or change its configuration"
)
KNOWN = "at FIN-01, address unknown: no node with provider id verda://{} has registered"


def give_back(*names: str, unregistered: bool = True) -> DeleteNodes:
    """The autoscaler gives machines back; of unregistered ones it says so."""
    return DeleteNodes(
        node_group="h100", instances=names, unregistered=frozenset(names) if unregistered else frozenset()
    )


def join_failed(name: str, in_a_row: int, ran_s: int = 900) -> JoinFailed:
    """By hand."""
    return JoinFailed(
        node_group="h100", instance=name, in_a_row=in_a_row, ran_s=ran_s, wished_at=NOON, message=KNOWN.format(name)
    )


def opened(story: Scenario = h100) -> Scenario:
    """Three machines ran for a quarter of an hour and were given back: 12:15, and the next try is due at 12:45."""
    ids = ("id-a", "id-b", "id-c")
    for name, instance_id in zip((A, B, C), ids, strict=True):
        story = story.given(*running(name, instance_id))
    return story.given(QUARTER, give_back(A, B, C))


def facts(outcome: Outcome, *kinds: type) -> list[object]:
    """The facts of these kinds."""
    return [event for event in outcome.events if isinstance(event, kinds)]


# --- what counts


def test_a_machine_that_ran_and_was_never_seen_registered_counts() -> None:
    """With how long it ran, and what is known of it."""
    outcome = h100.given(*running(), QUARTER).when(give_back(A))
    assert facts(outcome, JoinFailed, BreakerOpened) == [join_failed(A, 1)]
    assert outcome.after.books.groups["h100"].joining.failures == 1
    assert outcome.after.instance(A).state is InstanceState.DELETING


@pytest.mark.parametrize(
    "state", [state for state in LEADING_TO if state not in {InstanceState.RUNNING, InstanceState.LOST}]
)
def test_one_that_does_not_run_says_nothing_about_joining(state: InstanceState) -> None:
    """It was slow, refused, switched off or given back already."""
    outcome = h100.given(*LEADING_TO[state], QUARTER).when(give_back(A))
    assert facts(outcome, JoinFailed) == []


def test_one_that_hardly_ran_says_nothing_about_joining() -> None:
    """A kubelet needs two minutes at least; this machine was late to run, not slow to join."""
    story = h100.given(*running(), timedelta(seconds=119))
    assert facts(story.when(give_back(A)), JoinFailed) == []
    assert facts(story.given(timedelta(seconds=1)).when(give_back(A)), JoinFailed) == [join_failed(A, 1, ran_s=120)]


def test_a_usual_scale_down_says_nothing_about_joining() -> None:
    """The autoscaler names the real node then."""
    assert facts(h100.given(*running(), QUARTER).when(give_back(A, unregistered=False)), JoinFailed) == []


@pytest.mark.parametrize(
    "seen",
    [
        learned(f"verda:///{A}"),
        NodeJoined(instance=A, node_group="h100", waited_s=60),
    ],
    ids=["by the autoscaler", "ready in the cluster"],
)
def test_a_machine_that_was_a_node_once_says_nothing_about_joining(seen: NodeJoined) -> None:
    """Somebody deleted its Node object later."""
    assert facts(h100.given(*running(), seen, QUARTER).when(give_back(A)), JoinFailed) == []


def test_what_the_cluster_showed_is_told() -> None:
    """A kubelet with a wrong provider id is the usual reason, and the remedy is known."""
    doubt = NodeDoubted(instance=A, node_group="h100", doubt=NodeDoubt.WRONG_PROVIDER_ID, message="start its kubelet")
    outcome = h100.given(*running(), doubt, QUARTER).when(give_back(A))
    (told,) = outcome.events[-1:]
    assert isinstance(told, JoinFailed)
    assert told.message == "start its kubelet"


# --- opening


def test_three_in_a_row_open_the_breaker() -> None:
    """Once; the first try half an hour later."""
    story = h100.given(*running(A, "id-a"), *running(B, "id-b"), *running(C, "id-c"), QUARTER)
    story = story.given(give_back(A), give_back(B))
    assert not story.books.groups["h100"].joining.is_open
    outcome = story.when(give_back(C))
    probe_at = NOON + timedelta(minutes=45)
    assert facts(outcome, JoinFailed, BreakerOpened) == [
        join_failed(C, 3),
        BreakerOpened(node_group="h100", in_a_row=3, probe_at=probe_at),
    ]
    assert outcome.after.books.groups["h100"].joining.probe_at == probe_at
    assert outcome.after.when(give_back(C)).events == ()


def test_three_at_once_open_the_breaker_too() -> None:
    """One call gives them all back."""
    outcome = h100.given(*running(A, "id-a"), *running(B, "id-b"), *running(C, "id-c"), QUARTER).when(
        give_back(A, B, C)
    )
    assert [event.in_a_row for event in outcome.events if isinstance(event, JoinFailed)] == [1, 2, 3]
    assert len(facts(outcome, BreakerOpened)) == 1


def test_zero_never_opens_it() -> None:
    """`never_joined_breaker: 0` counts and goes on buying."""
    story = opened(h100.given(configured(H100.model_copy(update={"never_joined_breaker": 0}))))
    assert story.books.groups["h100"].joining.failures == 3
    assert not story.books.groups["h100"].joining.is_open


def test_a_success_in_between_begins_the_row_anew() -> None:
    """B was ordered after A and joined; with C there is one failure, not three."""
    story = h100.given(*running(A, "id-a"), QUARTER, give_back(A), *running(B, "id-b"))
    after = story.when(RecordJoined(instance=B)).then(JoinSucceeded(node_group="h100", instance=B))
    assert after.books.groups["h100"].joining.failures == 0


def test_an_older_machine_that_joined_says_nothing() -> None:
    """The autoscaler shows all its nodes in every loop; A joined before the token expired."""
    story = h100.given(*running(A, "id-a"), timedelta(hours=1), *running(B, "id-b"), QUARTER, give_back(B))
    story.when(RecordJoined(instance=A)).then_nothing()
    assert story.books.groups["h100"].joining.failures == 1


def test_one_of_the_same_order_that_joined_says_that_it_works() -> None:
    """Both were ordered at the same moment: the script is not what is wrong with the other."""
    story = h100.given(*running(A, "id-a"), *running(B, "id-b"), QUARTER, give_back(B))
    assert story.when(RecordJoined(instance=A)).events == (JoinSucceeded(node_group="h100", instance=A),)


# --- open


def test_while_it_is_open_a_scale_up_is_refused_with_the_reason() -> None:
    """Nothing is bought; the refusal is a fact, and tells what to mend and when the next try is."""
    story = opened().given(timedelta(minutes=29, seconds=59))
    rejected = ScaleUpRejected(
        node_group="h100", delta=1, target_size=0, reason=Rejection.NEVER_JOINED, message=_at("12:45")
    )
    refusal = story.when(increase(1, D)).then_refused(RuleViolation, rejected)
    assert refusal.message == _at("12:45")
    assert len(refusal.message) < 400


def _at(time: str) -> str:
    return MESSAGE.replace("13:15", time)


def test_a_pause_of_a_clock_that_was_ahead_is_over() -> None:
    """Six hours is the longest between two tries."""
    story = opened().given(timedelta(hours=-7))
    assert story.when(increase(1, D)).refusal is None
    tried = story.given(increase(1, D)).when(AttemptCreate(instance=D)).events
    assert [event.type for event in tried] == ["nodegroup.breaker-probed", "instance.create-attempted"]


def test_a_wish_of_before_fails_with_the_code() -> None:
    """It was granted a moment earlier and not ordered yet."""
    story = opened(h100.given(wanted(D)))
    outcome = story.when(AttemptCreate(instance=D))
    outcome.then(failed(D, ErrorClass.OTHER, FailureCode.NEVER_JOINED, _at("12:45")))


def test_nonsense_is_refused_as_nonsense() -> None:
    """The breaker does not get in the way of what is wrong anyway."""
    assert "must be positive" in str(opened().when(increase(0)).refusal)


def test_half_open_one_wish_is_tried_and_the_others_fail() -> None:
    """Two are wanted at 12:45: accepted as a whole, one ordered. The next try is an hour after it."""
    story = opened().given(timedelta(minutes=30)).given(increase(2, D, E))
    probed = BreakerProbed(node_group="h100", instance=D, probe=1, next_at=NOON + timedelta(minutes=105))
    after = story.when(AttemptCreate(instance=D)).then(probed, attempted(D))
    outcome = after.when(AttemptCreate(instance=E))
    outcome.then(failed(E, ErrorClass.OTHER, FailureCode.NEVER_JOINED, _at("13:45")))


def test_the_try_is_ordered_again_if_the_cloud_refuses() -> None:
    """It is still the same machine that is being tried."""
    story = opened().given(timedelta(minutes=30), increase(1, D), AttemptCreate(instance=D))
    again = replace(story.books.instances[D], state=InstanceState.REQUESTED, attempted_at=None)
    story = replace(story, books=story.books.with_instance(again))
    assert [event.type for event in story.when(AttemptCreate(instance=D)).events] == ["instance.create-attempted"]


def test_tries_become_rarer() -> None:
    """Half an hour, one, two, four, six, six ... hours; each failed one is counted, none opens it again."""
    story, waits = opened(), []
    for number in range(7):
        joining = story.books.groups["h100"].joining
        assert joining.probe_at is not None
        waits.append(joining.probe_at - story.now)
        story = story.given(joining.probe_at - story.now)
        name = f"h100-probe00{number}"
        story = story.given(increase(1, name), AttemptCreate(instance=name))
        waits[-1] = waits[-1] if number == 0 else waits[-1] + QUARTER
        story = story.given(created(name, f"id-{number}"), observed(name=name), QUARTER, give_back(name), gone(name))
    assert waits == [timedelta(minutes=30), *(timedelta(hours=hours) for hours in (1, 2, 4, 6, 6, 6))]
    assert story.books.groups["h100"].joining.failures == 10
    assert story.books.groups["h100"].joining.opened_at == NOON + QUARTER


def test_a_try_that_joins_closes_it() -> None:
    """And the group buys freely at once."""
    story = opened().given(timedelta(minutes=30), increase(1, D), AttemptCreate(instance=D))
    story = story.given(created(D, "id-d"), observed(name=D))
    after = story.when(RecordJoined(instance=D)).then(JoinSucceeded(node_group="h100", instance=D))
    assert not after.books.groups["h100"].joining.is_open
    assert after.when(increase(2, E, "h100-ffffffff")).refusal is None


def test_a_try_that_was_lost_before_it_joined_says_nothing() -> None:
    """A spot machine was taken away."""
    story = opened().given(timedelta(minutes=30), increase(1, D), AttemptCreate(instance=D))
    story = story.given(created(D, "id-d"), observed(name=D), lost(D))
    story.when(RecordJoined(instance=D)).then_nothing()
    assert story.books.groups["h100"].joining.is_open


# --- closing by hand


def test_the_operator_closes_it() -> None:
    """Resuming the group says that something was mended; if it was not, three failures open it again."""
    resume = ResumeNodeGroup(node_group="h100", operator="anna", reason="the join token is new")
    after = opened().when(resume).then(BreakerClosed(node_group="h100", reason=BreakerClosing.OPERATOR))
    assert after.books.groups["h100"].joining.failures == 0
    after.when(resume).then_nothing()


def test_a_changed_configuration_of_the_group_closes_it() -> None:
    """The operator has put in another startup script; the same configuration again changes nothing."""
    story = opened()
    assert BreakerClosed not in {type(event) for event in story.when(configuration(H100)).events}
    mended = H100.model_copy(update={"startup_script_id": "another"})
    outcome = story.when(configuration(mended))
    assert BreakerClosed(node_group="h100", reason=BreakerClosing.RECONFIGURED) in outcome.events
    assert outcome.after.when(increase(1, D)).refusal is None


def test_deletion_goes_on_while_it_is_open() -> None:
    """What was bought is given back as ever."""
    story = opened(h100.given(*running(D, "id-d")))
    assert delete_requested(D) in story.when(give_back(D, unregistered=False)).events
