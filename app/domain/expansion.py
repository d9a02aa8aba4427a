"""Choosing among node groups that could all take the pending pods: the cheapest of those that are in stock."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from app.domain.books import Books
from app.domain.instance.events import FailureCode
from app.domain.instance.ladder import likely_rung
from app.domain.nodegroup.state import NodeGroup
from app.domain.pricing import hourly_price_of

STOCK_OUT_MEMORY = timedelta(minutes=10)
"""How long a group that could not be supplied is put behind the others; stock at Verda changes within minutes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """So many nodes of a group."""

    node_group: str
    count: int


def best_choices(choices: Sequence[Choice], books: Books, now: datetime) -> tuple[str, ...]:
    """The node groups to prefer, several for a tie; all that were offered if none is ours or has a price.

    First those that have lately been in stock, then the least money an hour for the whole choice.
    """
    ranked: list[tuple[bool, Decimal, str]] = []
    for choice in choices:
        group = books.groups.get(choice.node_group) if choice.node_group in books.served_names else None
        price = None if group is None else _hourly(group, books, now)
        if group is not None and price is not None:
            ranked.append((_ran_out(group, books, now), price * max(choice.count, 1), group.name))
    if not ranked:
        return tuple(choice.node_group for choice in choices)
    best = min(rank[:2] for rank in ranked)
    return tuple(dict.fromkeys(name for *rank, name in ranked if tuple(rank) == best))


def _hourly(group: NodeGroup, books: Books, now: datetime) -> Decimal | None:
    kind = books.cloud.catalogue.get(group.spec.instance_type)
    return None if kind is None else hourly_price_of(group.spec, kind, likely_rung(group, now).contract)


def _ran_out(group: NodeGroup, books: Books, now: datetime) -> bool:
    """Whether an order of the group failed lately for want of stock."""
    return any(
        instance.node_group == group.name
        and instance.error_code is FailureCode.OUT_OF_STOCK
        and instance.failed_at is not None
        and now - instance.failed_at < STOCK_OUT_MEMORY
        for instance in books.instances.values()
    )
