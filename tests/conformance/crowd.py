"""A crowd on one node group, every method at random: `python -m tests.conformance.crowd [--clients N] [--seconds S]`.

Ends with a table of every method's calls and slowest answer, and with 1 if any promise was broken.
"""

import argparse
import random
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import grpc

from tests.protocol.clients import GENERATIONS, Client, compile_client

from .autoscaler import LIVE, Autoscaler
from .cloud import Cloud
from .provider import Stage
from .settings import KINDS, provider_settings
from .until import until

GROUP: Final = "gpu"
LIMIT_S: Final = 1.0
"""No answer may take longer."""

_BREATH_S: Final = 3.0

_OK = grpc.StatusCode.OK
_FULL = frozenset({grpc.StatusCode.OUT_OF_RANGE, grpc.StatusCode.FAILED_PRECONDITION})
_ANSWERS: Final[Mapping[str, frozenset[grpc.StatusCode]]] = {
    "NodeGroupIncreaseSize": frozenset({_OK, *_FULL}),
    "NodeGroupDecreaseTargetSize": frozenset({_OK, grpc.StatusCode.FAILED_PRECONDITION}),
}
"""What may be answered beside OK: the group is full, or everything wished for has been ordered already."""


@dataclass(slots=True)
class Report:
    """What a crowd saw: answers by (method, status), the slowest of each method in seconds, broken promises."""

    answers: Counter[tuple[str, grpc.StatusCode]] = field(default_factory=Counter)
    slowest_s: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    broken: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def note(self, method: str, status: grpc.StatusCode, took_s: float) -> None:
        """One answer."""
        with self.lock:
            self.answers[method, status] += 1
            self.slowest_s[method] = max(self.slowest_s[method], took_s)
            if status not in _ANSWERS.get(method, {_OK}):
                self.broken.append(f"{method} is answered with {status.name}")

    def table(self) -> str:
        """Calls, refusals and the slowest answer of each method."""
        lines = [f"{'method':<30} {'calls':>8} {'refused':>8} {'slowest':>9}"]
        for method, slowest_s in sorted(self.slowest_s.items()):
            calls = {status: count for (name, status), count in self.answers.items() if name == method}
            total = sum(calls.values())
            lines.append(f"{method:<30} {total:>8} {total - calls.get(_OK, 0):>8} {slowest_s * 1000:>6.0f} ms")
        return "\n".join(lines)


class Visitor:
    """One client of a generation that asks and changes whatever comes to its mind."""

    def __init__(self, ca: Autoscaler, report: Report, seed: int) -> None:
        self._ca = ca
        self._report = report
        self._random = random.Random(seed)  # noqa: S311 - reproducible on purpose
        self._reads = self._ca.harmless(GROUP)
        for write in ("NodeGroupIncreaseSize", "NodeGroupDecreaseTargetSize", "NodeGroupDeleteNodes"):
            del self._reads[write]

    def stay(self, until_s: float) -> None:
        """Ask until then, by the monotonic clock."""
        while time.monotonic() < until_s:
            self._do_something()

    def _do_something(self) -> None:
        match self._random.randrange(10):
            case 0:
                self._ask("NodeGroupIncreaseSize", id=GROUP, delta=self._random.randint(1, 3))
            case 1:
                self._ask("NodeGroupDecreaseTargetSize", id=GROUP, delta=-1)
            case 2:
                self._give_one_back()
            case _:
                method = self._random.choice(list(self._reads))
                self._timed(method, self._reads[method])

    def _give_one_back(self) -> None:
        if live := self._ca.live(GROUP):
            self._ask("NodeGroupDeleteNodes", id=GROUP, nodes=[self._ca.fake(self._random.choice(live))])

    def _ask(self, method: str, **values: Any) -> None:
        self._timed(method, self._ca.request(method, **values).SerializeToString())

    def _timed(self, method: str, request: bytes) -> None:
        began = time.monotonic()
        status = self._ca.status(method, request)
        self._report.note(method, status, time.monotonic() - began)


def crowd(messages: Mapping[str, Client], stage: Stage, *, clients: int, seconds: float, seed: int = 0) -> Report:
    """Let so many clients of all generations at the provider's group, and see that all is well then and afterwards.

    They hold their breath together now and then: sizes can be compared only while nobody changes them.
    """
    report = Report()
    letters = [GENERATIONS[number % len(GENERATIONS)] for number in range(clients)]
    with ExitStack() as channels:
        onlooker = channels.enter_context(Autoscaler(messages["E"], stage.address))
        autoscalers = [channels.enter_context(Autoscaler(messages[letter], stage.address)) for letter in letters]
        visitors = [Visitor(ca, report, seed + number) for number, ca in enumerate(autoscalers)]
        end = time.monotonic() + seconds
        while (now := time.monotonic()) < end:
            breath = min(now + _BREATH_S, end)
            _together([partial(visitor.stay, breath) for visitor in visitors])
            _compare(onlooker, report)
        _leave_nothing(onlooker, stage.cloud, report)
    return report


def _compare(ca: Autoscaler, report: Report) -> None:
    target, states = ca.sizes(GROUP)
    live = sum(state in LIVE for state in states.values())
    if target != live or not 0 <= target <= KINDS[GROUP]["max_size"]:
        report.broken.append(f"the target size is {target}, and {live} live")


def _together(jobs: Sequence[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=job) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _leave_nothing(ca: Autoscaler, cloud: Cloud, report: Report) -> None:
    """Afterwards everything can be given back, and nothing was ordered twice."""
    ca.delete(GROUP, [ca.fake(each) for each in ca.live(GROUP)])
    until("the group is empty", lambda: ca.sizes(GROUP) == (0, {}) and not cloud.alive(GROUP), 300)
    ordered = Counter(machine["hostname"] for machine in cloud.machines(GROUP))
    report.broken += [f"{hostname} was ordered {count} times" for hostname, count in ordered.items() if count > 1]


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every promise was kept, and every answer came in time."""
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.crowd", description=__doc__)
    parser.add_argument("--clients", type=int, default=50, help="default: 50, a fifth of each generation")
    parser.add_argument("--seconds", type=float, default=30.0, help="default: 30")
    parser.add_argument("--seed", type=int, default=0, help="what comes to the clients' minds (default: 0)")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="crowd-") as scratch:
        directory = Path(scratch)
        messages = {letter: compile_client(letter, directory / letter) for letter in GENERATIONS}
        with Stage(directory, provider_settings({GROUP: KINDS[GROUP]})) as stage:
            report = crowd(messages, stage, clients=given.clients, seconds=given.seconds, seed=given.seed)
    report.broken += [
        f"{method} was answered after {slowest_s:.2f} s"
        for method, slowest_s in report.slowest_s.items()
        if slowest_s > LIMIT_S
    ]
    sys.stdout.write(f"{report.table()}\n{len(report.broken)} promises broken\n")
    for words, count in Counter(report.broken).most_common(20):
        sys.stdout.write(f"{count} x {words}\n")
    return 1 if report.broken else 0


if __name__ == "__main__":
    sys.exit(main())
