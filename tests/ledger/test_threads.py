"""Many callers at once: each decides on what the ones before it left, and everybody hears of it in one order."""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from app.domain.envelope import Event, Recorded
from app.domain.nodegroup.commands import DecreaseTargetSize
from app.errors import RuleViolation
from app.ledger.ledger import Ledger
from tests.store.harness import CA, one_more, types_of

from .flaky import Flaky

LONGEST_WAIT_S = 20


def test_of_eight_callers_at_once_exactly_three_fit_below_the_maximum(ledger: Ledger) -> None:
    """F15: two hundred times; the other five get the same clear refusal."""
    barrier = threading.Barrier(8)

    def ask(name: str) -> str:
        barrier.wait(LONGEST_WAIT_S)
        try:
            ledger.execute(one_more(name), CA)
        except RuleViolation as refusal:
            return refusal.message
        return "accepted"

    with ThreadPoolExecutor(8) as threads:
        for number in range(200):
            answers = sorted(threads.map(ask, [f"gpu-{number:04d}{caller:04d}" for caller in range(8)]))
            assert answers == ["3 + 1 is more than max_size 3 of gpu"] * 5 + ["accepted"] * 3
            ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-3), CA)
    assert ledger.books.target_size("gpu") == 0


def test_listeners_hear_every_batch_in_the_order_of_the_log(ledger: Ledger) -> None:
    """Eight callers, and a listener that takes its time with every other batch."""
    heard: list[int] = []
    pause = threading.Event()

    def listen(recorded: Sequence[Recorded[Event]]) -> None:
        if len(heard) % 3 == 0:
            pause.wait(0.002)
        heard.extend(item.position for item in recorded)

    ledger.subscribe(listen)

    def ask(caller: int) -> None:
        for number in range(10):
            try:
                ledger.execute(one_more(f"gpu-{caller:04d}{number:04d}"), CA)
            except RuleViolation:
                continue

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(ask, range(8)))
    assert heard == list(range(7, ledger.books.position + 1))
    assert len(heard) == 3 * 2 + 77


def test_a_batch_is_told_only_after_those_before_it_were(ledger: Ledger) -> None:
    """The first listener is still being told the first batch when the second is committed."""
    heard: list[tuple[str, int]] = []
    second_is_committed = threading.Event()

    def slow(recorded: Sequence[Recorded[Event]]) -> None:
        if recorded[0].position == 7:
            assert second_is_committed.wait(LONGEST_WAIT_S)
        heard.append(("slow", recorded[0].position))

    ledger.subscribe(slow)
    ledger.subscribe(lambda recorded: heard.append(("quick", recorded[0].position)))

    def ask(name: str) -> None:
        ledger.execute(one_more(name), CA)

    first = threading.Thread(target=ask, args=("gpu-aaaaaaaa",))
    first.start()
    _until(lambda: ledger.books.position == 8)
    second = threading.Thread(target=ask, args=("gpu-bbbbbbbb",))
    second.start()
    _until(lambda: ledger.books.position == 10)
    second_is_committed.set()
    first.join(LONGEST_WAIT_S)
    second.join(LONGEST_WAIT_S)
    assert heard == [("slow", 7), ("quick", 7), ("slow", 9), ("quick", 9)]


def _until(condition: object) -> None:
    assert callable(condition)
    nap = threading.Event()
    for _ in range(LONGEST_WAIT_S * 1000):
        if condition():
            return
        nap.wait(0.001)
    raise AssertionError("it did not happen")


def test_a_listener_sees_books_that_hold_what_it_is_told(ledger: Ledger) -> None:
    """It need not fold anything itself."""
    sizes: list[int] = []
    ledger.subscribe(lambda _: sizes.append(ledger.books.target_size("gpu")))
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    ledger.execute(one_more("gpu-bbbbbbbb"), CA)
    assert sizes == [1, 2]


def test_a_listener_may_execute_a_command(ledger: Ledger) -> None:
    """What that records is told after what it is being told, to everybody."""
    heard: list[tuple[str, list[str]]] = []

    def react(recorded: Sequence[Recorded[Event]]) -> None:
        heard.append(("first", types_of(recorded)[:1]))
        if len(heard) == 1:
            ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)

    ledger.subscribe(react)
    ledger.subscribe(lambda recorded: heard.append(("second", types_of(recorded)[:1])))
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    assert heard == [
        ("first", ["nodegroup.scale-up-requested"]),
        ("second", ["nodegroup.scale-up-requested"]),
        ("first", ["nodegroup.target-size-decreased"]),
        ("second", ["nodegroup.target-size-decreased"]),
    ]


def test_readers_never_wait_for_a_writer(ledger: Ledger, store: Flaky) -> None:
    """The books are a value: whoever took them keeps them, and taking them needs no lock."""
    store.gate.clear()
    writer = threading.Thread(target=ledger.execute, args=(one_more("gpu-aaaaaaaa"), CA))
    writer.start()
    try:
        assert store.appending.wait(LONGEST_WAIT_S)
        before = ledger.books
        assert before.target_size("gpu") == 0
    finally:
        store.gate.set()
        writer.join(LONGEST_WAIT_S)
    assert before.target_size("gpu") == 0
    assert ledger.books.target_size("gpu") == 1


def test_closing_waits_for_the_command_under_way(ledger: Ledger, store: Flaky) -> None:
    """Its caller is told OK, so it must be on disk."""
    store.gate.clear()
    accepted: list[int] = []

    def ask() -> None:
        accepted.append(len(ledger.execute(one_more("gpu-aaaaaaaa"), CA)))

    writer, closer = threading.Thread(target=ask), threading.Thread(target=ledger.close)
    writer.start()
    assert store.appending.wait(LONGEST_WAIT_S)
    closer.start()
    closer.join(0.05)
    assert closer.is_alive()
    store.gate.set()
    writer.join(LONGEST_WAIT_S)
    closer.join(LONGEST_WAIT_S)
    assert accepted == [2]


def test_ended_instances_are_found_from_any_thread_beside_a_writer(ledger: Ledger) -> None:
    """Answers to calls are given on the threads of the RPC server."""
    ledger.execute(one_more("gpu-aaaaaaaa"), CA)
    ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
    done = threading.Event()

    def write() -> None:
        number = 0
        while not done.is_set():
            ledger.execute(one_more(f"gpu-{number:08d}"), CA)
            ledger.execute(DecreaseTargetSize(node_group="gpu", delta=-1), CA)
            number += 1

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with ThreadPoolExecutor(4) as threads:
            found = list(threads.map(lambda _: ledger.find_ended("gpu-aaaaaaaa"), range(100)))
    finally:
        done.set()
        writer.join(LONGEST_WAIT_S)
    assert {instance.state.value for instance in found if instance} == {"cancelled"}
    assert len(found) == 100
