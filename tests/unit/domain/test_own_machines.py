"""Node groups of kind webhook: machines of our own, each of which can be had once."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain.account import AccountRefused
from app.domain.cloud import DuplicateInstanceDetected, RecordBalance, RecordSurplusGone
from app.domain.explain.group import explain_group
from app.domain.instance.commands import (
    AttemptCreate,
    CheckDeadlines,
    ConfirmEnded,
    RecordCreated,
    RecordCreateRefused,
    RecordCreateUnknown,
    Refusal,
    RuleOutCreate,
)
from app.domain.instance.events import (
    CancelReason,
    CreateAttempted,
    CreateFailed,
    CreateRefused,
    DeleteReason,
    DeleteRequested,
    ErrorClass,
    FailureCode,
    Found,
    InstanceCancelled,
)
from app.domain.nodegroup.budget import excess
from app.domain.nodegroup.commands import DrainNodeGroup
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract
from app.domain.template import build_template

from .facts import H100, H100_TYPE, catalogue, configured, h100, running
from .scenario import NOON, Scenario
from .wishes import configuration, decrease, delete, increase

A, B, C = "old-aaaaaaaa", "old-bbbbbbbb", "old-cccccccc"
OLD = NodeGroupSpec(
    name="old",
    kind="webhook",
    min_size=0,
    max_size=2,
    instance_type="webhook.old",
    image="none",
    locations=("small", "Large"),
    provider_id_template="webhook://{group}/{location}",
    labels={"example.com/rack": "7"},
    resources={"memory": "100Gi"},
)
KIND = H100_TYPE.model_copy(
    update={"name": "webhook.old", "memory_gb": Decimal(100), "on_demand_price": None, "spot_price": None}
)
cellar = h100.given(catalogue(KIND), configured(OLD))


def on(story: Scenario, name: str, machine: str) -> Scenario:
    """The machine was switched on for the wish."""
    instance_id = f"webhook:old/{machine}@{name}"
    created = RecordCreated(instance=name, instance_id=instance_id, found=Found.ANSWERED)
    return story.given(AttemptCreate(instance=name), created)


def refused_by_hook(
    status: int | None, code: str = "webhook_refused", message: str = "small is not switched on"
) -> RecordCreateRefused:
    """The power API said no to the first attempt for A."""
    return RecordCreateRefused(
        instance=A,
        attempt=1,
        refusal=Refusal.REJECTED,
        status=status,
        code=code,
        message=message,
        retry_after=None,
    )


A_SMALL = DuplicateInstanceDetected(
    instance_id=f"webhook:old/small@{A}", instance=A, reason="may have been switched on"
)
UNANSWERED = RecordCreateRefused(
    instance=A,
    attempt=1,
    refusal=Refusal.NOT_SENT,
    status=502,
    code="webhook_failed",
    message="small is not switched on: HTTP 502",
    retry_after=None,
)
ATTEMPT = AttemptCreate(instance=A)
LEAVES = configuration(H100)
DRAIN = DrainNodeGroup(node_group="old", operator="anna", reason="the cellar is wet")
sent = cellar.given(increase(1, A, group="old"), ATTEMPT)
doubtful = sent.given(UNANSWERED, timedelta(seconds=2))
"""Nobody knows whether `small` is on: its hook was called for A, and a gateway answered for it."""


def no_longer_wanted(reason: CancelReason) -> InstanceCancelled:
    """A is dropped."""
    return InstanceCancelled(instance=A, node_group="old", reason=reason)


def attempted_at_small(name: str) -> CreateAttempted:
    """The hook of `small` is being called for this wish."""
    return CreateAttempted(
        instance=name,
        node_group="old",
        attempt=1,
        instance_type="webhook.old",
        image="none",
        location="small",
        contract=Contract.ON_DEMAND,
        price_per_hour=None,
        currency="usd",
    )


def test_the_smallest_free_machine_is_taken() -> None:
    """And each of them once; the provider id is the machine's."""
    story = on(on(cellar.given(increase(2, A, B, group="old")), A, "small"), B, "Large")
    assert [(story.instance(name).location, story.instance(name).provider_id) for name in (A, B)] == [
        ("small", "webhook://old/small"),
        ("Large", "webhook://old/Large"),
    ]


