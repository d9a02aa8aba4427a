"""Every way in which an order can go wrong (one row each): what becomes of it, how many machines were ever made."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from app.domain.offering import Contract
from tests.e2e.harness import until

from .rig import Rig, rig, simulator, spec

ORDER = {"method": "POST", "path": "/v1/instances"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A preset, and what is right: the end, the machines made, whether the outcome was unknown meanwhile, the error."""

    preset: str
    args: Mapping[str, Any] = field(default_factory=dict)
    end: str = "running"
    made: int = 1
    doubt: bool = False
    code: str | None = None

    def __str__(self) -> str:
        """As pytest shows it."""
        return "-".join((self.preset, *(str(value) for name, value in self.args.items() if name in {"status", "mode"})))


CASES = (
    # The order may have been executed: it is looked for by its name, and only ordered again once it is ruled out.
    Case(preset="create_timeout_before_commit", doubt=True),
    Case(preset="create_timeout_after_commit", doubt=True),
    Case(preset="create_reset_after_commit", doubt=True),
    Case(preset="create_close_after_commit", doubt=True),
    Case(preset="create_truncated", doubt=True),
    Case(preset="create_cut_id", doubt=True),
    Case(preset="create_empty_body", doubt=True),
    Case(preset="create_5xx_before", args={"status": 500}, doubt=True),
    Case(preset="create_5xx_before", args={"status": 502}, doubt=True),
    Case(preset="create_5xx_before", args={"status": 504}, doubt=True),
    Case(preset="create_5xx_after", args={"status": 500}, doubt=True),
    Case(preset="create_5xx_after", args={"status": 502}, doubt=True),
    Case(preset="html_502", args=ORDER, doubt=True),
    Case(preset="empty_500", args=ORDER, doubt=True),
    Case(preset="json_null", args=ORDER, doubt=True),
    Case(preset="json_list_error", args=ORDER, doubt=True),
    Case(preset="ok_html", args=ORDER, doubt=True),
    # The id comes in an odd form, or the machine cannot be looked up at once: it is known all the same.
    Case(preset="create_quoted_id"),
    Case(preset="create_object_id"),
    Case(preset="create_newline_id"),
    Case(preset="create_get_404"),
    # Proven not to have been executed: the next place, or a pause as long as the API asks for.
    Case(preset="no_capacity_503"),
    Case(preset="rate_limit", args={**ORDER, "retry_after": 3}),
    Case(preset="rate_limit_empty", args={**ORDER, "retry_after": 3}),
    Case(preset="token_expired_midflight", args={"body": {"hostname": "."}}),
    # Taken, and then there was nothing in stock: what is left of it goes, the next place gives the machine.
    Case(preset="no_capacity_async", made=2),
    # Nothing helps: a failed creation in the API's words, for the autoscaler to look elsewhere.
    Case(preset="availability_lies", args={"mode": "in_stock"}, end="failed", made=0, code="out-of-stock"),
    Case(preset="quota_gpu", args={"mode": "refuse"}, end="failed", made=0, code="quota-exceeded"),
    Case(preset="token_scope_403", args={"body": {"hostname": "."}}, end="failed", made=0, code="forbidden"),
    # The machine exists and never runs: failed, and still listed until the autoscaler deletes it.
    Case(preset="quota_gpu", args={"mode": "error"}, end="failed", code="machine-error"),
    Case(preset="install_error", end="failed", code="machine-error"),
    Case(preset="installation_failed", end="failed", code="machine-error"),
    Case(preset="stuck_ordered", end="failed", code="provision-timeout"),
    Case(preset="stuck_provisioning", end="failed", code="provision-timeout"),
    # Not the order's trouble: stock is found out by ordering, and a node that does not join is the cluster's affair.
    Case(preset="availability_lies", args={"mode": "sold_out"}),
    Case(preset="availability_lies", args={"mode": "string"}),
    Case(preset="guest_never_joins"),
    Case(preset="guest_joins_late"),
    Case(preset="guest_wrong_provider_id"),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_order_that_goes_wrong_ends_right(house: Rig, case: Case) -> None:
    """F47: whatever the API does, no wish gets two machines, and what cannot be is told with its reason."""
    house.configure(spec(provision_timeout=timedelta(minutes=2)))
    if "timeout" in case.preset:
        house.lose_patience()
    house.preset(case.preset, **case.args)
    (name,) = house.grow()
    for _ in range(25):
        house.tick()
        if house.state(name) == case.end:
            break
    instance, truth = house.instance(name), house.truth()
    assert (str(instance.state), truth["creates_committed"]) == (case.end, case.made)
    assert ("create-outcome-unknown" in house.told(name)) is case.doubt
    if case.end == "failed":
        assert instance.error_code == case.code
        house.delete(name)
    if case.preset == "stuck_provisioning":  # the API refuses to delete it for as long as it is stuck
        house.ticks(2)
        assert (house.state(name), house.alive) == ("deleting", [name])
        house.preset("unstick")
    house.ticks(5)
    assert house.alive == ([name] if case.end == "running" else [])
    assert house.target() == (1 if case.end == "running" else 0)
    assert truth["foreign_deletes"] == 0
    assert case.made > 1 or truth["duplicate_hostnames"] == {}
    assert truth["posts_after_unknown_without_list"] == 0


def test_a_spot_machine_evicted_seconds_after_its_order_is_lost_and_not_bought_again(tmp_path: Path) -> None:
    """`evict_seconds_after_create`: before any listing showed it running."""
    with simulator() as sim:
        house = rig(tmp_path, sim, spec(contracts=(Contract.SPOT,)))
        house.preset("evict_seconds_after_create", seconds=7)
        (name,) = house.grow()
        house.ticks(13)
        assert house.lost() == {name: "evicted"}
        assert (house.target(), house.truth()["creates_committed"], house.alive) == (0, 1, [])
        house.shut_down()


def answers(house: Rig) -> bool:
    """The listener is up."""
    try:
        return bool(house.truth())
    except OSError:
        return False


def test_a_listener_that_is_down_is_proof_that_nothing_was_sent(house: Rig) -> None:
    """`listener_down`: connections are refused, so the order is simply sent again once they are not."""
    house.control("POST", "/listener", {"down_for": 4})
    house.observe.run()  # notices that the connection it kept is dead
    (name,) = house.grow()
    house.provision.run()
    assert house.told(name)[-1] == "create-refused"
    until(lambda: answers(house), what="the listener is back")
    house.ticks(6)
    assert (house.state(name), house.truth()["creates_committed"]) == ("running", 1)
    assert "create-outcome-unknown" not in house.told(name)


def _tick_until(house: Rig, condition: Callable[[], bool]) -> None:
    """A refused call is waited for in real time, so no more ticks than it takes."""
    for _ in range(40):
        if condition():
            return
        house.tick()
    raise AssertionError("not within 40 ticks")


def test_a_neighbour_who_eats_the_request_budget_delays_and_breaks_nothing(tmp_path: Path) -> None:
    """`neighbour_storm`, F78: the project has ten requests a window; every wish comes true, every deletion happens."""
    limits = {"enabled": True, "clock": "sim", "project_per_window": 10, "window_s": 5}
    with simulator(limits=limits) as sim:
        house = rig(tmp_path, sim)
        names = house.grow(3)
        _tick_until(house, lambda: {house.state(name) for name in names} == {"running"})
        house.delete(names[0])
        _tick_until(house, lambda: house.state(names[0]) == "gone")
        assert house.alive == sorted(names[1:])
        assert house.truth()["creates_committed"] == 3
        house.shut_down()


@pytest.mark.parametrize(("act", "args"), [("balance_zero", {}), ("balance_low", {"amount": 0.01})])
def test_without_money_an_order_fails_at_once_and_is_not_repeated(house: Rig, act: str, args: dict[str, Any]) -> None:
    """402: the autoscaler is told that the group is out of resources, with the remedy."""
    house.preset(act, **args)
    (name,) = house.grow()
    house.ticks(5)
    instance = house.instance(name)
    assert (str(instance.state), instance.error_code, instance.error_class) == ("failed", "insufficient-funds", 1)
    assert (instance.error_message or "").endswith("top up the Verda balance")
    assert house.truth()["requests_by_route"]["POST /instances"] == 1


@pytest.mark.parametrize("act", ["scripts_over_page", "script_quota"])
def test_startup_scripts_of_others_are_none_of_an_orders_business(house: Rig, act: str) -> None:
    """Pages of them, or no room for more: orders name a script by its id, or none."""
    house.preset(act)
    assert house.running()


def test_an_order_with_a_startup_script_that_was_deleted_fails_in_the_apis_words(house: Rig) -> None:
    """`script_deleted`: the configuration names an id that is no more; no machine boots without its script."""
    house.preset("scripts_over_page", n=1)
    gone = house.preset("script_deleted")["done"]
    house.configure(spec(startup_script_id=gone))
    (name,) = house.grow()
    house.ticks(3)
    assert (house.state(name), house.instance(name).error_code) == ("failed", "invalid-request")
    assert house.truth()["creates_committed"] == 0


def test_no_room_for_disks_is_a_failed_creation(house: Rig) -> None:
    """`trash_full_quota`: the trash counts too; out of resources, so that another group may help."""
    house.preset("trash_full_quota")
    (name,) = house.grow()
    house.ticks(3)
    instance = house.instance(name)
    assert (str(instance.state), instance.error_class) == ("failed", 1)
    assert house.truth()["creates_committed"] == 0


@pytest.mark.parametrize("seconds", [-3600, 3600])
def test_a_cloud_whose_clock_is_wrong_gets_no_machine_thrown_away(house: Rig, seconds: int) -> None:
    """`clock_skew`: created an hour ago, or in an hour; age alone ends nothing."""
    house.preset("clock_skew", seconds=seconds)
    names = house.running(2)
    house.ticks(5)
    assert {house.state(name) for name in names} == {"running"}
    assert house.instance(names[0]).cost_until(house.now) is not None
    assert (house.instance(names[0]).cost_until(house.now) or Decimal(0)) >= 0
