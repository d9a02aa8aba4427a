from datetime import timedelta
from decimal import Decimal

from app.domain.cloud import RecordCatalogue
from app.domain.instance.events import CreateRefused, ErrorClass, FailureCode
from app.domain.offering import Contract
from app.errors import Throttled

from .house import H100_TYPE, House, spec
from .world import (
    BUSY,
    DOWN,
    NO_MONEY,
    NO_STOCK,
    QUOTA,
    WRONG_IMAGE,
    refuses,
)

SPOT_FIRST = (Contract.SPOT, Contract.ON_DEMAND)


def test_a_stock_out_everywhere_is_known_within_one_pass(house: House) -> None:
    """F19: creating, out of resources, a stable code; no attempt is left in doubt."""
    house.world.always_create = refuses(NO_STOCK)
    (name,) = house.grow()
    house.provision_until_quiet()
    failed = house.instance(name)
    assert (failed.state, failed.error_class, failed.error_code) == (
        "failed",
        ErrorClass.OUT_OF_RESOURCES,
        FailureCode.OUT_OF_STOCK,
    )
    assert [order.location for order in house.world.orders] == ["FIN-01", "FIN-03"]
    assert house.target() == 1
    assert "instance.create-outcome-unknown" not in house.types()


def test_every_contract_and_place_is_tried_before_the_wish_fails(house: House) -> None:
    """Prefer spot: spot at both places, then on demand at both."""
    house.configure(spec(contracts=SPOT_FIRST))
    house.world.on_create.extend([refuses(NO_STOCK)] * 3)
    (name,) = house.grow()
    house.provision_until_quiet()
    assert [(order.contract, order.location) for order in house.world.orders] == [
        ("spot", "FIN-01"),
        ("spot", "FIN-03"),
        ("on-demand", "FIN-01"),
        ("on-demand", "FIN-03"),
    ]
    assert (house.state(name), house.instance(name).contract) == ("provisioning", "on-demand")
    assert house.instance(name).price_per_hour == Decimal("2.29")


def test_an_order_taken_and_never_placed_moves_on_to_the_next_place(house: House) -> None:
    """F19: 202 first, then the status no_capacity; its record is deleted, the next order lives."""
    (name,) = house.grow()
    house.provision.run()
    house.tick()
    house.world.change(name, "no_capacity")
    house.tick(house.observe)
    assert house.state(name) == "requested"
    house.tick(house.provision, house.terminate)
    assert [order.location for order in house.world.orders] == ["FIN-01", "FIN-03"]
    house.world.boot()
    house.ticks(4)
    assert (house.state(name), house.instance(name).location) == ("running", "FIN-03")
    assert len(house.world.alive) == 1
    assert not house.books.cloud.surplus


def test_no_money_fails_every_wish_and_heals_by_itself(house: House) -> None:
    """F20: one refusal serves them all, machines run on, one order a pause tries again, also after a top-up."""
    (old,) = house.running()
    taken = house.world.always_create
    house.world.always_create = refuses(NO_MONEY)
    house.grow(1)
    house.provision_until_quiet()
    names = house.grow(2)
    house.provision_until_quiet()
    for name in names:
        failed = house.instance(name)
        assert (failed.error_class, failed.error_code) == (1, "insufficient-funds")
        assert failed.error_message == "Insufficient funds; top up the Verda balance"
    assert len(house.world.orders) == 2
    house.clock.advance(timedelta(minutes=1))
    house.grow(2)
    house.provision_until_quiet()
    assert len(house.world.orders) == 3
    house.world.always_create = taken
    house.clock.advance(timedelta(minutes=2))
    (again,) = house.grow()
    house.provision_until_quiet()
    assert (house.state(old), house.state(again)) == ("running", "provisioning")
    assert house.books.cloud.account is None


def test_no_quota_at_one_place_uses_the_other(house: House) -> None:
    """F21: the rung is closed for the wish, FIN-03 is used, and no loop of attempts arises."""
    house.world.on_create.append(refuses(QUOTA))
    (name,) = house.grow()
    house.provision_until_quiet()
    house.ticks(6)
    assert [order.location for order in house.world.orders] == ["FIN-01", "FIN-03"]
    assert house.state(name) == "provisioning"
    (refused,) = [item.event for item in house.log if isinstance(item.event, CreateRefused)]
    assert (refused.code, refused.message) == (
        "quota-exceeded",
        "GPU quota exceeded; ask Verda for a higher quota or use other locations",
    )


def test_an_image_that_does_not_fit_is_no_missing_capacity(house: House) -> None:
    """F22: class other, a code that says what it is, no other places tried."""
    house.world.always_create = refuses(WRONG_IMAGE)
    (name,) = house.grow()
    house.provision_until_quiet()
    failed = house.instance(name)
    assert (failed.state, failed.error_class, failed.error_code) == ("failed", 99, "image-not-supported")
    assert len(house.world.orders) == 1


