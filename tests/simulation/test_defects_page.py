"""The page of deliberate defects is about the defects that there are."""

from pathlib import Path

import pytest

from tests.simulation.defects import Defect
from tests.simulation.defects.catalogue import DEFECTS
from tests.simulation.promises import PROMISES

_PAGE = Path(__file__).parents[2] / "docs" / "simulation-defects.md"
_MOST_STORIES = 500


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_every_defect_can_be_made(defect: Defect) -> None:
    """What it changes is still there to be changed."""
    places = [(change.holder, change.name) for change in defect.changes()]
    before = [getattr(*place) for place in places]
    with defect.made():
        assert all(getattr(*place) is not was for place, was in zip(places, before, strict=True))
    assert [getattr(*place) for place in places] == before


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
