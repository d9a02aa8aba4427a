"""A slice of the stories that `python -m tests.simulation` runs by the thousand, and whether it would notice mistakes.

In processes of their own: stories are the same everywhere only with PYTHONHASHSEED=0.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.simulation.defects.catalogue import DEFECTS

pytestmark = pytest.mark.timeout(600)

_ROOT = Path(__file__).parents[2]
_SEEDS = 200
_SEEDS_AT_ONCE = 20
_TURNS = 4
_QUICKLY_NOTICED = (
    "order-without-intent",
    "take-5xx-for-refusals",
    "trust-absence",
    "adopt-by-name",
    "forget-the-system-disk",
    "decrement-twice",
    "publish-before-the-commit",
)


def _simulation(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", "tests.simulation", *arguments]
    return subprocess.run(command, cwd=_ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("first", range(0, _SEEDS, _SEEDS_AT_ONCE))
def test_every_invariant_holds(first: int) -> None:
    """Trouble, crashes and all; a failure names the command that tells the story."""
    ran = _simulation("--first", str(first), "--seeds", str(_SEEDS_AT_ONCE), "--keep-going")
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_a_seed_is_one_story_everywhere() -> None:
    """The same log to the last byte of its hash chain, whichever process runs it."""
    once, again = _simulation("--seed", "5"), _simulation("--seed", "5")
    assert once.returncode == 0, once.stdout + once.stderr
    assert once.stdout == again.stdout
    assert "the log ends with" in once.stdout


@pytest.mark.parametrize("turn", range(_TURNS))
def test_no_defect_is_itself_a_mistake(turn: int) -> None:
    """Each fits the program as it is now, for one story at least, whether that notices it or not."""
    names = [defect.name for defect in DEFECTS][turn::_TURNS]
    ran = _simulation("--seeds", "1", "--defects", *names)
    told = [line.partition(":")[0] for line in ran.stderr.splitlines()]
    assert told == names, ran.stderr


def test_mistakes_are_noticed() -> None:
    """Some deliberate defects; all of them take a quarter of an hour."""
    ran = _simulation("--seeds", "12", "--defects", *_QUICKLY_NOTICED)
    assert ran.returncode == 0, ran.stdout + ran.stderr