def test_a_node_is_recognised_by_its_machine() -> None:
    """In any case of letters; a machine serves one wish after the other, and the last one counts."""
    story = on(cellar.given(increase(1, A, group="old")), A, "small")
    assert story.books.find("webhook://old/SMALL", "small") == story.instance(A)
    assert story.books.find("webhook://old/Large", "Large") is None
    assert story.books.find("webhook://other/small", "small") is None
    assert story.given(*running("h100-dddddddd")).books.find("webhook://h100/FIN-01", "x") is None


def test_a_node_is_recognised_while_its_start_is_in_doubt() -> None:
    """It is on, only nobody has said so yet; a wish that was refused there is none of its."""
    assert doubtful.books.find("webhook://old/small", "small") == doubtful.instance(A)
    assert sent.given(refused_by_hook(404)).books.find("webhook://old/small", "small") is None


def test_a_wish_waits_for_a_machine_on_its_way_down() -> None:
    """It is not failed: in a moment the machine is free."""
    story = on(on(cellar.given(increase(2, A, B, group="old")), A, "small"), B, "Large")
    story = story.given(
        DeleteRequested(instance=A, node_group="old", reason=DeleteReason.SCALE_DOWN), increase(1, C, group="old")
    )
    story.when(AttemptCreate(instance=C)).then_nothing()


def test_a_machine_that_refuses_leads_to_the_next() -> None:
    """The hook said no; the other machine is tried."""
    story = cellar.given(increase(1, A, group="old"), AttemptCreate(instance=A))
    story = story.given(refused_by_hook(404), AttemptCreate(instance=A))
    assert story.instance(A).location == "Large"


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, None])
@pytest.mark.parametrize("machine", ["small", "telescope-1", "imager"])
def test_what_a_hook_refuses_says_nothing_of_the_account(status: int | None, machine: str) -> None:
    """F20, F73: whatever its status and the machine's name; the refusal reaches the autoscaler as the hook's own."""
    one = OLD.model_copy(update={"locations": (machine,)})
    story = cellar.given(configured(one), increase(1, A, group="old"), AttemptCreate(instance=A))
    code = "unknown_machine" if status is None else "webhook_refused"
    words = f"{machine} is not switched on: HTTP {status}"
    told = f"{words}; ask the machine's power API why"
    error = {"error_class": ErrorClass.OTHER, "code": FailureCode.POWER_REFUSED, "message": told}
    refused = {"instance": A, "node_group": "old", "attempt": 1, "rung_closed": True, "retry_at": None}
    story.when(refused_by_hook(status, code, words)).then(
        CreateRefused.model_validate(refused | error),
        CreateFailed.model_validate({"instance": A, "node_group": "old"} | error),
    )


def test_an_account_without_money_keeps_no_machine_of_our_own_off() -> None:
    """F20: neither during the pause nor after it; that one is on says nothing of the account."""
    refusal = AccountRefused(code="insufficient-funds", message="top up", until=NOON + timedelta(minutes=1))
    story = cellar.given(refusal, increase(2, A, B, group="old"))
    assert not any(
        "no orders" in line for line in explain_group(story.books, story.books.groups["old"], (), NOON).lines
    )
    story = on(story, A, "small")
    assert story.instance(A).instance_id == f"webhook:old/small@{A}"
    story = on(story.given(timedelta(hours=1)), B, "Large")
    account = story.books.cloud.account
    assert account is not None
    assert account.failures == 1


