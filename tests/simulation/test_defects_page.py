"""The page of deliberate defects is about the defects that there are."""

from pathlib import Path

from tests.simulation.defects.catalogue import DEFECTS
from tests.simulation.promises import PROMISES

_PAGE = Path(__file__).parents[2] / "docs" / "simulation-defects.md"
_MOST_STORIES = 500


def test_every_defect_is_on_the_page_and_was_noticed() -> None:
    """`make defects` makes it anew."""
    lines = _PAGE.read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    assert [(name.strip("`"), words) for name, words, _, _ in rows] == sorted(
        (defect.name, defect.words) for defect in DEFECTS
    )
    for _, _, promise, seed in rows:
        name, _, words = promise.partition(": ")
        assert PROMISES[name.strip("`")] == words
        assert 0 <= int(seed) < _MOST_STORIES
