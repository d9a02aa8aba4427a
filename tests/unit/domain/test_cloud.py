from dataclasses import replace
from decimal import Decimal

from app.domain.cloud import (
    CatalogueChanged,
    CloudReachable,
    CloudUnreachable,
    DuplicateInstanceDeleted,
    PriceChanged,
    RecordCatalogue,
    RecordSurplus,
    RecordSurplusGone,
    RecordUnreachable,
)
from app.domain.offering import Contract, InstanceType

from .facts import A_ID, CPU, CPU_TYPE, H100_TYPE, NEW_DATABASE, A, catalogue, configured, h100, orphan, surplus
from .scenario import NOON

DOWN = RecordUnreachable(code="timeout", message="no answer within 30 s")
UNREACHABLE = CloudUnreachable(code="timeout", message="no answer within 30 s")


def read(*types: InstanceType) -> RecordCatalogue:
    """The catalogue as it was just read."""
    return RecordCatalogue(types=types)


def withdrawn(*names: str) -> CatalogueChanged:
    """These types are no longer offered."""
    return CatalogueChanged(count=0, withdrawn_count=len(names), types=(), withdrawn=names)


def price(contract: Contract, old: str | None, new: str | None) -> PriceChanged:
    """A price of the H100 type changed."""
    return PriceChanged(
        instance_type="1H100.80S.32V",
        contract=contract,
        old=None if old is None else Decimal(old),
        new=None if new is None else Decimal(new),
        currency="usd",
    )


def dearer(**changes: Decimal | None) -> InstanceType:
    """The H100 type at another price."""
    return H100_TYPE.model_copy(update=changes)


# --- the catalogue


def test_the_first_catalogue_is_new_in_full() -> None:
    """From then on groups of these types are served; first prices are no price changes."""
    story = NEW_DATABASE.given(CloudReachable(backend="simulator"))
    assert story.books.served_groups == ()
    after = story.when(read(H100_TYPE, CPU_TYPE)).then(catalogue(H100_TYPE, CPU_TYPE))
    assert [group.name for group in after.books.served_groups] == ["h100"]


def test_an_unchanged_catalogue_writes_nothing() -> None:
    """It is read every five minutes."""
    h100.when(read(H100_TYPE)).then_nothing()


def test_an_empty_catalogue_is_not_believed() -> None:
    """Templates and prices keep the last good one."""
    h100.when(read()).then_nothing()


def test_only_what_changed_is_told() -> None:
    """A new type beside a known one."""
    h100.when(read(H100_TYPE, CPU_TYPE)).then(catalogue(CPU_TYPE))


def test_a_changed_price_is_a_fact_of_its_own() -> None:
    """Per contract, with the old one."""
    after = h100.when(read(dearer(spot_price=Decimal("0.90")))).then(
        catalogue(dearer(spot_price=Decimal("0.90"))), price(Contract.SPOT, "0.8015", "0.90")
    )
    assert after.books.cloud.catalogue["1H100.80S.32V"].price(Contract.SPOT) == Decimal("0.90")
    assert after.books.cloud.catalogue["1H100.80S.32V"].price(Contract.ON_DEMAND) == Decimal("2.29")


def test_both_prices_may_change_and_vanish() -> None:
    """F31: a spot price above on-demand is a price like any other."""
    h100.when(read(dearer(spot_price=Decimal("2.60"), on_demand_price=None))).then(
        catalogue(dearer(spot_price=Decimal("2.60"), on_demand_price=None)),
        price(Contract.ON_DEMAND, "2.29", None),
        price(Contract.SPOT, "0.8015", "2.60"),
    )


def test_the_same_price_with_more_zeros_is_no_change() -> None:
    """2.29 and 2.290 are one amount."""
    h100.when(read(dearer(on_demand_price=Decimal("2.290")))).then_nothing()


