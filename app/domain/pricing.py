"""What nodes and pods cost over a period, as the autoscaler's price expander wants to know it.

The expander divides by these numbers, so a price is greater than zero or there is none at all. Prices are in the
catalogue's currency and for the whole machine; costs of real machines are counted elsewhere, from what Verda charged.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Final

from app.domain.nodegroup.spec import NodeGroupSpec
from app.domain.offering import Contract, InstanceType
from app.domain.template import PODS

_ONE_HOUR: Final = timedelta(hours=1)
"""The period the autoscaler always asks for; assumed when a request tells none or one that makes no sense."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedNode:
    """What one node offers to pods, in cores, bytes and pieces, and its price per hour."""

    allocatable: Mapping[str, Decimal]
    hourly: Decimal


def hourly_price_of(spec: NodeGroupSpec, kind: InstanceType, contract: Contract) -> Decimal | None:
    """Price per hour of a node of the group: its `hourly_price` if it has one, else the catalogue's for the contract.

    A spot machine has the spot price and nothing else: None if the catalogue does not tell it. Zero is no price.
    """
    for price in (spec.hourly_price, kind.price(contract)):
        if price is not None and price > 0:
            return price
    return None


def hours_between(start: datetime | None, end: datetime | None) -> Decimal:
    """Length of a period in hours. One hour if an end is missing or not after the start."""
    period = end - start if start is not None and end is not None else _ONE_HOUR
    if period <= timedelta(0):
        period = _ONE_HOUR
    return Decimal(period // timedelta(microseconds=1)) / Decimal(_ONE_HOUR // timedelta(microseconds=1))


def node_price(hourly: Decimal, start: datetime | None, end: datetime | None) -> Decimal:
    """Price of a node over a period, in proportion to its length."""
    return hourly * hours_between(start, end)


def pod_price(requests: Mapping[str, Decimal], nodes: Iterable[PricedNode], hours: Decimal) -> Decimal | None:
    """The least these requests cost over so many hours, None if no node has a price.

    A pod costs the share of a node that it takes of the resource it takes most of; every pod takes at least one of the
    node's places for pods. The cheapest node on which it fits counts, so what fits never costs more than its node. If
    it fits nowhere, nodes that are merely too small count, with a share above one; failing these, what nobody offers is
    left out.
    """
    priced = [node for node in nodes if node.hourly > 0]
    if not priced:
        return None
    wanted = {PODS: Decimal(1)} | {resource: amount for resource, amount in requests.items() if amount > 0}
    fitting = [node for node in priced if all(amount <= _size(node, resource) for resource, amount in wanted.items())]
    too_small = [node for node in priced if all(_size(node, resource) for resource in wanted)]
    return hours * min(node.hourly * _share(wanted, node) for node in fitting or too_small or priced)


def _size(node: PricedNode, resource: str) -> Decimal:
    return node.allocatable.get(resource, Decimal(0))


def _share(wanted: Mapping[str, Decimal], node: PricedNode) -> Decimal:
    """Dominant share; a node that has nothing of what is wanted counts as taken whole."""
    offered = ((amount, _size(node, resource)) for resource, amount in wanted.items())
    return max((amount / size for amount, size in offered if size > 0), default=Decimal(1))
