"""Torture the provider: `python -m tests.torture --kills 1000`; a run of one seed: `--seed 3`."""

import argparse
import signal
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from tests.torture.run import Moment, run

_KILLS_A_RUN = 25


def _say(words: str) -> None:
    print(words, flush=True)  # noqa: T201 - a command line program


def _main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.torture", description="Kill the provider again and again.")
    parser.add_argument("--kills", type=int, default=100, help="how many kills in all")
    parser.add_argument("--a-run", type=int, default=_KILLS_A_RUN, help="kills of one installation")
    parser.add_argument("--seed", type=int, default=1, help="of the first run; the next ones count on")
    wanted = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("told to end"))  # with every process that was started
    began, seed, done, bad = time.monotonic(), wanted.seed, 0, 0
    moments: Counter[Moment] = Counter()
    while done < wanted.kills:
        directory = Path(tempfile.mkdtemp(prefix=f"torture-{seed}-"))
        outcome = run(seed, min(wanted.a_run, wanted.kills - done), directory)
        done, moments = done + outcome.kills.total(), moments + outcome.kills
        bad += bool(outcome.findings)
        for words in outcome.findings:
            _say(f"seed {seed}: BROKEN: {words} (kept in {directory})")
        _say(
            f"seed {seed}: {outcome.kills.total()} kills, {outcome.calls} calls, {outcome.promised} nodes promised, "
            f"{outcome.given_back} given back, {outcome.machines} machines made, {outcome.twins} names with two "
            f"machines for at most {outcome.longest_twins_s:.1f} s, {outcome.disks_left} disks left to sweep, "
            f"{outcome.copies} copies; {done} kills in {time.monotonic() - began:.0f} s"
        )
        seed += 1
    _say(", ".join(f"{count} {moment}" for moment, count in moments.items()) + f"; {bad} runs broke a promise")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(_main())