def test_what_a_wish_may_have_switched_on_is_switched_off_when_it_is_dropped() -> None:
    """No list shows it, so this is the last moment at which anybody knows of it. It does not count."""
    for command in (decrease(-1, "old"), delete(A, group="old"), LEAVES, DRAIN):
        _, *events = doubtful.when(command).events
        assert events[-1] == A_SMALL
        assert isinstance(events[-2], InstanceCancelled)
        after = doubtful.given(command)
        assert after.books.target_size("old") == 0
        assert after.when(AttemptCreate(instance=A)).events == ()
    after = doubtful.given(delete(A, group="old"))
    after.when(delete(A, group="old")).then_nothing()


def test_nothing_is_switched_off_for_a_wish_that_called_no_hook_or_was_refused() -> None:
    """A proven no is a no."""
    for story in (cellar.given(increase(1, A, group="old")), sent.given(refused_by_hook(404))):
        assert A_SMALL not in story.when(delete(A, group="old")).events
    given_back = sent.given(delete(A, group="old"))
    assert given_back.when(refused_by_hook(404)).events[-1] == no_longer_wanted(CancelReason.NEVER_CREATED)


def test_a_start_that_fails_after_its_wish_was_given_back_is_taken_back() -> None:
    """The hook hung, the autoscaler did not wait for it."""
    given_back = sent.given(delete(A, group="old"))
    _, *events = given_back.when(UNANSWERED).events
    assert events == [no_longer_wanted(CancelReason.NEVER_CREATED), A_SMALL]


def test_a_start_of_which_nothing_was_recorded_is_taken_back() -> None:
    """The process was killed between the hook and its record, and the autoscaler gave the wish back."""
    killed = sent.given(RecordCreateUnknown(instance=A, attempt=1, reason="interrupted"), delete(A, group="old"))
    _, *events = killed.when(RuleOutCreate(instance=A, attempt=1)).events
    assert events == [no_longer_wanted(CancelReason.NEVER_CREATED), A_SMALL]
    wanted = sent.given(RecordCreateUnknown(instance=A, attempt=1, reason="interrupted"))
    again = wanted.given(RuleOutCreate(instance=A, attempt=1))
    assert again.given(ATTEMPT).instance(A).location == "small"
    assert again.when(delete(A, group="old")).events[-1] == A_SMALL


def test_a_start_that_may_have_happened_is_repeated_at_the_same_machine() -> None:
    """Though a smaller one has become free: else the first would stay on for nobody."""
    story = on(cellar.given(increase(1, B, group="old")), B, "small").given(increase(1, A, group="old"), ATTEMPT)
    story = story.given(UNANSWERED, timedelta(seconds=2), delete(B, group="old"))
    story = story.given(ConfirmEnded(instance=B, instance_id=f"webhook:old/small@{B}", known_by_id=False))
    assert story.given(ATTEMPT).instance(A).location == "Large"


def test_a_machine_that_may_be_on_is_nobody_elses() -> None:
    """Until its wish has it or it is switched off: who takes it meanwhile would have it switched off under him."""
    story = doubtful.given(increase(1, B, group="old"), AttemptCreate(instance=B))
    assert story.instance(B).location == "Large"
    story = story.given(delete(A, group="old"), increase(1, C, group="old"))
    story.when(AttemptCreate(instance=C)).then_nothing()
    off = story.given(RecordSurplusGone(instance_id=A_SMALL.instance_id), AttemptCreate(instance=C))
    assert off.instance(C).location == "small"


def test_a_refusal_after_a_start_that_may_have_happened_leaves_no_machine_on() -> None:
    """The second call says that it did nothing; the first may have. The wish goes on to the next machine."""
    story = doubtful.given(ATTEMPT)
    after = story.given(replace(refused_by_hook(409), attempt=2))
    assert set(after.books.cloud.surplus) == {A_SMALL.instance_id}
    assert after.given(ATTEMPT).instance(A).location == "Large"
    alone = cellar.given(configured(OLD.model_copy(update={"locations": ("small",)})), increase(1, A, group="old"))
    alone = alone.given(ATTEMPT, UNANSWERED, timedelta(seconds=2), ATTEMPT, replace(refused_by_hook(409), attempt=2))
    assert alone.instance(A).state == "failed"
    assert set(alone.books.cloud.surplus) == {A_SMALL.instance_id}


