"""A little of every benchmark. How fast a shared machine is says nothing; ratios that are far off say something."""

import json
import subprocess
import sys
from pathlib import Path

from bench.__main__ import PARTS, misses
from bench.figures import Figure, Sense, rate, slower
from tests.e2e.harness import ROOT

_GROSS = "10"
_LONGEST_S = 300


def test_no_figure_is_missed_grossly(tmp_path: Path) -> None:
    """All parts but the one that needs minutes of real time; percentiles of so few rounds are left out by the tool."""
    parts = [name for name in PARTS if name != "orders"]
    report = tmp_path / "figures.json"
    done = subprocess.run(
        [sys.executable, "-m", "bench", "--quick", "--gross", _GROSS, "--json", str(report), *parts],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=_LONGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(report.read_text())
    assert len(figures) >= 20
    assert all(figure["ours"] > 0 and figure["reference_value"] > 0 for figure in figures)


def test_a_ratio_is_that_of_the_medians() -> None:
    """Worked out by hand: three rounds, ours 2, 4 and 9 seconds, the reference's 1, 2 and 3."""
    pairs = [(2.0, 1.0), (9.0, 3.0), (4.0, 2.0)]
    time = slower("a", "b", 1.5, pairs)
    assert (time.ratio, time.ours, time.reference_value, time.is_met) == (2.0, 4000.0, 2000.0, False)
    speed = rate("a", "b", 0.5, pairs)
    assert (speed.ratio, speed.ours, speed.reference_value, speed.is_met) == (0.5, 4000.0, 2000.0, True)


def figure(ratio: float, sense: Sense, *, is_tail: bool = False) -> Figure:
    """With the goal 1."""
    return Figure(
        name="a",
        reference="b",
        sense=sense,
        goal=1.0,
        ratio=ratio,
        low=ratio,
        high=ratio,
        ours=ratio,
        reference_value=1.0,
        unit="s",
        rounds=1,
        is_tail=is_tail,
    )


def test_only_what_is_far_off_is_a_gross_miss() -> None:
    """On the bad side of the goal, by more than the factor; of a percentile nothing is gross."""
    assert [misses(figure(ratio, Sense.AT_MOST), 2.0) for ratio in (0.1, 1.9, 2.1)] == [False, False, True]
    assert [misses(figure(ratio, Sense.AT_LEAST), 2.0) for ratio in (9.0, 0.6, 0.4)] == [False, False, True]
    assert not misses(figure(9.0, Sense.AT_MOST, is_tail=True), 2.0)
    assert misses(figure(1.1, Sense.AT_MOST, is_tail=True), 1.0)
