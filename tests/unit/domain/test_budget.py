from decimal import Decimal

import pytest

from app.domain.cloud import CatalogueChanged
from app.domain.nodegroup.commands import ApplyConfiguration, IncreaseSize
from app.domain.nodegroup.events import Rejection, ScaleUpRejected
from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract
from app.domain.service import ConfigurationLoaded
from app.errors import RuleViolation

from .facts import (
    A_ID,
    CPU,
    CPU_TYPE,
    H100,
    H100_TYPE,
    A,
    B,
    C,
    D,
    attempted,
    cancelled,
    catalogue,
    configured,
    created,
    delete_requested,
    failed,
    gone,
    h100,
    observed,
    refused,
    running,
    unknown,
    wanted,
)
from .scenario import Scenario

PREFER_SPOT = (Contract.SPOT, Contract.ON_DEMAND)


def limited(limit: str, **changes: object) -> NodeGroupSpec:
    """The group h100 that may cost so much an hour."""
    return H100.model_copy(update={"max_hourly_cost": Decimal(limit), **changes})


def grow(story: Scenario, delta: int) -> str | None:
    """Why the group h100 may not grow by so many, None if it may."""
    names = tuple(f"h100-{number:08}" for number in range(delta))
    refusal = story.when(IncreaseSize(node_group="h100", delta=delta, names=names)).refusal
    return None if refusal is None else refusal.message


def test_growth_up_to_exactly_the_limit_is_accepted() -> None:
    """Two at 2.29 are 4.58."""
    story = h100.given(configured(limited("4.58")))
    assert grow(story, 2) is None
    assert grow(story, 3) == "node group h100: 0 an hour now, 3 more at 2.29 make 6.87, max_hourly_cost is 4.58"


def test_growth_over_the_limit_is_refused_as_a_whole_and_is_a_fact() -> None:
    """All or nothing, and the log says why nothing was bought."""
    message = "node group h100: 2.29 an hour now, 2 more at 2.29 make 6.87, max_hourly_cost is 4.58"
    story = h100.given(configured(limited("4.58")), *running())
    story.when(IncreaseSize(node_group="h100", delta=2, names=(B, C))).then_refused(
        RuleViolation,
        ScaleUpRejected(node_group="h100", delta=2, target_size=1, reason=Rejection.BUDGET, message=message),
    )


def test_wishes_count_at_the_dearest_contract_they_may_come_to() -> None:
    """Spot may be refused everywhere; then on-demand is bought without asking again."""
    story = h100.given(configured(limited("4.58", contracts=PREFER_SPOT)), wanted(A))
    assert grow(story, 1) is None
    assert grow(story, 2) == "node group h100: 2.29 an hour now, 2 more at 2.29 make 6.87, max_hourly_cost is 4.58"


def test_a_wish_refused_as_spot_counts_as_what_is_tried_next() -> None:
    """The price of the refused order is not the price of the one to come."""
    story = h100.given(
        configured(limited("4.58", contracts=PREFER_SPOT)),
        wanted(A),
        attempted(A, contract=Contract.SPOT, price="0.8015"),
        refused(A),
    )
    assert grow(story, 2) == "node group h100: 2.29 an hour now, 2 more at 2.29 make 6.87, max_hourly_cost is 4.58"


def test_machines_count_at_the_price_they_have() -> None:
    """A spot machine at 0.80 leaves more room than a wish."""
    story = h100.given(
        configured(limited("4.58", contracts=PREFER_SPOT)),
        wanted(A),
        attempted(A, contract=Contract.SPOT, price="0.8015"),
        created(A),
        observed(price="0.80"),
    )
    assert grow(story, 1) is None
    assert grow(story, 2) == "node group h100: 0.80 an hour now, 2 more at 2.29 make 5.38, max_hourly_cost is 4.58"


def test_machines_on_their_way_out_count_until_they_are_gone() -> None:
    """They bill until then."""
    story = h100.given(configured(limited("2.29")), *running(A, A_ID), delete_requested(A))
    assert grow(story, 1) is not None
    assert grow(story.given(gone(A)), 1) is None


def test_what_was_never_bought_and_never_will_be_costs_nothing() -> None:
    """A failure that waits to be collected must not keep the group from trying again; one in doubt may bill."""
    story = h100.given(configured(limited("2.29")))
    assert grow(story.given(wanted(A), cancelled(A)), 1) is None
    assert grow(story.given(wanted(A), attempted(A), refused(A), failed(A)), 1) is None
    assert grow(story.given(wanted(A), attempted(A), unknown(A), failed(A)), 1) is not None


def test_without_a_price_a_limited_group_does_not_grow() -> None:
    """What has no price cannot be held to a limit."""
    free = CatalogueChanged(
        count=1, withdrawn_count=0, types=(H100_TYPE.model_copy(update={"on_demand_price": None}),), withdrawn=()
    )
    story = h100.given(free)
    assert grow(story, 1) is None
    assert (
        grow(story.given(configured(limited("100"))), 1)
        == "the price of 1H100.80S.32V is not known, and max_hourly_cost of node group h100 is 100"
    )


def test_the_operator_s_own_price_is_what_the_limit_is_about() -> None:
    """A discount that the catalogue does not know."""
    story = h100.given(configured(limited("2.00", hourly_price=Decimal("1.00"))))
    assert grow(story, 2) is None
    assert grow(story, 3) is not None


def test_one_limit_may_hold_for_all_groups_together() -> None:
    """2.29 and two at 0.0279 are 2.3458: one more H100 would make 4.6358."""
    apply = ApplyConfiguration(specs=(H100, CPU), sha256="5a", cluster_name="c1", max_hourly_cost=Decimal("4.60"))
    story = h100.given(catalogue(CPU_TYPE), apply)
    story = story.given(*running(), wanted("cpu-aaaaaaaa", "cpu"), wanted("cpu-bbbbbbbb", "cpu"))
    assert grow(story, 1) == "all node groups: 2.3458 an hour now, 1 more at 2.29 make 4.6358, max_hourly_cost is 4.60"
    assert story.when(IncreaseSize(node_group="cpu", delta=1, names=("cpu-cccccccc",))).refusal is None


def test_a_changed_limit_is_a_changed_configuration() -> None:
    """The environment may change it without a change of the file."""
    apply = ApplyConfiguration(specs=(H100,), sha256="5a", cluster_name="c1", max_hourly_cost=Decimal(10))
    after = h100.when(apply).then(
        ConfigurationLoaded(sha256="5a", cluster_name="c1", node_groups=1, max_hourly_cost=Decimal(10))
    )
    assert after.books.installation.max_hourly_cost == Decimal(10)
    after.when(apply).then_nothing()


@pytest.mark.parametrize("names", [(A,), (A, B), (A, B, C, D)])
def test_no_limit_is_no_limit(names: tuple[str, ...]) -> None:
    """The guard is the operator's choice."""
    assert h100.when(IncreaseSize(node_group="h100", delta=len(names), names=names)).refusal is None
