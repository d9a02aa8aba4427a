"""Signals to the server's process."""

import signal
import subprocess
import sys

from tests.e2e.harness import ROOT

_SERVER = """
import time
from app.cli.serve import stop_on_signals
stop = stop_on_signals()
print("serving", flush=True)
stop.wait()
print("stopping", flush=True)
time.sleep(600)
"""
"""The server's own handling, and a stop that hangs."""


def test_a_second_signal_ends_it_at_once() -> None:
    """F72: who does not want to wait for the calls under way says so twice; the log survives a kill anyway."""
    with subprocess.Popen([sys.executable, "-c", _SERVER], cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "serving\n"
            process.send_signal(signal.SIGTERM)
            assert process.stdout.readline() == "stopping\n"
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 128 + signal.SIGTERM
        finally:
            process.kill()
