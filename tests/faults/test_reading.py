"""Every lie and every failure of what is read (one row each), while three machines run: nothing follows from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from app.ledger.serving import remarks

from .rig import Rig

LIST = {"method": "GET", "path": "/v1/instances"}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A preset that spoils the next `times` answers; whether they leave the cloud unreachable as long as they last."""

    preset: str
    args: Mapping[str, Any] = field(default_factory=dict)
    times: int = 3
    outage: bool = False
    logged_out: bool = False

    def __str__(self) -> str:
        """As pytest shows it."""
        return f"{self.preset}-{'ever' if self.times < 0 else self.times}"


CASES = (
    # Lists that are well-formed and wrong. Absence is no evidence; only a look-up by id is.
    Case(preset="list_empty", times=1),
    Case(preset="list_empty", times=-1),
    Case(preset="list_hole", times=1),
    Case(preset="list_hole", times=-1),
    Case(preset="list_stale", args={"lag": 30}, times=-1),
    Case(preset="list_duplicate", times=-1),
    Case(preset="list_reordered", times=-1),
    Case(preset="list_huge", args={"count": 300}, times=2),
    # Lists and objects that cannot be read as a whole are not read in part.
    Case(preset="list_truncated_json", outage=True),
    Case(preset="object_partial", outage=True),
    Case(preset="object_null_id", outage=True),
    # What is new or missing in an entry and not needed to know the machine is passed over.
    Case(preset="object_unknown_status", times=-1),
    Case(preset="object_extra_fields", times=-1),
    Case(preset="location_missing", times=-1),
    # No answer, or none of the API's own.
    Case(preset="slow", args={"seconds": 8}, times=1, outage=True),
    Case(preset="drip", args={"bytes": 1, "interval": 0.5}, times=1, outage=True),
    Case(preset="html_502", args=LIST, outage=True),
    Case(preset="empty_500", args=LIST, outage=True),
    Case(preset="json_null", args=LIST, outage=True),
    Case(preset="json_list_error", args=LIST, outage=True),
    Case(preset="ok_html", args=LIST, outage=True),
    Case(preset="token_scope_403", args={"path": "/v1/instances"}, times=3, outage=True),
    # Throttled is not down.
    Case(preset="rate_limit", args={**LIST, "retry_after": 3}),
    Case(preset="rate_limit_empty", args={**LIST, "retry_after": 3}),
    # A token that dies is replaced in the same call.
    Case(preset="token_expired_midflight", times=1),
    # The token endpoint, when a new token is needed.
    Case(preset="auth_down", outage=True, logged_out=True),
    Case(preset="auth_slow", args={"seconds": 8}, times=1, outage=True, logged_out=True),
    Case(preset="auth_html", outage=True, logged_out=True),
    Case(preset="auth_missing_key", args={"key": "access_token"}, outage=True, logged_out=True),
    Case(preset="auth_missing_key", args={"key": "scope"}, logged_out=True),
    Case(preset="refresh_rejected", times=-1, logged_out=True),
    Case(preset="expires_in_zero", times=-1, logged_out=True),
    Case(preset="expires_in_string", times=-1, logged_out=True),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_nothing_follows_from_an_answer_that_lies_or_fails(house: Rig, case: Case) -> None:
    """Three run before, meanwhile and afterwards; not one order, not one deletion; the outage is one event."""
    names = house.running(3)
    if "seconds" in case.args or case.preset == "drip":
        house.lose_patience()
    if case.logged_out:
        house.control("POST", "/tokens/revoke")
    house.preset(case.preset, **case.args, times=case.times)
    house.tick(house.observe)
    assert (house.books.cloud.reachable is False) is case.outage
    house.ticks(4)
    assert {house.state(name) for name in names} == {"running"}
    house.control("DELETE", "/faults")
    house.clock.advance(60)
    house.ticks(3)
    assert {house.state(name) for name in names} == {"running"}
    assert (house.target(), house.books.cloud.reachable) == (3, True)
    assert house.types().count("cloud.unreachable") == (1 if case.outage else 0)
    truth = house.truth()
    assert (truth["creates_committed"], truth["deletes_requested"]) == (3, 0)


def test_a_revoked_token_costs_one_more_request(house: Rig) -> None:
    """`token_revoked`: 401, a new token, the same call again; nobody notices."""
    house.running(1)
    before = house.truth()["token_calls"]
    house.control("POST", "/tokens/revoke")
    house.tick()
    assert house.books.cloud.reachable is True
    assert house.truth()["token_calls"] == before + 1


def test_an_unknown_status_is_one_event_and_no_verdict(house: Rig) -> None:
    """F52: `migrating` for a while, then running again; the machine exists and is billed."""
    (name,) = house.running()
    before = len(house.told(name))
    house.preset("object_unknown_status", status="migrating", times=-1)
    house.ticks(5)
    assert (house.state(name), house.instance(name).machine_status) == ("running", "migrating")
    assert house.told(name)[before:] == ["state-observed"]
    assert [(one.code, one.message.partition(" since ")[0]) for one in remarks(house.books)] == [
        ("unknown-status", f"{name} has the status 'migrating'")
    ]
    house.control("DELETE", "/faults")
    house.ticks(2)
    assert house.instance(name).machine_status == "running"
    assert remarks(house.books) == ()


@pytest.mark.parametrize("preset", ["spot_price_null", "type_missing_field"])
def test_an_odd_entry_of_the_catalogue_hides_no_other(house: Rig, preset: str) -> None:
    """The group goes on; what is not known is not known."""
    house.preset(preset)
    house.clock.advance(300)
    house.catalog.run()
    assert [group.name for group in house.books.served_groups] == ["h100"]
    assert house.running()


def test_a_type_that_is_no_longer_sold_is_withdrawn_and_its_machines_stay(house: Rig) -> None:
    """`type_removed`: the last good entry answers templates and prices; orders are refused in the API's words."""
    (name,) = house.running()
    house.preset("type_removed")
    house.clock.advance(300)
    house.catalog.run()
    assert "1H100.80S.30V" in house.books.cloud.withdrawn
    assert [group.name for group in house.books.served_groups] == ["h100"]
    (refused,) = house.grow()
    house.ticks(5)
    assert (house.state(name), house.state(refused)) == ("running", "failed")


def test_a_type_that_is_renamed_is_two_types(house: Rig) -> None:
    """`type_renamed`: another one than ours, so nothing of ours changes."""
    house.preset("type_renamed")
    house.clock.advance(300)
    house.catalog.run()
    assert "1GB300.32V" in house.books.cloud.withdrawn
    assert "1GB300.36V" in house.books.cloud.catalogue
    assert house.running()


def test_a_price_that_jumps_is_an_event_and_changes_no_machine(house: Rig) -> None:
    """`price_jump`: new machines cost more; what runs costs what it was rented for."""
    (name,) = house.running()
    before = house.instance(name).price_per_hour
    house.preset("price_jump", factor=2)
    house.clock.advance(300)
    house.catalog.run()
    house.ticks(2)
    assert house.types().count("cloud.price-changed") > 1
    assert house.instance(name).price_per_hour == before
