"""Stock: hosts full of GPUs, shared by our project, strangers, on-demand and spot."""

from collections.abc import Callable, Iterator

from app.simulator.catalogue import Catalogue, TypeOnSale
from app.simulator.core import Core, to_ms
from app.simulator.records import EventKind, HostRecord, InstanceRecord, PoolRecord

Evict = Callable[[InstanceRecord, str], None]


_PACE = 0.5
"""Guess: how likely a host changes in one step when everything pushes the same way."""
_SPOT_STRANGERS = 0.3
"""Guess: the share of strangers on spot."""


def pool_key(family: str, location: str) -> str:
    """How pools are named in the state."""
    return f"{location}/{family}"


class Capacity:
    """Where machines are placed, who must give way, and what the availability endpoints say about it."""

    def __init__(self, core: Core, catalogue: Catalogue, evict: Evict) -> None:
        self._core = core
        self._catalogue = catalogue
        self._evict = evict

    def pool(self, item: TypeOnSale, location: str) -> PoolRecord | None:
        """The stock a type is cut from at a location; None means it is not offered there."""
        return self._core.state.pools.get(pool_key(item.row.family, location))

    def fits(self, item: TypeOnSale, location: str, *, spot: bool) -> bool:
        """Whether a machine could be placed right now."""
        pool = self.pool(item, location)
        return pool is not None and self._choose(pool, item.units, spot=spot) is not None

    def place(self, item: TypeOnSale, location: str, *, spot: bool) -> int | None:
        """Take room for a machine and return the host's number; None if there is none. May evict spot instances."""
        pool = self.pool(item, location)
        host = None if pool is None else self._choose(pool, item.units, spot=spot)
        if pool is None or host is None:
            return None
        if not spot:
            self._make_room(pool, host, item.units)
        record = pool.hosts[host]
        if spot:
            record.spot += item.units
        else:
            record.on_demand += item.units
        return host

    def release(self, instance: InstanceRecord) -> None:
        """Give an instance's room back."""
        if instance.host is None:
            return
        family = self._catalogue.row(instance.instance_type).family
        units = self._catalogue.units(instance.instance_type)
        host = self._core.state.pools[pool_key(family, instance.location)].hosts[instance.host]
        instance.host = None
        if instance.is_spot:
            host.spot -= units
        else:
            host.on_demand -= units

    def available(self, location: str, *, spot: bool) -> list[str]:
        """Types said to be in stock at a location, possibly as stale as configured."""
        core, key = self._core, f"{location}|{spot}"
        lag_ms = to_ms(core.config.capacity.availability_lag_s)
        seen = core.state.availability.get(key)
        if seen is not None and lag_ms and core.now_ms - seen[0] < lag_ms:
            return seen[1]
        names = [item.name for item in self._catalogue.types() if self.fits(item, location, spot=spot)]
        if lag_ms:
            core.state.availability[key] = (core.now_ms, names)
        return names

    def set_free(self, family: str, location: str, free: int) -> PoolRecord:
        """Make so many units free, by sending strangers away, letting strangers in, or adding hosts."""
        state, sizes = self._core.state, self._core.config.capacity
        size = sizes.cpu_host_size if family == "CPU" else sizes.host_size
        pool = state.pools.setdefault(
            pool_key(family, location), PoolRecord(family=family, location=location, host_size=size, hosts=[])
        )
        for host in pool.hosts:
            host.strangers_on_demand = host.strangers_spot = 0
        while sum(host.free for host in pool.hosts) < free:
            pool.hosts.append(HostRecord(size=pool.host_size))
        surplus = sum(host.free for host in pool.hosts) - free
        for host in reversed(pool.hosts):
            taken = min(surplus, host.free)
            host.strangers_on_demand, surplus = taken, surplus - taken
        return pool

    def step(self, key: str) -> None:
        """One step of the walk of strangers on one pool: each host gains or loses at most one unit's worth."""
        pool, core = self._core.state.pools.get(key), self._core
        if pool is None or core.config.capacity_mode != "walk":
            return
        pool.steps += 1
        generator = core.chance.stream("strangers", f"{key}|{pool.steps}")
        unit = max(1, pool.host_size // 8)
        for number, host in enumerate(pool.hosts):
            drawn, spot = generator.random(), generator.random() < _SPOT_STRANGERS
            firm = host.on_demand + host.strangers_on_demand
            taken = host.size - host.free if spot else firm
            strangers = host.strangers_on_demand + host.strangers_spot
            if drawn < _PACE * core.config.capacity.load * (1 - taken / host.size):
                self._stranger_comes(pool, number, unit, spot=spot)
            elif drawn > 1 - _PACE * (1 - core.config.capacity.load) * strangers / host.size:
                self._stranger_goes(host, unit)
        core.time.schedule(to_ms(core.config.capacity.step_s), EventKind.CAPACITY_STEP, key)

    def _stranger_comes(self, pool: PoolRecord, number: int, unit: int, *, spot: bool) -> None:
        host = pool.hosts[number]
        if spot and host.free >= unit:
            host.strangers_spot += unit
        elif not spot and host.free + host.strangers_spot + host.spot >= unit:
            self._make_room(pool, number, unit)
            host.strangers_on_demand += unit

    @staticmethod
    def _stranger_goes(host: HostRecord, unit: int) -> None:
        if host.strangers_on_demand >= unit:
            host.strangers_on_demand -= unit
        elif host.strangers_spot >= unit:
            host.strangers_spot -= unit

    @staticmethod
    def _choose(pool: PoolRecord, units: int, *, spot: bool) -> int | None:
        """The tightest host that fits; for on-demand one without evictions is preferred."""
        if ("spot" if spot else "on_demand") in pool.closed:
            return None
        fitting = [(host.free, number) for number, host in enumerate(pool.hosts) if host.free >= units]
        if spot and sum(host.free for host in pool.hosts) - units < pool.spot_reserve:
            return None
        if fitting:
            return min(fitting)[1]
        if spot:
            return None
        held = [
            (host.spot + host.strangers_spot, number)
            for number, host in enumerate(pool.hosts)
            if host.free + host.spot + host.strangers_spot >= units
        ]
        return min(held)[1] if held else None

    def _make_room(self, pool: PoolRecord, number: int, units: int) -> None:
        """Evict spot from a host until so many units are free: strangers first, then ours, youngest first."""
        host = pool.hosts[number]
        missing = units - host.free
        if missing > 0:
            host.strangers_spot -= min(missing, host.strangers_spot)
        for victim in self._ours_on(pool, number):
            if host.free >= units:
                return
            self._evict(victim, "evicted_by_on_demand")

    def _ours_on(self, pool: PoolRecord, number: int) -> Iterator[InstanceRecord]:
        for instance in reversed(list(self._core.state.instances.values())):
            if (
                instance.host == number
                and instance.is_spot
                and instance.location == pool.location
                and self._catalogue.row(instance.instance_type).family == pool.family
            ):
                yield instance
