"""Equal worlds behind both adapters of the `Cloud` port: Verda over HTTP, and the simulator in process."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from pydantic import JsonValue

from app.clock import FakeClock
from app.cloud.port import Cloud, Deletion, DeletionResult
from app.cloud.verda import Limits, VerdaCloud
from app.domain.machine import Machine, Order, OsVolume
from app.domain.offering import Contract
from app.simulator import acts, presets
from app.simulator.config import parse_config
from app.simulator.exchange import Exchange
from app.simulator.fault_model import Fault
from app.simulator.http import Simulator
from app.simulator.inprocess import InProcessCloud
from app.simulator.world import World

CONFIG: dict[str, JsonValue] = {
    "seed": 7,
    "chances": {"validating": 0},
    "durations": {
        "preset": "fast",
        "ordering": 5,
        "provisioning": 100,
        "deleting": 10,
        "detaching": 2,
        "no_capacity": 15,
        "guest": 60,
    },
}
"""Round durations: a machine is provisioning after 5 s, runs after 105 s, and is gone 10 s after its deletion."""

ORDER = Order(
    hostname="h100-k7p2q9x4",
    instance_type="1H100.80S.30V",
    image="ubuntu-24.04-cuda-12.8-open-docker",
    location="FIN-01",
    contract=Contract.ON_DEMAND,
    description="ca:v1 cluster=test installation=i group=h100",
    tags=(("ca-cluster", "test"),),
    os_volume=OsVolume(name="h100-k7p2q9x4", size_gb=100),
)
SPOT = replace(ORDER, contract=Contract.SPOT)
NOWHERE = "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Side:
    """A cloud to test and what is behind it."""

    cloud: Cloud
    world: World
    exchange: Exchange
    clock: FakeClock
    break_network: Callable[[], None]

    def trouble(self, name: str, **args: JsonValue) -> None:
        """Install a named fault, or do a named act now."""
        with self.world.lock:
            if name in acts.ACTS:
                acts.perform(self.world, name, args)
                return
            for fault in presets.build(name, args):
                self.exchange.faults.add(fault)

    def inject(self, fault: Fault) -> None:
        """Put a hand-made fault in force."""
        with self.world.lock:
            self.exchange.faults.add(fault)

    def delete(self, deletion: Deletion) -> DeletionResult:
        """What the cloud answers to one deletion."""
        (answer,) = self.cloud.delete_instances([deletion])
        assert answer.instance_id == deletion.instance_id
        return answer.result

    def created(self, order: Order = ORDER) -> Machine:
        """A machine just ordered."""
        found = self.cloud.get_instance(self.cloud.create_instance(order))
        assert found is not None
        return found

    def running(self, order: Order = ORDER) -> Machine:
        """A machine that runs."""
        instance_id = self.cloud.create_instance(order)
        self.clock.advance(106)
        found = self.cloud.get_instance(instance_id)
        assert found is not None
        assert found.status == "running"
        return found


@contextmanager
def over_http(config: dict[str, JsonValue]) -> Iterator[Side]:
    """Our client, a socket, the simulator's HTTP face."""
    clock = FakeClock()
    with Simulator(parse_config(config), clock=clock) as simulator:
        cloud = VerdaCloud(
            base_url=simulator.base_url,
            client_id="simulator",
            client_secret="simulator",
            backend="simulator",
            limits=Limits(timeout=timedelta(seconds=10), silence_timeout=timedelta(seconds=0.5), rate_share=1.0),
        )
        yield Side(cloud, simulator.world, simulator.exchange, clock, simulator.stop)
        cloud.close()


@contextmanager
def in_process(config: dict[str, JsonValue]) -> Iterator[Side]:
    """The same world without a socket."""
    clock = FakeClock()
    cloud = InProcessCloud(World(parse_config(config), clock))
    yield Side(cloud, cloud.world, cloud.exchange, clock, lambda: setattr(cloud, "down", True))


BuildSide = Callable[[dict[str, JsonValue]], AbstractContextManager[Side]]
SIDES: dict[str, BuildSide] = {"over HTTP": over_http, "in process": in_process}


def whole(machine: Machine, *, permanent: bool = True) -> Deletion:
    """The deletion of a machine with all its volumes."""
    return Deletion(instance_id=machine.instance_id, volume_ids=machine.volume_ids or None, permanent=permanent)
