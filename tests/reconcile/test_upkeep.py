from datetime import timedelta
from decimal import Decimal

import pytest

from app.cloud.port import Balance
from app.domain.nodegroup.commands import ApplyConfiguration
from app.domain.offering import Contract
from app.errors import CloudError, StoreUnavailable
from app.reconcile.jobs.upkeep import FAILED_EXPIRY

from .house import H100_TYPE, House, spec
from .world import BUSY, DOWN, NO_STOCK, TIMEOUT, refuses

MINUTE = timedelta(minutes=1)
CHEAPER = H100_TYPE.model_copy(update={"spot_price": Decimal("0.70")})
CPU_TYPE = H100_TYPE.model_copy(update={"name": "CPU.4V.16G", "gpus": 0})


# --- the catalogue


def test_the_catalogue_is_read_at_once_and_then_every_five_minutes(house: House) -> None:
    """Prices change seldom; the request budget is shared."""
    house.catalog.run()
    house.world.types = (CHEAPER,)
    house.clock.advance(5 * MINUTE - timedelta(seconds=1))
    house.catalog.run()
    assert house.books.cloud.catalogue[CHEAPER.name].price(Contract.SPOT) == Decimal("0.8015")
    house.clock.advance(1)
    house.catalog.run()
    assert house.books.cloud.catalogue[CHEAPER.name].price(Contract.SPOT) == Decimal("0.70")
    assert house.types()[-2:] == ["cloud.catalogue-changed", "cloud.price-changed"]


def test_an_unchanged_catalogue_writes_nothing(house: House) -> None:
    """Every five minutes, for years."""
    before = house.position()
    for _ in range(10):
        house.catalog.run()
        house.clock.advance(5 * MINUTE)
    assert house.position() == before


@pytest.mark.parametrize("error", [DOWN, BUSY, TIMEOUT])
def test_a_catalogue_that_cannot_be_read_is_kept_and_asked_for_in_the_next_run(house: House, error: CloudError) -> None:
    """Templates and prices work while the API is down, and a new database serves as soon as it is back."""
    house.world.types = (CHEAPER,)
    house.world.on_types.append(error)
    house.catalog.run()
    assert house.books.cloud.catalogue[CHEAPER.name] == H100_TYPE
    house.clock.advance(10)
    house.catalog.run()
    assert house.books.cloud.catalogue[CHEAPER.name] == CHEAPER


def test_a_type_that_was_missing_once_is_looked_for_in_the_next_run(house: House) -> None:
    """One entry could not be read: its price is not old for another five minutes. What is gone for good stays gone."""
    house.world.types = (CPU_TYPE,)
    house.catalog.run()
    assert house.books.cloud.withdrawn == {H100_TYPE.name}
    house.world.types = (CPU_TYPE, CHEAPER)
    house.clock.advance(10)
    house.catalog.run()
    assert house.books.cloud.withdrawn == set()
    assert house.books.cloud.catalogue[CHEAPER.name] == CHEAPER
    house.world.types = (CPU_TYPE,)
    house.clock.advance(5 * MINUTE)
    house.catalog.run()
    house.clock.advance(10)
    house.catalog.run()
    house.world.types = (CPU_TYPE, CHEAPER)
    house.clock.advance(10)
    house.catalog.run()
    assert house.books.cloud.withdrawn == {H100_TYPE.name}


def test_the_last_catalogue_survives_a_restart(house: House) -> None:
    """F10: served at once, from the database, with types that were withdrawn."""
    house.world.types = (CPU_TYPE,)
    house.catalog.run()
    house.restart()
    assert house.books.cloud.catalogue[H100_TYPE.name] == H100_TYPE
    assert house.books.cloud.withdrawn == {H100_TYPE.name}
    assert [group.name for group in house.books.served_groups] == ["h100", "spot"]


# --- the balance


def test_the_balance_is_read_as_long_as_growth_depends_on_it(house: House) -> None:
    """Else nobody asks for it: it is not ours to know."""
    house.balance.run()
    assert house.books.cloud.balance is None
    house.execute(ApplyConfiguration(specs=(spec(),), sha256="new", cluster_name="c1", balance_runway_s=3600))
    house.balance.run()
    assert house.books.cloud.balance == Decimal(1000)
    before = house.position()
    house.balance.run()
    assert house.position() == before


def test_a_balance_that_cannot_be_read_stays_as_it_was(house: House) -> None:
    """An API that is down has not emptied the account."""
    house.execute(ApplyConfiguration(specs=(spec(),), sha256="new", cluster_name="c1", balance_runway_s=3600))
    house.balance.run()
    house.world.left = Balance(amount=Decimal(5), currency="usd")
    house.world.on_balance.append(DOWN)
    house.balance.run()
    assert house.books.cloud.balance == Decimal(1000)
    house.balance.run()
    assert house.books.cloud.balance == Decimal(5)
    assert house.types()[-1] == "cloud.balance-observed"


# --- deadlines


def test_a_failure_that_nobody_collects_leaves_the_target_after_half_an_hour(house: House) -> None:
    """Nobody is coming for it any more."""
    house.world.always_create = refuses(NO_STOCK)
    (name,) = house.grow()
    house.ticks(3)
    assert (house.state(name), house.target()) == ("failed", 1)
    house.clock.advance(FAILED_EXPIRY)
    house.deadlines.run()
    assert (house.state(name), house.target()) == ("cancelled", 0)


def test_readiness_recovers_when_the_disk_can_be_written_again(house: House) -> None:
    """Nobody has to restart anything."""

    def full(_: object) -> None:
        raise StoreUnavailable("the disk is full")

    house.trap.on_append = full
    with pytest.raises(StoreUnavailable):
        house.grow()
    assert (house.ledger.trouble, house.target()) == ("the disk is full", 0)
    house.trap.on_append = lambda _: None
    house.deadlines.run()
    assert house.ledger.trouble is None


def test_a_second_check_right_away_finds_nothing(house: House) -> None:
    """The job converges."""
    house.grow(3)
    house.clock.advance(10 * MINUTE)
    house.deadlines.run()
    before = house.position()
    house.deadlines.run()
    assert house.position() == before
    assert house.types()[-3:] == ["instance.create-failed"] * 3


# --- housekeeping


def test_what_ended_days_ago_leaves_memory_and_stays_in_the_database(house: House) -> None:
    """Memory does not grow with history; a deletion repeated later is still answered."""
    (name,) = house.running()
    house.delete(name)
    house.ticks(3)
    house.clock.advance(timedelta(days=2) - timedelta(minutes=1))
    house.housekeeping.run()
    assert house.state(name) == "gone"
    house.clock.advance(2 * MINUTE)
    house.housekeeping.run()
    assert name not in house.books.instances
    found = house.ledger.find_ended(name)
    assert found is not None
    assert found.state == "gone"


def test_what_has_not_ended_is_never_forgotten(house: House) -> None:
    """However old it is."""
    (name,) = house.running()
    house.clock.advance(timedelta(days=400))
    house.housekeeping.run()
    assert house.state(name) == "running"