def test_a_rate_limit_delays_the_order_by_what_the_api_asks(house: House) -> None:
    """F24: Retry-After: 17; no failure, no other place, one order then."""
    house.world.on_create.append(refuses(Throttled("Rate limit", code="x", retry_after=timedelta(seconds=17))))
    (name,) = house.grow()
    house.provision_until_quiet()
    assert house.state(name) == "requested"
    house.clock.advance(16.9)
    house.provision.run()
    assert len(house.world.orders) == 1
    house.clock.advance(0.1)
    house.provision.run()
    assert house.state(name) == "provisioning"
    assert house.world.orders[0] == house.world.orders[1]


def test_a_cloud_that_is_away_is_asked_ever_more_seldom_and_then_given_up(house: House) -> None:
    """Ten minutes below the autoscaler's fifteen: pauses of 2, 4, 8, 16, 32, 60, 60 … seconds."""
    house.world.always_create = refuses(DOWN)
    (name,) = house.grow()
    for _ in range(600):
        house.provision.run()
        house.clock.advance(1)
    assert len(house.world.orders) == 14
    house.deadlines.run()
    failed = house.instance(name)
    assert (failed.state, failed.error_code, failed.error_message) == (
        "failed",
        "cloud-unreachable",
        "connection refused",
    )
    house.delete(name)
    assert house.state(name) == "cancelled"


def test_a_cloud_that_returns_in_time_gets_the_order(house: House) -> None:
    """Wishes are accepted and kept while Verda is down; nothing is forgotten."""
    house.world.on_create.extend([refuses(DOWN), refuses(BUSY), refuses(DOWN)])
    (name,) = house.grow()
    house.ticks(6)
    assert (house.state(name), len(house.world.alive)) == ("provisioning", 1)


def test_a_wish_released_before_its_order_is_never_ordered(house: House) -> None:
    """A released slot must not produce an instance."""
    house.world.on_create.append(refuses(BUSY))
    (name,) = house.grow()
    house.provision.run()
    house.shrink(1)
    house.ticks(12)
    assert house.state(name) == "cancelled"
    assert house.world.alive == {}


def test_wishes_of_a_retired_group_are_not_ordered(house: House) -> None:
    """Nobody wants them any more."""
    house.grow(2)
    house.configure()
    house.provision_until_quiet()
    assert house.world.orders == []
    assert house.target() == 0


def test_what_was_out_of_stock_is_passed_over_also_after_a_restart(house: House) -> None:
    """Spot is out at both places: the next wish goes on demand at once, and to spot again ten minutes later."""
    house.configure(spec(contracts=SPOT_FIRST))
    house.world.on_create.extend([refuses(NO_STOCK)] * 2)
    house.grow()
    house.provision_until_quiet()
    house.restart()
    house.clock.advance(60)
    (second,) = house.grow()
    house.provision_until_quiet()
    house.clock.advance(540)
    (third,) = house.grow()
    house.provision_until_quiet()
    asked = [(order.contract, order.location) for order in house.world.orders]
    assert asked == [
        ("spot", "FIN-01"),
        ("spot", "FIN-03"),
        ("on-demand", "FIN-01"),
        ("on-demand", "FIN-01"),
        ("spot", "FIN-01"),
    ]
    bought = [(house.instance(name).contract, house.instance(name).price_per_hour) for name in (second, third)]
    assert bought == [("on-demand", Decimal("2.29")), ("spot", Decimal("0.8015"))]


def test_twenty_wishes_learn_from_the_first_that_everything_is_out(house: House) -> None:
    """The autoscaler sees all of them failed within one pass, and the API is asked once for each offering."""
    house.configure(spec(contracts=SPOT_FIRST))
    house.world.always_create = refuses(NO_STOCK)
    names = house.grow(20)
    house.provision_until_quiet()
    assert {(house.state(name), house.instance(name).error_code) for name in names} == {("failed", "out-of-stock")}
    assert len(house.world.orders) == 4
    house.delete(*names)
    house.world.always_create = lambda _order, create: create()
    (again,) = house.grow()
    house.provision_until_quiet()
    assert (house.state(again), house.instance(again).contract) == ("provisioning", "spot")


def test_the_dearer_contract_is_taken_if_the_operator_put_it_first(house: House) -> None:
    """F31: spot at 2.60 and on demand at 2.29: the order is fixed, and the books have what it really costs."""
    crossed = H100_TYPE.model_copy(update={"spot_price": Decimal("2.60")})
    house.execute(RecordCatalogue(types=(crossed,)))
    house.configure(spec(contracts=SPOT_FIRST))
    (name,) = house.grow()
    house.provision_until_quiet()
    assert (house.instance(name).contract, house.instance(name).price_per_hour) == ("spot", Decimal("2.60"))
