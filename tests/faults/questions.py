"""Everything that the autoscaler asks, asked while something is wrong: is each answer right, and how long does it take.

`python -m tests.faults.questions` prints the times of every fault.
"""

import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import structlog

from app.domain.books import Books
from app.rpc.client import Client
from app.rpc.gen import externalgrpc_pb2 as pb
from app.simulator.acts import ACTS
from app.simulator.presets import PRESETS
from tests.faults.rig import TYPE, Rig, rig, simulator, spec
from tests.rpc.serving import address_of, serving

GROUP: Final = "h100"
HELD: Final = 12
"""Machines that run at the beginning, for the acts to have somebody to act on."""

_BY_HAND: Final = ("token_revoked", "neighbour_storm", "listener_down")
_FIRST: Final = ("scripts_over_page",)
_LAST: Final = ("script_quota", "trash_full_quota", "type_removed", "evict_wave", "balance_low", "balance_zero")
"""What they take does not come back, so the others come before."""
FAULTS: Final = (*_FIRST, *sorted(PRESETS), *_BY_HAND, *sorted(set(ACTS) - {*_FIRST, *_LAST}), *_LAST)
_ARGS: Final[Mapping[str, Mapping[str, Any]]] = {
    "listener_down": {"down_for": 1},
    "list_huge": {"count": 300},
    "evict_wave": {"share": 0.1},
}
_SECONDS = 10
_PATIENCE_S = 100_000
"""In seconds of the ledger's clock, of which ten pass with every round of the jobs."""

_COUNTED: Final = frozenset({"requested", "submitting", "provisioning", "running", "stopped", "failed"})
_ON_THE_WIRE: Final[Mapping[str, int]] = {
    **dict.fromkeys(("running", "stopped"), pb.InstanceStatus.instanceRunning),
    **dict.fromkeys(("requested", "submitting", "provisioning", "failed"), pb.InstanceStatus.instanceCreating),
    "deleting": pb.InstanceStatus.instanceDeleting,
}
"""What the documentation says of every state, apart from the program's own table."""

_Answer = TypeVar("_Answer")


@dataclass(kw_only=True)
class Questioner:
    """Asks, holds the answers against the books, and keeps the time."""

    house: Rig
    client: Client
    times: dict[str, list[float]] = field(default_factory=dict)

    def read(self) -> None:
        """One of every question that changes nothing."""
        served_groups = self._right("NodeGroups", pb.NodeGroupsRequest(), lambda _books: None).nodeGroups
        assert [(group.id, group.minSize, group.maxSize) for group in served_groups] == [(GROUP, 0, 40)]
        self._right("NodeGroupTargetSize", pb.NodeGroupTargetSizeRequest(id=GROUP), _target, lambda got: got.targetSize)
        self._right("NodeGroupNodes", pb.NodeGroupNodesRequest(id=GROUP), _listed, _told)
        ours = next(iter(sorted(_counted(self.house.books))), "none")
        for name in (ours, "foreign"):
            request = pb.NodeGroupForNodeRequest(node=pb.ExternalGrpcNode(providerID=f"verda://{name}", name=name))
            expected = partial(_group_of, name)
            self._right("NodeGroupForNode", request, expected, lambda got: got.nodeGroup.id)
        template = self._asked("NodeGroupTemplateNodeInfo", pb.NodeGroupTemplateNodeInfoRequest(id=GROUP))
        assert len(template.nodeBytes) > 500
        options = self._asked("NodeGroupGetOptions", pb.NodeGroupAutoscalingOptionsRequest(id=GROUP))
        assert not options.HasField("nodeGroupAutoscalingOptions")
        assert self._asked("GPULabel", pb.GPULabelRequest()).label == "verda.com/gpu"
        assert "h100" in self._asked("GetAvailableGPUTypes", pb.GetAvailableGPUTypesRequest()).gpuTypes
        assert self._asked("PricingNodePrice", _an_hour_of_a_node()).price > 0
        self._asked("Refresh", pb.RefreshRequest())

    def write(self) -> None:
        """One node more, which is in the books at once, and given back, which is seen at once."""
        before = _states(self.house.books)
        self._asked("NodeGroupIncreaseSize", pb.NodeGroupIncreaseSizeRequest(id=GROUP, delta=1))
        (name,) = set(_states(self.house.books)) - set(before)
        self.read()
        node = pb.ExternalGrpcNode(providerID=f"verda://{name}", name=name)
        self._asked("NodeGroupDeleteNodes", pb.NodeGroupDeleteNodesRequest(id=GROUP, nodes=[node]))
        assert name not in _counted(self.house.books)

    def _asked(self, method: str, request: object) -> Any:
        began = time.perf_counter()
        answer = self.client.raw(method, request)
        self.times.setdefault(method, []).append(time.perf_counter() - began)
        return answer

    def _right(
        self,
        method: str,
        request: object,
        expected: Callable[[Books], _Answer],
        shown: Callable[[Any], _Answer] = lambda _: None,  # type: ignore[assignment,return-value] # nothing to compare
    ) -> Any:
        """The answer, which is what the books said while it was given; asked again if they changed meanwhile."""
        for _ in range(50):
            books = self.house.books
            answer = self._asked(method, request)
            if self.house.books is books:
                assert shown(answer) == expected(books), method
                return answer
        raise AssertionError("the books never stood still")


