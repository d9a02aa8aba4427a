"""Waiting for something to come about, with a bound."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.01


class NotInTimeError(AssertionError):
    """It did not come about."""


class Patience:
    """How long `until` waits unless told otherwise; less against a provider that is known to be faulty."""

    seconds = 30.0


def until(what: str, condition: Callable[[], T], timeout_s: float | None = None) -> T:
    """Ask again and again until the answer is truthy, and return it.

    Raises:
        NotInTimeError: it was not within the time.
    """
    patience_s = Patience.seconds if timeout_s is None else timeout_s
    deadline = time.monotonic() + patience_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise NotInTimeError(f"not within {patience_s:.0f} s: {what}")
        threading.Event().wait(_POLL_S)
    return answer
