"""Writers that wait are served together: one commit, each with its own outcome."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from app.clock import FakeClock
from app.domain.decide import Command
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes
from app.errors import DeadlinePassed, InvalidRequest, RuleViolation, StoreBusy, StoreUnavailable
from app.ledger.ledger import Ledger
from tests.store.harness import CA, one_more

from .flaky import Flaky

LONGEST_WAIT_S = 20


@dataclass
class Crowd:
    """Callers whose commands wait in line behind one whose commit is held up."""

    ledger: Ledger
    store: Flaky
    pool: ThreadPoolExecutor
    commits: list[int] = field(default_factory=list)

    @contextmanager
    def waiting(self, *commands: Command, not_after: float | None = None) -> Iterator[list[Future[object]]]:
        """Let the commands wait, in this order; they are carried out when the block is left."""
        self.store.gate.clear()
        self.store.appending.clear()
        first = self.pool.submit(self.ledger.execute, one_more("gpu-00000000"), CA)
        assert self.store.appending.wait(LONGEST_WAIT_S)
        futures: list[Future[object]] = []
        for command in commands:
            futures.append(self.pool.submit(self.ledger.execute, command, CA, not_after))
            self._until(len(futures))
        try:
            yield futures
        finally:
            self.store.gate.set()
        first.result(LONGEST_WAIT_S)
        for future in futures:
            future.exception(LONGEST_WAIT_S)

    def _until(self, count: int) -> None:
        nap = threading.Event()
        for _ in range(LONGEST_WAIT_S * 1000):
            if len(self.ledger._line._waiting) == count:
                return
            nap.wait(0.001)
        raise AssertionError("it does not wait")


@pytest.fixture
def crowd(ledger: Ledger, store: Flaky) -> Iterator[Crowd]:
    """Callers, and the sizes of the batches that became durable."""
    with ThreadPoolExecutor(10) as pool:
        crowd = Crowd(ledger, store, pool)
        ledger.subscribe(lambda recorded: crowd.commits.append(len(recorded)))
        yield crowd
        store.gate.set()


def outcome(future: "Future[object]") -> str:
    """How an execution ended."""
    error = future.exception(LONGEST_WAIT_S)
    return "done" if error is None else type(error).__name__


def test_whoever_waits_shares_one_commit(crowd: Crowd) -> None:
    """Two wait; each is told of its own facts, and they became durable together."""
    with crowd.waiting(one_more("gpu-aaaaaaaa"), one_more("gpu-bbbbbbbb")) as (a, b):
        pass
    assert crowd.commits == [2, 4]
    assert crowd.ledger.books.target_size("gpu") == 3
    wished = [[item.event.model_dump()["instances"] for item in each.result()[:1]] for each in (a, b)]  # type: ignore[index]
    assert wished == [[("gpu-aaaaaaaa",)], [("gpu-bbbbbbbb",)]]


def test_each_decides_on_what_those_before_it_left(crowd: Crowd) -> None:
    """The maximum is three; the fourth is refused, and there is room again for the sixth."""
    wishes = [one_more(f"gpu-{letter * 8}") for letter in "abcd"]
    with crowd.waiting(*wishes[:3], DecreaseTargetSize(node_group="gpu", delta=-1), wishes[3]) as futures:
        pass
    assert [outcome(future) for future in futures] == ["done", "done", "RuleViolation", "done", "done"]
    assert crowd.ledger.books.target_size("gpu") == 3


def test_a_refusal_that_is_no_fact_costs_the_others_nothing(crowd: Crowd) -> None:
    """It is its caller's alone."""
    stranger = DeleteNodes(node_group="gpu", instances=("gpu-zzzzzzzz",))
    with crowd.waiting(one_more("gpu-aaaaaaaa"), stranger, one_more("gpu-bbbbbbbb")) as futures:
        pass
    assert [outcome(future) for future in futures] == ["done", InvalidRequest.__name__, "done"]
    assert crowd.commits == [2, 4]


def test_a_commit_that_fails_for_all_is_tried_for_each(crowd: Crowd, store: Flaky) -> None:
    """The disk was full for a moment: nothing that was decided meanwhile counts, everything is decided anew."""
    wishes = [one_more(f"gpu-{letter * 8}") for letter in "abc"]
    with crowd.waiting(*wishes) as futures:
        _fail_the_second_commit(store)
    assert [outcome(future) for future in futures] == ["done", "done", RuleViolation.__name__]
    assert crowd.ledger.books.target_size("gpu") == 3
    assert crowd.ledger.trouble is None


def test_a_lock_is_waited_for_once_for_all(crowd: Crowd, store: Flaky) -> None:
    """Ten deletions at once would otherwise wait ten times as long as one, one after the other."""
    with crowd.waiting(one_more("gpu-aaaaaaaa"), one_more("gpu-bbbbbbbb")) as futures:
        store.busy = True
    assert [outcome(future) for future in futures] == [StoreBusy.__name__] * 2
    assert store.found_busy == 1
    assert crowd.ledger.books.target_size("gpu") == 1


def test_a_commit_of_which_nobody_knows_fails_for_all(crowd: Crowd, store: Flaky) -> None:
    """The disk does not even tell whether it was written; the next command asks, and finds it was."""
    with crowd.waiting(one_more("gpu-aaaaaaaa"), one_more("gpu-bbbbbbbb")) as futures:
        _fail_the_second_commit(store, unheard=True)
        store.blind = True
    assert [outcome(future) for future in futures] == [StoreUnavailable.__name__] * 2
    store.blind = False
    crowd.ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
    assert crowd.ledger.books.target_size("gpu") == 3 - 1
    assert crowd.commits == [2, 4, 2]


def test_who_cannot_wait_leaves_the_line(crowd: Crowd, clock: FakeClock) -> None:
    """Its command is never carried out."""
    with crowd.waiting(one_more("gpu-aaaaaaaa")) as (patient,), pytest.raises(DeadlinePassed):
        crowd.ledger.execute(one_more("gpu-bbbbbbbb"), CA, not_after=clock.monotonic())
    assert outcome(patient) == "done"
    assert "gpu-bbbbbbbb" not in crowd.ledger.books.instances


def _fail_the_second_commit(store: Flaky, *, unheard: bool = False) -> None:
    """The first one is at the gate."""
    passed = store.append
    calls: list[int] = []

    def append(*arguments: object) -> None:
        calls.append(1)
        if len(calls) == 1:
            store.lost, store.unheard = not unheard, unheard
        passed(*arguments)  # type: ignore[arg-type]

    replace: Callable[..., None] = append
    store.append = replace  # type: ignore[method-assign]