def _states(books: Books) -> dict[str, str]:
    return {instance.name: str(instance.state) for instance in books.instances.values()}


def _counted(books: Books) -> set[str]:
    return {name for name, state in _states(books).items() if state in _COUNTED}


def _target(books: Books) -> int:
    return len(_counted(books))


def _group_of(name: str, books: Books) -> str:
    return GROUP if name in _counted(books) else ""


def _listed(books: Books) -> Mapping[str, tuple[int, bool]]:
    states = _states(books)
    return {
        f"verda://{name}": (_ON_THE_WIRE[state], state == "failed")
        for name, state in states.items()
        if state in _ON_THE_WIRE
    }


def _told(answer: pb.NodeGroupNodesResponse) -> Mapping[str, tuple[int, bool]]:
    return {
        instance.id: (instance.status.instanceState, instance.status.HasField("errorInfo"))
        for instance in answer.instances
    }


def _an_hour_of_a_node() -> pb.PricingNodePriceRequest:
    request = pb.PricingNodePriceRequest(
        node=pb.ExternalGrpcNode(name=f"template-node-for-{GROUP}", labels={"node.kubernetes.io/instance-type": TYPE})
    )
    request.startTimestamp.FromSeconds(0)
    request.endTimestamp.FromSeconds(3600)
    return request


@dataclass(kw_only=True)
class Work:
    """Every job of the provider, over and over on a thread of its own, so that the fault is being met all the time."""

    house: Rig
    failure: BaseException | None = None
    _enough: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def going_on(self) -> Iterator[None]:
        """While the block lasts. Raises: what a job broke off with."""
        thread = threading.Thread(target=self._go_on)
        thread.start()
        try:
            yield
        finally:
            self._enough.set()
            thread.join()
        if self.failure is not None:
            raise self.failure

    def _go_on(self) -> None:
        house = self.house
        try:
            while not self._enough.is_set():
                for job in (house.observe, house.provision, house.terminate, house.deadlines, house.catalog):
                    job.run()
                house.clock.advance(_SECONDS)
                with suppress(OSError):  # the control plane listens where the API does
                    house.control("POST", "/clock/advance", {"seconds": _SECONDS})
        except BaseException as failure:  # noqa: BLE001 - told on the thread of the test
            self.failure = failure


@contextmanager
def provider(directory: Path) -> Iterator[tuple[Rig, Client]]:
    """A provider that serves over a simulated API, with a dozen spot machines, impatient with the cloud."""
    with simulator() as sim:
        house = rig(directory, sim, spec(GROUP, max_size=40, contracts=("spot",)))
        house.running(HELD)
        house.lose_patience(0.5)
        with (
            serving(house.ledger, clock=house.clock) as server,
            Client(address_of(server), _PATIENCE_S) as client,
        ):
            yield house, client
        house.shut_down()


def strike(house: Rig, name: str) -> None:
    """Let the fault be in force until all are removed, or the act be done."""
    lasting = {"times": -1} if name in PRESETS else {}
    house.preset(name, **lasting, **_ARGS.get(name, {}))


def calm_down(house: Rig) -> None:
    """Remove every fault, once the control plane can be reached."""
    for _ in range(200):
        try:
            house.control("DELETE", "/faults")
        except OSError:
            threading.Event().wait(0.1)
        else:
            return
    raise AssertionError("the control plane does not come back")


Times = Mapping[str, Sequence[float]]
"""Method → seconds of each of its answers."""


def during(
    house: Rig, client: Client, fault: str | None, rounds: int, enough: Callable[[Times], bool] = lambda _: False
) -> Times:
    """The times of the answers while a fault is in force; a round asks everything, and there may be fewer of them."""
    questioner = Questioner(house=house, client=client)
    if fault is not None:
        strike(house, fault)
    for _ in range(rounds):
        questioner.write()
        questioner.read()
        if enough(questioner.times):
            break
    calm_down(house)
    return questioner.times


def _row(name: str, times: Times) -> str:
    every = sorted(1000 * seconds for each in times.values() for seconds in each)
    p99 = statistics.quantiles(every, n=100)[98]
    return f"{name:32} {statistics.median(every):8.1f} {p99:8.1f} {every[-1]:8.1f}"


def main() -> None:
    """A line for no fault and for each: median, 99th percentile and longest answer in milliseconds."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    print(f"{'while':32} {'median':>8} {'p99':>8} {'longest':>8}")  # noqa: T201 - a command line program
    with (
        tempfile.TemporaryDirectory() as directory,
        provider(Path(directory)) as (house, client),
        Work(house=house).going_on(),
    ):
        for fault in (None, *FAULTS):
            print(_row(fault or "nothing is wrong", during(house, client, fault, rounds=20)), flush=True)  # noqa: T201


if __name__ == "__main__":
    main()
