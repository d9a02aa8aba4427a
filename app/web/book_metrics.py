"""Metrics that can be read from the books, computed at every scrape."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from decimal import Decimal

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from app.domain.books import Books, Members
from app.domain.cluster.learning import corrected, kind_of
from app.domain.instance.lifecycle import InstanceState
from app.domain.nodegroup.state import FOR_EVER
from app.domain.template import build_template
from app.ledger.ledger import Ledger
from app.ledger.serving import Reason, complaints, remarks
from app.metrics import Computed

_GROUP = ("node_group",)
TARGET = Computed("target_size_nodes", "Nodes that a group should have.", _GROUP)
MIN_SIZE = Computed("min_size_nodes", "Minimum size of a group.", _GROUP)
MAX_SIZE = Computed("max_size_nodes", "Maximum size of a group.", _GROUP)
INSTANCES = Computed("instances", "Listed instances by state.", ("node_group", "state"))
OLDEST = Computed(
    "oldest_creation_age_seconds", "How long the oldest instance has been in creation, 0 if none is.", _GROUP
)
COST = Computed("cost_per_hour", "What a group's machines cost an hour.", ("node_group", "contract", "currency"))
LIMIT = Computed(
    "cost_limit_per_hour", "The `max_hourly_cost` of a group; `node_group` is empty for the total.", _GROUP
)
BALANCE = Computed(
    "balance", "What is left on the account, as last recorded; only with `balance_runway`.", ("currency",)
)
REACHABLE = Computed("cloud_reachable", "1 while the cloud answers.")
READY = Computed("ready", "1 while this provider can do its job.")
REASONS = Computed("not_ready_reasons", "1 for each reason why it is not ready.", ("code",))
REMARKS = Computed("remarks", "How often something is worth a look that keeps it from nothing.", ("code",))
WRITABLE = Computed("store_writable", "1 while the log can be written.")
POSITION = Computed("log_position", "Position of the newest event.")
SURPLUS = Computed("surplus_instances", "Machines too many that are being deleted.")
ORPHANS = Computed("orphan_instances", "Machines with our cluster's name that are not ours.")
LEARNED = Computed(
    "template_learned_ratio",
    "What real nodes leave to pods, as a share of the computed template; a group without a measured node has none.",
    ("node_group", "resource"),
)
RESTING = Computed(
    "offering_resting_seconds",
    "For how long an offering that was refused is still put behind the others: what is known of its availability.",
    ("node_group", "contract", "location", "code"),
)
CATALOGUE = Computed("catalogue_instance_types", "Instance types that the catalogue has.")
BOOK_METRICS = (
    *(TARGET, MIN_SIZE, MAX_SIZE, INSTANCES, OLDEST, COST, LIMIT, BALANCE, REACHABLE, READY, REASONS, REMARKS),
    *(WRITABLE, POSITION, SURPLUS, ORPHANS, CATALOGUE),
    *(LEARNED, RESTING),
)
"""Everything that `book_metrics` yields."""

_CREATING = frozenset({InstanceState.REQUESTED, InstanceState.SUBMITTING, InstanceState.PROVISIONING})


def book_metrics(ledger: Ledger, now: datetime, optional: Sequence[Reason] = ()) -> Iterable[Metric]:
    """Groups, instances by state, hourly cost, the cloud's reachability, health, the log's head.

    `optional` are remarks about parts that scaling does not depend on.
    """
    books = ledger.books
    yield from _groups(books, now)
    yield from _money(books)
    yield _learned(books)
    yield _resting(books, now)
    troubles = complaints(ledger)
    yield REACHABLE.value(1 if books.cloud.reachable else 0)
    yield READY.value(0 if troubles else 1)
    yield _by_code(REASONS, troubles)
    yield _by_code(REMARKS, (*remarks(books), *optional))
    yield WRITABLE.value(0 if ledger.trouble else 1)
    yield POSITION.value(ledger.head.position)
    yield SURPLUS.value(len(books.cloud.surplus))
    yield ORPHANS.value(len(books.cloud.orphans))
    yield CATALOGUE.value(len(books.cloud.catalogue))


def _groups(books: Books, now: datetime) -> Iterable[Metric]:
    target, smallest, largest = TARGET.family(), MIN_SIZE.family(), MAX_SIZE.family()
    states, oldest = INSTANCES.family(), OLDEST.family()
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
        oldest.add_metric([group.name], _oldest_creation_s(members, now))
    return target, smallest, largest, states, oldest


def _learned(books: Books) -> Metric:
    family = LEARNED.family()
    for group in books.served_groups:
        learned = books.cluster.learned.get(kind_of(group.spec))
        if learned is None:
            continue
        kind = books.cloud.catalogue[group.spec.instance_type]
        computed = build_template(group.spec, kind, group.spec.contracts[0])
        real = corrected(computed, learned.figures, group.spec)
        for resource, size in computed.allocatable.items():
            if size:
                family.add_metric([group.name, resource], float(real.allocatable[resource] / size))
    return family


def _resting(books: Books, now: datetime) -> Metric:
    family = RESTING.family()
    for group in books.served_groups:
        for rest in group.rests:
            if now < rest.until < FOR_EVER:
                labels = [group.name, rest.offering.contract, rest.offering.location, rest.code]
                family.add_metric(labels, (rest.until - now).total_seconds())
    return family


def _oldest_creation_s(members: Members, now: datetime) -> float:
    since = (instance.requested_at for instance in members.listed if instance.state in _CREATING)
    return max((now - min(since, default=now)).total_seconds(), 0.0)


def _money(books: Books) -> Iterable[Metric]:
    cost, limit = COST.family(), LIMIT.family()
    for group in books.served_groups:
        prices: dict[tuple[str, str], Decimal] = {}
        for instance in books.members(group.name).listed:
            if instance.instance_id is not None and instance.price_per_hour is not None and instance.contract:
                key = (instance.contract, instance.currency)
                prices[key] = prices.get(key, Decimal(0)) + instance.price_per_hour
        for (contract, currency), price in prices.items():
            cost.add_metric([group.name, contract, currency], float(price))
        if group.spec.max_hourly_cost is not None and not group.retired:
            limit.add_metric([group.name], float(group.spec.max_hourly_cost))
    if books.installation.max_hourly_cost is not None:
        limit.add_metric([""], float(books.installation.max_hourly_cost))
    balance = BALANCE.family()
    if books.cloud.balance is not None:
        balance.add_metric([books.cloud.balance_currency], float(books.cloud.balance))
    return cost, limit, balance


def _by_code(metric: Computed, reasons: Iterable[Reason]) -> GaugeMetricFamily:
    family = metric.family()
    for code, count in Counter(reason.code for reason in reasons).items():
        family.add_metric([code], count)
    return family
