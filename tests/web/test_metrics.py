"""What Prometheus reads: complete, described, and true."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import trustme
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from app.cli.metrics_page import descriptions
from app.clock import FakeClock
from app.cloud.ratelimit import RateLimiter, Urgency
from app.domain.cloud import RecordBalance
from app.errors import OutcomeUnknown
from app.metrics import Metrics
from app.reload import RELOAD_METRICS
from app.rpc.expiry import expiries
from app.store.space import file_sizes, free_bytes
from app.web.book_metrics import book_metrics
from app.web.process_metrics import Disk, Sources, Traffic, process_metrics
from tests.reconcile.house import House, spec
from tests.reconcile.world import NO_STOCK, does_not_list, refuses

NOON = datetime(2026, 1, 5, 12, tzinfo=UTC)
SOURCES = Sources(
    traffic=lambda: Traffic(requests_left=41, hold_s=2.5, circuit_open=True),
    disk=lambda: Disk(files={"database": 4096, "wal": 512}, free_bytes=1000),
    certificates=lambda: {"tls.cert": NOON},
)


def scrape(house: House) -> dict[tuple[str, tuple[str, ...]], float]:
    """Every sample as (name, label values in the order of the labels' names) → value."""
    metrics = Metrics()
    metrics.collect_with(lambda: book_metrics(house.ledger, house.now))
    metrics.collect_with(lambda: process_metrics(SOURCES))
    text = generate_latest(metrics.registry).decode()
    return {
        (
            sample.name.removeprefix("verda_ca_"),
            tuple(value for _, value in sorted(sample.labels.items())),
        ): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_what_is_exposed_is_described_and_what_is_described_is_exposed(house: House) -> None:
    """The page, the alerts and the dashboard rest on the descriptions."""
    house.running()
    metrics = Metrics()
    exposed: dict[str, tuple[str, frozenset[str]]] = {}
    metrics.observe_rpc("Refresh", "OK", 0.001, NOON)
    metrics.observe_job("observe", "ok", 0.1, NOON)
    metrics.observe_api("list_instances", "ok", 0.1, NOON)
    metrics.events.labels("instance.gone").inc()
    metrics.creation_failures.labels("h100", "out-of-stock").inc()
    metrics.build.info({"version": "1", "sqlite": "3", "backend": "verda"})
    metrics.collect_with(lambda: book_metrics(house.ledger, house.now))
    metrics.collect_with(lambda: process_metrics(SOURCES))
    for family in text_string_to_metric_families(generate_latest(metrics.registry).decode()):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = frozenset(key for sample in family.samples for key in sample.labels) - {"le"}
        if not name.endswith("_created"):
            exposed[name] = (family.type, labels)
    exposed |= {d.description.name: ("gauge", frozenset(d.labels)) for d in RELOAD_METRICS}  # their own test has them
    described = {d.name: (d.kind, frozenset(d.labels)) for d in descriptions()}
    assert exposed.keys() == described.keys()
    # A family without samples shows no labels: nothing of that kind has happened in this house.
    assert {name: exposed[name] for name in exposed if exposed[name] != described[name] and exposed[name][1]} == {}
    assert {name for name in exposed if exposed[name][0] != described[name][0]} == set()


def test_what_is_left_on_the_account_is_a_figure_once_it_is_known(house: House) -> None:
    """In the currency of the account."""
    house.execute(RecordBalance(amount=Decimal("12.50"), currency="usd"))
    assert scrape(house)["balance", ("usd",)] == 12.5


def test_groups_in_figures(house: House) -> None:
    """Two running machines at 2.29 and a wish, in a group of at most twenty."""
    house.running(2)
    house.grow(1)
    house.clock.advance(40)
    samples = scrape(house)
    assert samples["target_size_nodes", ("h100",)] == 3
    assert (samples["min_size_nodes", ("h100",)], samples["max_size_nodes", ("h100",)]) == (0, 20)
    assert samples["instances", ("h100", "running")] == 2
    assert samples["instances", ("h100", "requested")] == 1
    assert samples["instances", ("h100", "failed")] == 0
    assert samples["cost_per_hour", ("on-demand", "usd", "h100")] == 4.58
    assert samples["oldest_creation_age_seconds", ("h100",)] == 40
    assert samples["oldest_creation_age_seconds", ("spot",)] == 0
    assert samples["target_size_nodes", ("spot",)] == 0
    assert samples["catalogue_instance_types", ()] == 1


def test_what_is_out_of_stock_is_seen_with_its_time(house: House) -> None:
    """The cool-down of ten minutes, also over a restart: what orders have taught is all that is known."""
    house.world.on_create.append(refuses(NO_STOCK))
    house.grow()
    house.provision_until_quiet()
    house.clock.advance(60)
    place = ("offering_resting_seconds", ("out-of-stock", "on-demand", "FIN-01", "h100"))
    for _ in range(2):
        assert {key: value for key, value in scrape(house).items() if key[0] == place[0]} == {place: 540}
        house.restart()
    house.clock.advance(540)
    assert place not in scrape(house)


def test_limits_of_cost(house: House) -> None:
    """A group's own; groups without one show none."""
    house.configure(spec(max_hourly_cost=Decimal("12.50")), spec("spot"))
    samples = scrape(house)
    assert {key: value for key, value in samples.items() if key[0] == "cost_limit_per_hour"} == {
        ("cost_limit_per_hour", ("h100",)): 12.5
    }


def test_health_in_figures(house: House) -> None:
    """Ready and writable, until the disk is full; then the reason's code is there as well."""
    samples = scrape(house)
    assert (samples["ready", ()], samples["store_writable", ()], samples["cloud_reachable", ()]) == (1, 1, 1)
    assert not [key for key in samples if key[0] == "not_ready_reasons"]
    house.world.on_list.append(does_not_list(OutcomeUnknown("maintenance", code="maintenance")))
    house.observe.run()
    samples = scrape(house)
    assert samples["cloud_reachable", ()] == 0
    assert samples["remarks", ("cloud-unreachable",)] == 1
    assert samples["ready", ()] == 1


def test_what_is_around_the_books(house: House) -> None:
    """Budget, disk and certificates as their rooms tell them."""
    samples = scrape(house)
    assert samples["rate_limit_requests_left", ()] == 41
    assert samples["rate_limit_hold_seconds", ()] == 2.5
    assert samples["circuit_open", ()] == 1
    assert (samples["database_size_bytes", ("database",)], samples["database_size_bytes", ("wal",)]) == (4096, 512)
    assert samples["database_free_bytes", ()] == 1000
    assert samples["certificate_expiry_time_seconds", ("tls.cert",)] == 1767614400


def test_only_what_went_well_counts_as_fresh() -> None:
    """A failed listing must not look like a new one."""
    metrics = Metrics()
    metrics.observe_api("list_instances", "ok", 0.1, NOON)
    metrics.observe_api("list_instances", "outcome-unknown", 0.1, NOON + timedelta(minutes=1))
    metrics.observe_job("observe", "ok", 0.1, NOON)
    metrics.observe_job("observe", "error", 0.1, NOON + timedelta(minutes=1))
    value = metrics.registry.get_sample_value
    assert value("verda_ca_api_last_success_time_seconds", {"operation": "list_instances"}) == 1767614400
    assert value("verda_ca_job_last_success_time_seconds", {"job": "observe"}) == 1767614400
    assert value("verda_ca_api_calls_total", {"operation": "list_instances", "outcome": "outcome-unknown"}) == 1


def test_budget_is_our_share_less_what_left_in_the_last_minute() -> None:
    """Half of 500; the server's own count wins when it is lower; a 429 leaves nothing until it has passed."""
    clock = FakeClock()
    limiter = RateLimiter(clock=clock, share=0.5)
    assert limiter.left() == 250
    for number in range(3):
        limiter.acquire("GET", f"/instances/{number}", Urgency.URGENT, deadline=1.0)
    assert limiter.left() == 247
    limiter.heard("GET", "/balance", '"project";r=12;t=30, "endpoint";r=48;t=30')
    assert limiter.left() == 12
    clock.advance(31)
    assert limiter.left() == 247
    limiter.refused("GET", "/balance", timedelta(seconds=20), "")
    assert (limiter.left(), limiter.held_s()) == (0, 20)
    clock.advance(30)
    assert (limiter.left(), limiter.held_s()) == (250, 0)


def test_first_end_of_a_chain_counts(tmp_path: Path) -> None:
    """Whichever certificate of the file ends first; a file that is gone or no PEM is left out."""
    authority = trustme.CA()
    early, late = NOON, NOON + timedelta(days=300)
    files = {"gone": tmp_path / "gone.pem", "odd": tmp_path / "odd.pem", "chain": tmp_path / "chain.pem"}
    files["odd"].write_text("no certificate")
    chain = [authority.issue_cert("a.example", not_after=end).cert_chain_pems[0].bytes() for end in (late, early)]
    files["chain"].write_bytes(b"".join(chain))
    assert expiries(files) == {"chain": early}


def test_sizes_are_of_the_files(tmp_path: Path) -> None:
    """The log beside the database counts by itself; what is not there is not zero but nothing."""
    database = tmp_path / "provider.db"
    assert file_sizes(database) == {}
    database.write_bytes(b"x" * 100)
    (tmp_path / "provider.db-wal").write_bytes(b"x" * 7)
    assert file_sizes(database) == {"database": 100, "wal": 7}
    free = free_bytes(database)
    assert free is not None
    assert free > 0
    assert free_bytes(tmp_path / "no" / "such" / "provider.db") is None


def test_labels_are_in_words() -> None:
    """Base units in the name, a sentence for each, and no metric twice."""
    names = [description.name for description in descriptions()]
    assert len(names) == len(set(names))
    suffixes: Mapping[str, str] = {"counter": "_total"}
    for description in descriptions():
        assert description.name.startswith("verda_ca_")
        assert description.name.endswith(suffixes.get(description.kind, ""))
        assert description.words.endswith(".")
