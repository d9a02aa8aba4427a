"""The simulated cloud: a deterministic state machine of seed, configuration, ordered inputs and clock. No HTTP here."""

import threading
from datetime import timedelta

from pydantic import TypeAdapter, ValidationError

from app.clock import Clock, SystemClock
from app.errors import ConfigurationError, Problem
from app.simulator import presets
from app.simulator.account import Account
from app.simulator.admission import Admission
from app.simulator.capacity import pool_key
from app.simulator.catalogue import Catalogue
from app.simulator.chance import Chance
from app.simulator.config import SimulatorConfig
from app.simulator.core import Core, to_ms
from app.simulator.fault_model import Fault, FaultRecord
from app.simulator.instances import Instances
from app.simulator.library import Library
from app.simulator.lifecycle import Lifecycle
from app.simulator.records import Due, EventKind, HostRecord, InstanceRecord, PoolRecord
from app.simulator.state import Quotas, WorldState
from app.simulator.timeline import TimeLine
from app.simulator.views import Views
from app.simulator.volumes import Volumes

_STATE = TypeAdapter(WorldState)


class World:
    """Everything behind the API. Hold `lock` around every use from more than one thread.

    Call `catch_up` before reading or changing anything: it works out all that happened since the last time.
    """

    def __init__(self, config: SimulatorConfig, clock: Clock | None = None, state: WorldState | None = None) -> None:
        self.lock = threading.RLock()
        self.clock: Clock = clock or SystemClock()
        self.revision = 0
        self._build(config, state)

    def _build(self, config: SimulatorConfig, state: WorldState | None) -> None:
        self.config = config
        self.state = state or self._blank(config)
        self.core = Core(config, self.state, TimeLine(self.state, self.clock), Chance(self.state.seed))
        self.catalogue = Catalogue(self.core)
        self.account = Account(self.core)
        self.volumes = Volumes(self.core, self.account)
        self.scripts = Library(self.core, "script", self.state.scripts)
        self.keys = Library(self.core, "key", self.state.keys)
        self.lifecycle = Lifecycle(self.core, self.catalogue, self.account, self.volumes)
        self.capacity = self.lifecycle.capacity
        admission = Admission(self.core, self.catalogue, self.capacity, self.volumes, self.account)
        self.instances = Instances(self.core, admission, self.lifecycle, self.volumes, self.account)
        self.views = Views(self.core, self.catalogue)
        if state is None:
            self._found()
        self.revision += 1

    def _blank(self, config: SimulatorConfig) -> WorldState:
        epoch_ms = to_ms(config.epoch(self.clock.now()).timestamp())
        return WorldState(
            seed=config.seed,
            now_ms=epoch_ms,
            clock_mode=config.clock.mode.value,
            clock_factor=config.clock.factor,
            quotas=Quotas(**config.quotas.model_dump()),
        )

    def _found(self) -> None:
        """What exists on the first day: stock, money, scripts, keys, and the first steps of everything that moves."""
        config, time = self.config, self.core.time
        for location, families in config.capacity.pools.items():
            for family, units in families.items():
                self._pool(family, location, units)
        self.account.top_up(round(config.billing.balance * 1_000_000))
        for seeds, shelf in ((config.scripts, self.scripts), (config.ssh_keys, self.keys)):
            for seed in seeds:
                shelf.add(seed.name, seed.text, fixed_id=seed.id)
        for name, probability in config.chances.requests.items():
            for fault in presets.build(name, {"times": -1, "probability": probability}):
                self.add_fault(fault)
        self.account.schedule_storage_bill()
        if config.price_walk:
            time.schedule(to_ms(config.prices.step_s), EventKind.PRICE_STEP)
        if config.capacity_mode == "walk":
            for key in self.state.pools:
                time.schedule(to_ms(config.capacity.step_s), EventKind.CAPACITY_STEP, key)
        if config.capacity_mode == "script":
            for number, (after_s, *_) in enumerate(config.capacity.script):
                time.schedule(to_ms(after_s), EventKind.CAPACITY_SET, str(number))

    def _pool(self, family: str, location: str, units: int) -> None:
        sizes = self.config.capacity
        size = sizes.cpu_host_size if family == "CPU" else sizes.host_size
        whole, rest = divmod(units, size)
        hosts = [HostRecord(size=size) for _ in range(whole)] + ([HostRecord(size=rest)] if rest else [])
        if self.config.capacity_mode == "walk":
            for host in hosts:
                host.strangers_on_demand = round(host.size * sizes.load)
        self.state.pools[pool_key(family, location)] = PoolRecord(
            family=family, location=location, host_size=size, hosts=hosts, spot_reserve=sizes.spot_reserve
        )

    def add_fault(self, fault: Fault) -> str:
        """Put a fault in force, after those already there; returns its id."""
        fault_id = f"fault-{self.core.ordinal('fault')}"
        self.state.faults[fault_id] = FaultRecord(id=fault_id, fault=fault)
        return fault_id

    def catch_up(self) -> int:
        """Let everything happen that is due by now; returns how many events that were."""
        time, count = self.core.time, 0
        until = time.now_ms()
        while (event := time.pop(until)) is not None:
            self._apply(event)
            count += 1
        self.state.now_ms = max(self.state.now_ms, until)
        self.revision += count
        return count

    def advance(self, by: timedelta) -> int:
        """Jump the clock forward and let everything happen on the way; returns the number of events."""
        before = self.catch_up()
        self.core.time.advance(to_ms(by.total_seconds()))
        return before + self.catch_up()

    def advance_to_next(self) -> int:
        """Jump to the next thing that is due; returns the number of events."""
        self.catch_up()
        due_ms = self.core.time.next_ms()
        return 0 if due_ms is None else self.advance(timedelta(milliseconds=due_ms - self.state.now_ms))

    def touch(self) -> None:
        """Say that something changed that ought to be saved."""
        self.revision += 1

    def reset(self, config: SimulatorConfig) -> None:
        """Begin again from nothing."""
        self._build(config, None)

    def snapshot(self) -> bytes:
        """The whole world as JSON."""
        return _STATE.dump_json(self.state)

    def restore(self, snapshot: bytes) -> None:
        """Become the world of a snapshot.

        Raises:
            ConfigurationError: it is no snapshot.
        """
        try:
            state = _STATE.validate_json(snapshot)
        except ValidationError as error:
            problem = Problem(source="snapshot", line=None, path="", message=str(error).splitlines()[0])
            raise ConfigurationError((problem,)) from error
        self.adopt(state)

    def adopt(self, state: WorldState, *, skipped: timedelta = timedelta()) -> None:
        """Go on from a state, `skipped` later in real time: a real clock has gone on meanwhile, another one not."""
        self._build(self.config, state)
        if state.clock_mode == "real" and skipped > timedelta():
            self.core.time.advance(to_ms(skipped.total_seconds()))

    def _apply(self, event: Due) -> None:
        match event.kind:
            case EventKind.NEXT | EventKind.ADDRESS | EventKind.GUEST_READY | EventKind.LEAVE_LIST:
                instance = self.state.instances.get(event.subject)
                if instance is not None and instance.generation == event.generation:
                    self._apply_to(instance, event.kind)
            case EventKind.EVICT | EventKind.RETURN | EventKind.SLICE:
                self._apply_always(event)
            case EventKind.DETACHED | EventKind.PURGE:
                volume = self.state.volumes.get(event.subject)
                if volume is not None and volume.generation == event.generation:
                    (self.volumes.detached if event.kind is EventKind.DETACHED else self.volumes.purge)(volume)
            case EventKind.STORAGE_BILL:
                self.account.settle_storage()
                self.account.schedule_storage_bill()
                self.check_balance()
            case EventKind.PRICE_STEP:
                self._price_step()
            case EventKind.CAPACITY_STEP:
                self.capacity.step(event.subject)
            case EventKind.CAPACITY_SET:
                _, location, family, free = self.config.capacity.script[int(event.subject)]
                self.capacity.set_free(family, location, free)

    def _apply_to(self, instance: InstanceRecord, kind: EventKind) -> None:
        if kind is EventKind.NEXT:
            self.lifecycle.next(instance)
        elif kind is EventKind.ADDRESS:
            self.lifecycle.give_address(instance)
        elif kind is EventKind.GUEST_READY:
            self.lifecycle.guest_ready(instance)
        else:
            self.lifecycle.end(instance, "no_capacity")

    def _apply_always(self, event: Due) -> None:
        instance = self.state.instances[event.subject]
        if event.kind is EventKind.EVICT:
            self.lifecycle.evict(instance, "evicted_by_on_demand")
        elif event.kind is EventKind.RETURN:
            instance.hidden = False
        elif instance.meter.stopped_ms is None and instance.meter.bought == event.generation:
            self.account.buy_slice(instance)
            self.check_balance()

    def check_balance(self) -> None:
        """At zero the platform discontinues every instance and puts every volume into the trash."""
        if self.state.account.balance_micro > 0:
            return
        for instance in list(self.state.instances.values()):
            if instance.ended_ms is None:
                self.lifecycle.end(instance, "insufficient_funds", to_trash=True)
        for volume in list(self.state.volumes.values()):
            self.volumes.discard(volume, permanently=False, actor=None)

    def _price_step(self) -> None:
        self.catalogue.step_prices()
        if self.config.prices.reprice == "follow":
            for instance in self.state.instances.values():
                item = self.catalogue.find(instance.instance_type)
                if item is not None and instance.meter.stopped_ms is None:
                    self.account.reprice(instance, item.price_micro(spot=instance.is_spot))
        self.core.time.schedule(to_ms(self.config.prices.step_s), EventKind.PRICE_STEP)
