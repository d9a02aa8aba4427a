"""Every fault in turn, and everything the autoscaler asks meanwhile."""

from pathlib import Path

from .questions import FAULTS, Times, Work, during, provider

PROMISE_S = 0.1
MOST_ROUNDS = 6


def slow(times: Times) -> list[str]:
    """Methods without one answer as quick as is promised; the machine may be busy now and then."""
    return [method for method, seconds in times.items() if min(seconds) >= PROMISE_S]


def test_answers_are_right_and_quick_during_every_fault(tmp_path: Path) -> None:
    """While the jobs meet the fault, over and over, on another thread."""
    with provider(tmp_path) as (house, client), Work(house=house).going_on():
        found = {
            fault: slow(during(house, client, fault, MOST_ROUNDS, enough=lambda times: not slow(times)))
            for fault in FAULTS
        }
    assert {fault: methods for fault, methods in found.items() if methods} == {}
