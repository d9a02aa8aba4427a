"""What moves by itself: strangers in the stock, prices, evictions."""

import json
from datetime import timedelta
from typing import Any

from app.clock import FakeClock
from app.simulator.config import parse_config
from app.simulator.exchange import Exchange
from app.simulator.wire import Request
from app.simulator.world import World
from tests.simulator.harness import TYPE, order


def _world(**config: Any) -> World:
    return World(parse_config({"clock": {"mode": "manual"}, "durations": {"preset": "fast"}, **config}), FakeClock())


def test_strangers_keep_to_their_load() -> None:
    """Over a week the mean use of the pools is near the configured 60 %, and it moves."""
    world = _world(capacity={"mode": "walk", "pools": {"FIN-01": {"H100": 64, "H200": 64}}})
    used = []
    for _ in range(168):
        world.advance(timedelta(hours=1))
        hosts = [host for pool in world.state.pools.values() for host in pool.hosts]
        used.append(1 - sum(host.free for host in hosts) / sum(host.size for host in hosts))
    assert 0.45 <= sum(used) / len(used) <= 0.75
    assert len(set(used)) > 20


def test_strangers_are_deterministic() -> None:
    """The same seed gives the same strangers, whatever else is asked meanwhile."""
    quiet, busy = (_world(capacity={"mode": "walk"}) for _ in range(2))
    for _ in range(24):
        quiet.advance(timedelta(hours=1))
        busy.advance(timedelta(hours=1))
        busy.capacity.available("FIN-01", spot=True)
    assert quiet.state.pools == busy.state.pools


def test_strangers_evict_spot() -> None:
    """In a full, busy pool spot instances do not live for ever."""
    world = _world(capacity={"mode": "walk", "load": 0.9, "pools": {"FIN-01": {"H100": 8}}})
    world.capacity.set_free("H100", "FIN-01", 4)
    for number in range(4):
        world.instances.create(order(f"spot-{number}", is_spot=True), world.scripts, world.keys)
    world.advance(timedelta(days=2))
    assert world.state.counters.evictions == 4


def test_a_script_sets_the_stock() -> None:
    """Script mode: free units at given instants."""
    script = [[60, "FIN-01", "H100", 0], [120, "FIN-01", "H100", 3]]
    world = _world(capacity={"mode": "script", "pools": {"FIN-01": {"H100": 8}}, "script": script})
    seen = []
    for _ in range(3):
        seen.append(sum(host.free for host in world.state.pools["FIN-01/H100"].hosts))
        world.advance(timedelta(seconds=60))
    assert seen == [8, 0, 3]


def test_spot_leaves_a_reserve() -> None:
    """With a reserve of two, spot takes six of eight."""
    world = _world(capacity={"spot_reserve": 2, "pools": {"FIN-01": {"H100": 8}}})
    for number in range(6):
        world.instances.create(order(f"spot-{number}", is_spot=True), world.scripts, world.keys)
    item = world.catalogue.find(TYPE)
    assert item is not None
    assert not world.capacity.fits(item, "FIN-01", spot=True)
    assert world.capacity.fits(item, "FIN-01", spot=False)


def test_prices_walk_within_bounds() -> None:
    """A month of hourly steps: prices move, stay within half and one and a half, spot within 0.25 and 0.5 of them."""
    world = _world(prices={"walk": True, "sigma": 0.05})
    seen = set()
    for _ in range(30):
        world.advance(timedelta(days=1))
        item = world.catalogue.find(TYPE)
        assert item is not None
        price, spot = float(item.price), float(item.spot_price)
        assert 2.29 * 0.5 - 0.001 <= price <= 2.29 * 1.5 + 0.001
        assert 0.24 <= spot / price <= 0.51
        seen.add(item.price)
    assert len(seen) > 20


def test_a_running_price_stays_or_follows() -> None:
    """By default a machine keeps its price; with `follow` it pays each price for its time."""
    kept = _world(prices={"walk": True, "sigma": 0.05})
    follows = _world(prices={"walk": True, "sigma": 0.05, "reprice": "follow"})
    machines, price = [], 0
    for world in (kept, follows):
        machines.append(world.instances.create(order(), world.scripts, world.keys))
        world.advance(timedelta(hours=1))
        item = world.catalogue.find(TYPE)
        assert item is not None
        price = item.price_micro(spot=False)
        assert price != 2_290_000
        world.advance(timedelta(minutes=30))
    assert machines[0].meter.price_micro == 2_290_000
    assert machines[1].meter.price_micro == price
    follows.lifecycle.end(machines[1], "test")
    paid = machines[1].meter.paid_micro - machines[1].meter.refunded_micro
    assert abs(paid - (2_290_000 + price / 2)) <= 2


def test_evictions_come_at_their_rate() -> None:
    """At half an eviction per hour and machine, some two thirds of a hundred are gone after two hours."""
    world = _world(chances={"evictions_per_hour": 0.5}, capacity={"pools": {"FIN-01": {"H100": 104}}})
    for number in range(100):
        world.instances.create(order(f"spot-{number}", is_spot=True), world.scripts, world.keys)
    world.advance(timedelta(hours=2))
    assert 48 <= world.state.counters.evictions <= 78


def test_fates_come_at_their_rates() -> None:
    """A tenth stuck, a tenth in error, of four hundred."""
    chances = {"stuck": 0.1, "error": 0.1}
    world = _world(chances=chances, capacity={"pools": {"FIN-01": {"H100": 400}}}, billing={"balance": 1e6})
    for number in range(400):
        world.instances.create(order(f"gpu-{number}"), world.scripts, world.keys)
    world.advance(timedelta(minutes=5))
    statuses = [item.status for item in world.state.instances.values()]
    assert 20 <= statuses.count("provisioning") <= 60
    assert 20 <= statuses.count("error") <= 60


def test_the_hostile_profile_spoils_one_request_in_five() -> None:
    """Of four hundred lists and four hundred orders about a fifth meets some named fault, the same ones every time."""
    shares = []
    for _ in range(2):
        world = _world(profile="hostile", capacity={"mode": "fixed"}, prices={"walk": False})
        exchange = Exchange(world, gated=False)
        for number in range(400):
            body = json.dumps(order(f"gpu-{number}")).encode()
            exchange.perform(Request.of("GET", "/v1/instances", {}, b""), lambda _: None)
            exchange.perform(Request.of("POST", "/v1/instances", {}, body), lambda _: None)
        struck = [row.route for row in exchange.log if row.faults]
        shares.append((struck.count("GET /instances") / 400, struck.count("POST /instances") / 400))
    assert shares[0] == shares[1]
    assert 0.13 <= shares[0][0] <= 0.27
    assert 0.05 <= shares[0][1] <= 0.27


def test_five_thousand_instances_are_listed_quickly() -> None:
    """The list of a large project is rendered in far less than a second on any machine."""
    pools = {"FIN-01": {"CPU": 360 * 60}}
    world = _world(capacity={"pools": pools}, billing={"balance": 1e6})
    body = order(instance_type="CPU.4V.16G", image="ubuntu-24.04")
    for number in range(5000):
        world.instances.create({**body, "hostname": f"cpu-{number}"}, world.scripts, world.keys)
    world.advance(timedelta(minutes=5))
    begun = world.clock.monotonic()
    assert len([world.views.instance(item) for item in world.instances.listing()]) == 5000
    assert world.clock.monotonic() - begun < 1
