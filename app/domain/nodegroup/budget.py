"""The budget guard: would growth cost more an hour than the operator allows?"""

from collections.abc import Iterable
from decimal import Decimal

from app.domain.books import Books
from app.domain.instance.lifecycle import InstanceState
from app.domain.instance.state import Instance
from app.domain.nodegroup.state import NodeGroup
from app.domain.pricing import hourly_price_of


def excess(books: Books, group: NodeGroup, delta: int) -> str | None:
    """The sum in words if `delta` more nodes would break a limit, None if they would not.

    Machines count at the price they have, wishes at the dearest contract of their group's ladder; machines on their way
    out count until they are gone. What has no price cannot be held to a limit, so growth without a known price is
    refused where a limit is set.
    """
    if group.spec.max_hourly_cost is None and books.installation.max_hourly_cost is None:
        return None
    price = _dearest(books, group)
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


def _dearest(books: Books, group: NodeGroup) -> Decimal | None:
    kind = books.cloud.catalogue.get(group.spec.instance_type)
    prices = [hourly_price_of(group.spec, kind, contract) if kind else None for contract in group.spec.contracts]
    known = [price for price in prices if price is not None]
    return max(known, default=None)


def _cost(books: Books, instances: Iterable[Instance]) -> Decimal:
    total = Decimal(0)
    for instance in instances:
        if instance.state is InstanceState.FAILED and not instance.may_exist:
            continue  # nothing was bought and nothing will be
        group = books.groups[instance.node_group]
        # Without a machine the price is that of an order which may still be refused and followed by a dearer one.
        own = instance.price_per_hour if instance.instance_id is not None else None
        total += group.spec.hourly_price or own or _dearest(books, group) or Decimal(0)
    return total
