"""Node groups of kind webhook: machines of our own, each of which can be had once."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain.account import AccountRefused
from app.domain.cloud import RecordBalance
from app.domain.explain.group import explain_group
from app.domain.instance.commands import AttemptCreate, RecordCreated, RecordCreateRefused, Refusal
from app.domain.instance.events import (
    CreateFailed,
    CreateRefused,
    DeleteReason,
    DeleteRequested,
    ErrorClass,
    FailureCode,
    Found,
)
from app.domain.nodegroup.budget import excess
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract
from app.domain.template import build_template

from .facts import H100_TYPE, catalogue, configured, h100, running
from .scenario import NOON, Scenario
from .wishes import increase

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