def test_a_type_that_left_the_catalogue_stays_known() -> None:
    """F10: its machines still need a template and a price; growth is refused by Verda, not by us."""
    story = h100.given(catalogue(CPU_TYPE))
    after = story.when(read(CPU_TYPE)).then(withdrawn("1H100.80S.32V"))
    assert after.books.cloud.withdrawn == {"1H100.80S.32V"}
    assert [group.name for group in after.books.served_groups] == ["h100"]
    after.when(read(CPU_TYPE)).then_nothing()


def test_a_type_that_returns_is_offered_again() -> None:
    """Under the same price: no price change is told."""
    story = h100.given(catalogue(CPU_TYPE), read(CPU_TYPE))
    after = story.when(read(CPU_TYPE, H100_TYPE)).then(catalogue(H100_TYPE))
    assert after.books.cloud.withdrawn == frozenset()


def test_a_group_of_a_type_that_was_never_seen_waits_until_it_is() -> None:
    """F10: one impossible group is not listed; the others are untouched."""
    story = h100.given(configured(CPU))
    assert [group.name for group in story.books.served_groups] == ["h100"]
    assert [group.name for group in story.given(read(H100_TYPE, CPU_TYPE)).books.served_groups] == ["h100", "cpu"]


# --- reachability


def test_an_outage_is_one_fact_however_many_calls_fail() -> None:
    """Not a flood of them."""
    after = h100.when(DOWN).then(UNREACHABLE)
    after.when(DOWN).then_nothing()
    after.when(RecordUnreachable(code="other", message="still")).then_nothing()
    assert after.books.cloud.reachable is False
    assert after.books.cloud.trouble == "timeout: no answer within 30 s"


def test_the_first_look_may_fail_too() -> None:
    """A new database that never reached the cloud says why it does not serve."""
    after = NEW_DATABASE.when(DOWN).then(UNREACHABLE)
    assert (after.books.cloud.first_reached_at, after.books.cloud.since) == (None, NOON)


def test_having_seen_the_cloud_once_is_not_forgotten() -> None:
    """A database that has seen it serves at once after a restart."""
    story = h100.given(UNREACHABLE)
    assert story.books.cloud.first_reached_at == NOON
    back = story.given(CloudReachable(backend="simulator"))
    assert (back.books.cloud.trouble, back.books.cloud.reachable) == ("", True)


# --- machines too many


def test_a_machine_too_many_is_an_intent_before_it_is_deleted() -> None:
    """A crash in between leaves the intent."""
    after = h100.when(RecordSurplus(instance=A, instance_id=A_ID, reason="duplicate")).then(
        surplus(A_ID, A, "duplicate")
    )
    found = after.books.cloud.surplus[A_ID]
    assert (found.instance, found.reason, found.since) == (A, "duplicate", NOON)
    after.when(RecordSurplus(instance=A, instance_id=A_ID, reason="released")).then_nothing()


def test_a_machine_too_many_that_is_gone_is_forgotten() -> None:
    """And once is enough."""
    after = (
        h100.given(surplus(A_ID, A, "duplicate"))
        .when(RecordSurplusGone(instance_id=A_ID))
        .then(DuplicateInstanceDeleted(instance_id=A_ID, instance=A))
    )
    assert not after.books.cloud.surplus
    after.when(RecordSurplusGone(instance_id=A_ID)).then_nothing()


def test_a_catalogue_entry_has_one_price_a_contract() -> None:
    """Spot groups pay the spot price and nothing else."""
    assert H100_TYPE.price(Contract.SPOT) == Decimal("0.8015")
    assert H100_TYPE.price(Contract.ON_DEMAND) == Decimal("2.29")


def test_every_fact_about_the_cloud_counts_in_its_stream() -> None:
    """Versions of the one stream are gap-free, whatever its facts are about."""
    before = h100.books.cloud
    after = h100.given(
        UNREACHABLE, orphan(), surplus(A_ID, A, "duplicate"), price(Contract.SPOT, None, "1")
    ).books.cloud
    assert after.version == before.version + 4
    assert replace(after, version=0).catalogue == before.catalogue
