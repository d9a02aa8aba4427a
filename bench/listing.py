"""A look at a large fleet that has not changed, beside fetching and parsing the same list by the official SDK alone."""

import tempfile
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import requests
from verda import VerdaClient  # type: ignore[import-untyped] # the SDK ships no py.typed

from app.clock import FakeClock, SystemClock, SystemIds
from app.cloud.verda.cloud import VerdaCloud
from app.cloud.verda.transport import Limits
from app.domain.instance.commands import AttemptCreate, RecordCreated
from app.domain.instance.events import CreateAttempted, Found
from app.ledger.ledger import Ledger
from app.reconcile.jobs.job import Bench
from app.reconcile.jobs.observe import Observe
from app.reconcile.jobs.provision import order_for
from app.simulator.config import SimulatorConfig
from app.simulator.http import Simulator
from bench.figures import Figure, interleaved, slower
from bench.history import Histories
from bench.houses import CAUSE, KIND, grow, prepared
from bench.scale import Scale

_WORLD = {
    "limits": {"enabled": False},
    "durations": {"preset": "fast"},
    "billing": {"balance": 1e9},
    "capacity": {"mode": "fixed", "pools": {"FIN-01": {"A100": 10_000}}},
}


def figures(scale: Scale, _histories: Histories) -> Iterator[Figure]:
    """One figure; that nothing is written is asserted."""
    with tempfile.TemporaryDirectory() as scratch, Simulator(SimulatorConfig.model_validate(_WORLD)) as simulator:
        ledger = prepared(Path(scratch, "fleet.db"), fleet=0)
        cloud = _cloud(simulator)
        _populate(ledger, cloud, scale.fleet)
        with simulator.world.lock:
            simulator.world.advance(timedelta(hours=1))
        observe = Observe(bench=Bench(ledger=ledger, cloud=cloud, clock=SystemClock(), ids=SystemIds()), loss_brake=0.2)
        observe.run()
        before = ledger.head.position
        assert sum(one.running_at is not None for one in ledger.books.listed_instances()) == scale.fleet
        alone = VerdaClient("simulator", "simulator", base_url=simulator.base_url)
        pairs = interleaved(observe.run, alone.instances.get, scale.few // 3 + 2)[1:]
        assert ledger.head.position == before, "a look at a fleet that has not changed was written down"
        yield slower(f"a look at {scale.fleet:,} machines", "the SDK's list of them", 1.3, pairs)
        with requests.Session() as session:
            headers = alone.instances._http_client._generate_headers()  # noqa: SLF001 - the SDK's login
            pairs = interleaved(
                observe.run,
                lambda: session.get(f"{simulator.base_url}/instances", headers=headers, timeout=60).json(),
                scale.few + 1,
            )[1:]
        yield slower("the same", "its JSON over a kept connection", 1.3, pairs)
        cloud.close()
        ledger.close()


def _cloud(simulator: Simulator) -> VerdaCloud:
    """A client whose rate limit lets everything pass: its minutes are over as soon as it waits."""
    clock = FakeClock()
    return VerdaCloud(
        base_url=simulator.base_url,
        client_id="simulator",
        client_secret="simulator",  # noqa: S106 - the simulator's
        limits=Limits(timeout=timedelta(hours=10)),
        clock=clock,
        wait=lambda seconds: clock.advance(timedelta(seconds=seconds)),
    )


def _populate(ledger: Ledger, cloud: VerdaCloud, count: int) -> None:
    """Machines for so many instances."""
    spec = ledger.books.groups["fleet"].spec
    assert spec.instance_type == KIND.name
    for name in grow(ledger, "fleet", count):
        attempted = [item.event for item in ledger.execute(AttemptCreate(instance=name), CAUSE)]
        (attempt,) = [event for event in attempted if isinstance(event, CreateAttempted)]
        made = cloud.create_instance(order_for(attempt, spec, ledger.books.installation))
        ledger.execute(RecordCreated(instance=name, instance_id=made, found=Found.ANSWERED), CAUSE)
