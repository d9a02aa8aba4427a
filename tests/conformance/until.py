"""Waiting for something to come about, with a bound."""

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

_POLL_S = 0.01


class NotInTimeError(AssertionError):
    """It did not come about."""


def until(what: str, condition: Callable[[], T], timeout_s: float = 30.0) -> T:
    """Ask again and again until the answer is truthy, and return it.

    Raises:
        NotInTimeError: it was not within the time.
    """
    deadline = time.monotonic() + timeout_s
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise NotInTimeError(f"not within {timeout_s:.0f} s: {what}")
        threading.Event().wait(_POLL_S)
    return answer
