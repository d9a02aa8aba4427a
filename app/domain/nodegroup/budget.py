"""The budget guards: would growth cost more an hour than the operator allows, or eat up the balance too soon?"""

from collections.abc import Iterable
from datetime import timedelta
from decimal import Decimal

from app.domain.books import Books
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.domain.pricing import hourly_price_of
from app.domain.words import span


def excess(books: Books, group: NodeGroup, delta: int) -> str | None:
    """The sum in words if `delta` more nodes would break a limit, None if they would not.

    Machines count at the price they have, wishes at the dearest contract of their group's ladder; machines on their way
    out count until they are gone. What has no price cannot be held to a limit, so growth without a known price is
    refused where a limit is set. What costs nothing is not: a limit that others have passed is no reason against it.
    """
    if group.spec.max_hourly_cost is None and books.installation.max_hourly_cost is None:
        return None
    price = _dearest(books, group)
    if price == 0:
        return None
    limits = (
        (f"node group {group.name}", group.spec.max_hourly_cost, books.members(group.name).listed),
        ("all node groups", books.installation.max_hourly_cost, books.listed_instances()),
    )
    for what, limit, instances in limits:
        if limit is None:
            continue
        if price is None:
            return f"the price of {group.spec.instance_type} is not known, and max_hourly_cost of {what} is {limit}"
        now = _cost(books, instances)
        after = now + delta * price
        if after > limit:
            return f"{what}: {now} an hour now, {delta} more at {price} make {after}, max_hourly_cost is {limit}"
    return None


def short_runway(books: Books, group: NodeGroup, delta: int) -> str | None:
    """The sum in words if after `delta` more nodes the balance would not last as long as it must, None if it would.

    Counted like the hourly limits. What else the account pays for is not known here, and as long as the balance is not
    known nothing is promised to what costs something.
    """
    seconds = books.installation.balance_runway_s
    if seconds is None:
        return None
    price = _dearest(books, group)
    if price == 0:
        return None
    runway, balance, currency = span(timedelta(seconds=seconds)), books.cloud.balance, books.cloud.balance_currency
    if balance is None:
        return f"the balance was never read, and balance_runway is {runway}"
    if price is None:
        return f"the price of {group.spec.instance_type} is not known, and balance_runway is {runway}"
    hourly = _cost(books, books.listed_instances()) + delta * price
    if hourly * seconds <= balance * 3600:
        return None
    lasting = timedelta(seconds=int(max(balance, Decimal(0)) * 3600 / hourly))
    return (
        f"{balance} {currency} would last {span(lasting)} at {hourly} an hour after {delta} more, "
        f"balance_runway is {runway}"
    )


def _dearest(books: Books, group: NodeGroup) -> Decimal | None:
    if group.spec.kind == "webhook":
        return group.spec.hourly_price or Decimal(0)  # machines of our own are paid for
    kind = books.cloud.catalogue.get(group.spec.instance_type)
    prices = [hourly_price_of(group.spec, kind, contract) if kind else None for contract in group.spec.contracts]
    known = [price for price in prices if price is not None]
    return max(known, default=None)


def _cost(books: Books, instances: Iterable[Instance]) -> Decimal:
    total = Decimal(0)
    for instance in instances:
        if instance.was_never_placed or (instance.state is InstanceState.FAILED and not instance.may_exist):
            continue  # nothing was bought and nothing will be
        group = books.groups[instance.node_group]
        # Without a machine the price is that of an order which may still be refused and followed by a dearer one.
        own = instance.price_per_hour if instance.instance_id is not None else None
        total += group.spec.hourly_price or own or _dearest(books, group) or Decimal(0)
    return total