def test_a_failed_wish_keeps_what_it_may_have_switched_on_until_it_is_collected() -> None:
    """By the autoscaler, or after `failed_expiry`."""
    failed = doubtful.given(timedelta(hours=1), CheckDeadlines(failed_expiry=timedelta(minutes=30)))
    assert failed.instance(A).state == "failed"
    assert failed.when(delete(A, group="old")).events[-1] == A_SMALL
    expired = failed.given(timedelta(minutes=30)).when(CheckDeadlines(failed_expiry=timedelta(minutes=30)))
    expired.then(no_longer_wanted(CancelReason.DELETED), A_SMALL)


def test_a_machine_that_leaves_the_configuration_is_left_with_what_it_may_be() -> None:
    """The wish goes on to another, and nobody forgets the first: its hook is gone, and a person is told."""
    story = doubtful.given(configured(OLD.model_copy(update={"locations": ("Large",)})))
    first, second = story.when(ATTEMPT).events
    assert (first, second.type) == (A_SMALL, "instance.create-attempted")


def test_a_machine_that_two_wishes_name_is_not_switched_off_under_one() -> None:
    """Books of before doubt kept a machine may hold such a pair."""
    both = doubtful.given(increase(1, B, group="old"), attempted_at_small(B))
    assert A_SMALL not in both.when(delete(A, group="old")).events


def test_its_template_promises_what_is_known() -> None:
    """No zone and no type of Verda's, so that pods that want those go elsewhere."""
    node = build_template(OLD, KIND, Contract.ON_DEMAND)
    assert node.labels["example.com/rack"] == "7"
    assert not {key for key in node.labels if key.startswith(("topology.", "node.kubernetes.io/", "nvidia.com/"))}
    assert "verda.com/gpu" in node.labels
    assert node.capacity["nvidia.com/gpu"] == 1


def test_machines_of_our_own_cost_nothing_more() -> None:
    """A limit on the cost of an hour does not keep them off, not even one that what runs has passed."""
    rented = cellar.given(*running("h100-dddddddd"))
    limited = replace(rented.books, installation=replace(rented.books.installation, max_hourly_cost=Decimal(1)))
    assert excess(limited, limited.groups["old"], 2) is None
    assert excess(limited, limited.groups["h100"], 1) is not None


@pytest.mark.parametrize("balance", [None, Decimal("-3.20"), Decimal(0), Decimal(1)])
def test_no_balance_keeps_machines_of_our_own_off(balance: Decimal | None) -> None:
    """They take nothing from it, whether something rented does or not."""
    read = () if balance is None else (RecordBalance(amount=balance, currency="usd"),)
    for story in (cellar.given(*read), cellar.given(*running("h100-dddddddd"), *read)):
        installation = replace(story.books.installation, balance_runway_s=6 * 3600)
        careful = replace(story, books=replace(story.books, installation=installation))
        assert careful.when(increase(2, A, B, group="old")).refusal is None


def test_a_price_of_our_own_is_held_to_the_limits() -> None:
    """An operator who says what an hour costs wants it counted."""
    priced = cellar.given(configured(OLD.model_copy(update={"hourly_price": Decimal("0.60")})))
    limited = replace(priced.books, installation=replace(priced.books.installation, max_hourly_cost=Decimal(1)))
    assert excess(limited, limited.groups["old"], 1) is None
    assert excess(limited, limited.groups["old"], 2) is not None


def test_the_ladder_rests_a_machine_only_for_want_of_stock() -> None:
    """Which a power API does not tell."""
    assert OLD.ladder_cooldown == timedelta(minutes=10)
    story = cellar.given(increase(1, A, group="old"), AttemptCreate(instance=A))
    assert story.books.groups["old"].rests == ()
