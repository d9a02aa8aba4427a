"""Signals to the server's process."""

import signal
import subprocess
import sys

import pytest

from tests.e2e.harness import ROOT

_SERVER = """
import ctypes
import time
from app.cli.serve import stop_on_signals
stop = stop_on_signals()
print("serving", flush=True)
stop.wait()
print("stopping", flush=True)
{hang}
"""
"""The server's own handling, and a stop that hangs."""

_DEADLOCK = "m = ctypes.create_string_buffer(64); lock = ctypes.CDLL(None).pthread_mutex_lock; lock(m); lock(m)"
"""Somewhere in C, where no signal brings the main thread back to Python."""


@pytest.mark.parametrize("hang", ["time.sleep(600)", _DEADLOCK], ids=["in Python", "in C"])
def test_a_second_signal_ends_it_at_once(hang: str) -> None:
    """F72: who does not want to wait for the calls under way says so twice; the log survives a kill anyway."""
    server = _SERVER.format(hang=hang)
    with subprocess.Popen([sys.executable, "-c", server], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "serving\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "stopping\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 128 + signal.SIGTERM
        finally:
            process.kill()
