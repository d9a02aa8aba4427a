"""Growth that would eat up the balance too soon; a machine of the group h100 costs 2.29 an hour."""

from datetime import timedelta
from decimal import Decimal

import pytest

from app.domain.cloud import BalanceObserved, RecordBalance
from app.domain.nodegroup.commands import ApplyConfiguration
from app.domain.nodegroup.events import Rejection, ScaleUpRejected
from app.errors import RuleViolation

from .facts import H100, A, h100, running
from .scenario import Scenario
from .wishes import increase

SIX_HOURS = ApplyConfiguration(specs=(H100,), sha256="5a", cluster_name="c1", balance_runway_s=6 * 3600)
NAMES = ("h100-00000000", "h100-11111111", "h100-22222222")


def left(amount: str) -> Scenario:
    """So much on an account that must last for six hours."""
    return h100.given(SIX_HOURS, RecordBalance(amount=Decimal(amount), currency="usd"))


def test_growth_is_granted_as_long_as_the_balance_lasts() -> None:
    """Two machines for six hours are 27.48."""
    assert left("27.48").when(increase(2, *NAMES[:2])).refusal is None


def test_growth_that_the_balance_does_not_last_for_is_refused_with_the_sum() -> None:
    """13.74 last for two hours at three times 2.29; what runs is left alone."""
    message = "13.74 usd would last 2 h at 6.87 an hour after 3 more, balance_runway is 6 h"
    rejected = ScaleUpRejected(node_group="h100", delta=3, target_size=0, reason=Rejection.BALANCE, message=message)
    left("13.74").when(increase(3, *NAMES)).then_refused(RuleViolation, rejected)


def test_what_runs_already_is_part_of_the_sum() -> None:
    """One runs; one more makes 4.58 an hour, for six hours 27.48."""
    story = h100.given(SIX_HOURS, *running(A))
    poor = story.given(RecordBalance(amount=Decimal("27.47"), currency="usd"))
    assert poor.when(increase(1, NAMES[0])).refusal is not None
    enough = story.given(RecordBalance(amount=Decimal("27.48"), currency="usd"))
    assert enough.when(increase(1, NAMES[0])).refusal is None


@pytest.mark.parametrize("amount", ["0", "-3.20"])
def test_an_empty_account_buys_nothing(amount: str) -> None:
    """And lasts no time."""
    refusal = left(amount).when(increase(1, NAMES[0])).refusal
    assert refusal is not None
    assert refusal.message.startswith(f"{amount} usd would last no time at 2.29 an hour")


def test_nothing_is_promised_before_the_balance_was_read() -> None:
    """The first reading comes with the start."""
    refusal = h100.given(SIX_HOURS).when(increase(1, NAMES[0])).refusal
    assert refusal is not None
    assert refusal.message == "the balance was never read, and balance_runway is 6 h"


def test_without_a_runway_the_balance_is_nobodys_business() -> None:
    """Verda refuses by itself when it is empty."""
    poor = h100.given(RecordBalance(amount=Decimal(0), currency="usd"))
    assert poor.when(increase(1, NAMES[0])).refusal is None


def test_a_balance_is_a_fact_when_it_has_changed_by_a_hundredth() -> None:
    """It changes by the minute, and the log is for ever."""
    story = left("1000")
    for same in ("1000", "999", "990.01", "1009.99"):
        story.when(RecordBalance(amount=Decimal(same), currency="usd")).then_nothing()
    for other in ("990", "1010", "0", "-5"):
        changed = BalanceObserved(amount=Decimal(other), currency="usd")
        story.when(RecordBalance(amount=Decimal(other), currency="usd")).then(changed)
    story.when(RecordBalance(amount=Decimal(1000), currency="eur")).then(
        BalanceObserved(amount=Decimal(1000), currency="eur")
    )
    empty = left("0")
    empty.when(RecordBalance(amount=Decimal(0), currency="usd")).then_nothing()
    empty.given(timedelta(hours=1)).when(RecordBalance(amount=Decimal("0.01"), currency="usd")).then(
        BalanceObserved(amount=Decimal("0.01"), currency="usd")
    )
