"""Metrics that can be read from the books, computed at every scrape."""

from collections import Counter
from collections.abc import Iterable

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from app.domain.instance.lifecycle import InstanceState
from app.ledger.ledger import Ledger
from app.ledger.serving import complaints
from app.metrics import PREFIX


def book_metrics(ledger: Ledger) -> Iterable[Metric]:
    """Groups, instances by state, hourly cost, the cloud's reachability, the log's head."""
    books = ledger.books
    target = _gauge("target_size_nodes", "Nodes that a group should have.", "node_group")
    smallest = _gauge("min_size_nodes", "Minimum size of a group.", "node_group")
    largest = _gauge("max_size_nodes", "Maximum size of a group.", "node_group")
    states = _gauge("instances", "Listed instances by state.", "node_group", "state")
    cost = _gauge("cost_per_hour", "What a group's machines cost an hour.", "node_group", "contract", "currency")
    for group in books.served_groups:
        members = books.members(group.name)
        low, high = books.size_limits(group)
        target.add_metric([group.name], members.target_size)
        smallest.add_metric([group.name], low)
        largest.add_metric([group.name], high)
        counts = Counter(instance.state for instance in members.listed)
        for state in InstanceState:
            if not state.is_ended:
                states.add_metric([group.name, state], counts[state])
        prices: Counter[tuple[str, str]] = Counter()
        for instance in members.listed:
            if instance.instance_id is not None and instance.price_per_hour is not None and instance.contract:
                prices[instance.contract, instance.currency] += instance.price_per_hour  # type: ignore[assignment] # Decimal
        for (contract, currency), price in prices.items():
            cost.add_metric([group.name, contract, currency], float(price))
    yield from (target, smallest, largest, states, cost)
    reachable = _gauge("cloud_reachable", "1 while the cloud answers.")
    reachable.add_metric([], 1 if books.cloud.reachable else 0)
    ready = _gauge("ready", "1 while this provider can do its job.")
    ready.add_metric([], 0 if complaints(ledger) else 1)
    head = _gauge("log_position", "Position of the newest event.")
    head.add_metric([], ledger.head.position)
    surplus = _gauge("surplus_instances", "Machines too many that are being deleted.")
    surplus.add_metric([], len(books.cloud.surplus))
    orphans = _gauge("orphan_instances", "Machines with our cluster's name that are not ours.")
    orphans.add_metric([], len(books.cloud.orphans))
    yield from (reachable, ready, head, surplus, orphans)


def _gauge(name: str, words: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", words, labels=labels)
