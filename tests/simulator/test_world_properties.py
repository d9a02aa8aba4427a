"""What must hold in every world, whatever is asked of it."""

import json
from datetime import timedelta
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from app.clock import FakeClock
from app.simulator import acts, presets
from app.simulator.account import billed_ms
from app.simulator.config import parse_config
from app.simulator.errors import ApiError
from app.simulator.exchange import Exchange
from app.simulator.records import Status
from app.simulator.wire import Request, Response
from app.simulator.world import World
from tests.simulator.harness import IMAGE

_TYPES = ("1H100.80S.30V", "2H100.80S.80V", "8H100.80S.176V")
_ACTS = ("evict", "human_delete", "human_shutdown", "offline", "vanish_then_return", "stick", "unstick", "balance_low")
_PRESETS = (
    "create_timeout_before_commit", "create_timeout_after_commit", "create_5xx_before", "no_capacity_async",
    "stuck_provisioning", "installation_failed", "delete_lost", "delete_partial", "os_volume_left", "list_hole",
    "evict_seconds_after_create",
)  # fmt: skip


class AnyWorld(RuleBasedStateMachine):
    """Random requests, acts and faults over a small stock with strangers in it."""

    def __init__(self) -> None:
        super().__init__()
        config: dict[str, Any] = {
            "seed": 11,
            "profile": "realistic",
            "clock": {"mode": "manual"},
            "capacity": {"pools": {"FIN-01": {"H100": 16}, "FIN-02": {"H100": 8}}, "load": 0.3},
            "chances": {"requests": {}},
        }
        self.world = World(parse_config(config), FakeClock())
        self.exchange = Exchange(self.world, gated=False)
        self.ended: set[str] = set()
        self.names = 0

    def ask(self, method: str, target: str, body: object = None) -> Response:
        """One request."""
        raw = b"" if body is None else json.dumps(body).encode()
        return self.exchange.perform(Request.of(method, target, {}, raw), lambda _: None).response

    def some(self, pick: int) -> str:
        """Some instance's id."""
        ids = list(self.world.state.instances)
        return ids[pick % len(ids)] if ids else "00000000-0000-4000-8000-000000000000"

    @rule(kind=st.sampled_from(_TYPES), spot=st.booleans(), place=st.sampled_from(("FIN-01", "FIN-02")))
    def create(self, *, kind: str, spot: bool, place: str) -> None:
        """Order a machine."""
        self.names += 1
        body = {"instance_type": kind, "image": IMAGE, "hostname": f"h-{self.names // 2}", "location_code": place}
        assert self.ask("POST", "/v1/instances", {**body, "is_spot": spot}).status in {0, 202, 402, 500, 503}

    @rule(picks=st.lists(st.integers(0, 50), min_size=1, max_size=3), listed=st.sampled_from((None, [], "os")))
    def delete(self, *, picks: list[int], listed: object) -> None:
        """Delete some machines with some idea about their volumes."""
        ids = [self.some(pick) for pick in picks]
        volumes = listed
        if listed == "os":
            volumes = [self.world.state.instances[one].os_volume_id for one in ids if one in self.world.state.instances]
            volumes = [one for one in volumes if one]
        body = {"id": ids, "action": "delete", "volume_ids": volumes, "delete_permanently": True}
        assert self.ask("PUT", "/v1/instances", body).status in {202, 204, 207, 403, 404, 500}

    @rule(pick=st.integers(0, 50), action=st.sampled_from(("shutdown", "start", "hibernate", "force_shutdown")))
    def act(self, *, pick: int, action: str) -> None:
        """Switch a machine on or off."""
        self.ask("PUT", "/v1/instances", {"id": self.some(pick), "action": action})

    @rule(name=st.sampled_from(_ACTS))
    def meddle(self, *, name: str) -> None:
        """Something happens that nobody asked for."""
        try:
            acts.perform(self.world, name, {"amount": 5_000})
        except ApiError as error:
            assert error.status == 404  # noqa: PT017 - nothing it could be done to

    @rule(name=st.sampled_from(_PRESETS))
    def fault(self, *, name: str) -> None:
        """Something will go wrong."""
        for fault in presets.build(name, {}):
            self.exchange.faults.add(fault)

    @rule(seconds=st.sampled_from((0.5, 7, 60, 601, 4000, 90_000)))
    def wait(self, *, seconds: float) -> None:
        """Time passes."""
        self.world.advance(timedelta(seconds=seconds))

    @precondition(lambda self: self.world.state.instances)
    @rule()
    def fork(self) -> None:
        """A snapshot is the world, to the last byte."""
        saved = self.world.snapshot()
        self.world.restore(saved)
        assert self.world.snapshot() == saved

    @invariant()
    def stock_is_never_negative_and_adds_up(self) -> None:
        """Every host has as much taken as the machines on it need, and no less than nothing free."""
        taken: dict[tuple[str, int], int] = {}
        for item in self.world.state.instances.values():
            if item.host is not None:
                assert item.ended_ms is None
                key = (f"{item.location}/H100", item.host)
                taken[key] = taken.get(key, 0) + int(item.instance_type[0])
        for name, pool in self.world.state.pools.items():
            for number, host in enumerate(pool.hosts):
                assert host.free >= 0
                assert host.on_demand + host.spot == taken.get((name, number), 0)

    @invariant()
    def the_dead_stay_dead(self) -> None:
        """What was discontinued once is discontinued for ever."""
        instances = self.world.state.instances
        assert all(instances[one].status == Status.DISCONTINUED for one in self.ended)
        self.ended |= {one for one, item in instances.items() if item.status == Status.DISCONTINUED}

    @invariant()
    def bills_lie_within_lives(self) -> None:
        """Nobody pays before the order or after the end."""
        now = self.world.state.now_ms
        for item in self.world.state.instances.values():
            end = now if item.ended_ms is None else item.ended_ms
            assert item.meter.started_ms == item.created_ms
            assert 0 <= billed_ms(item.meter, now) <= end - item.created_ms
            if item.status == Status.DISCONTINUED:
                assert item.meter.stopped_ms is not None

    @invariant()
    def money_adds_up(self) -> None:
        """The balance is what was put in minus what was taken out."""
        account = self.world.state.account
        assert account.balance_micro == -sum(account.totals.values())

    @invariant()
    def a_volume_has_one_master(self) -> None:
        """No volume is claimed by two living machines, and none in the trash is attached or billed."""
        claimed: set[str] = set()
        for item in self.world.state.instances.values():
            if item.status != Status.DISCONTINUED:
                assert not claimed & set(item.volume_ids)
                claimed |= set(item.volume_ids)
        for volume in self.world.state.volumes.values():
            if volume.deleted_ms is not None:
                assert (volume.instance_id, volume.billed_from_ms) == (None, None)

    @invariant()
    def nothing_is_forgotten(self) -> None:
        """Listed, hidden and discontinued together are everything that was ever created."""
        world = self.world
        everything = {item.id for item in world.instances.listing()} | {
            item.id for item in world.instances.listing(Status.DISCONTINUED)
        }
        hidden = {item.id for item in world.state.instances.values() if item.hidden}
        foreign = sum(1 for item in world.state.instances.values() if item.foreign)
        assert everything | hidden == set(world.state.instances)
        assert len(world.state.instances) - foreign == world.state.counters.creates_committed

    @invariant()
    def every_fault_is_in_the_log(self) -> None:
        """What fired is written down."""
        fired = sum(record.fired for record in self.world.state.faults.values())
        assert fired == sum(len(row.faults) for row in self.exchange.log)


TestAnyWorld = AnyWorld.TestCase
TestAnyWorld.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
