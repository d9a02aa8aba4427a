"""The page of deliberate defects is about the defects that there are."""

import inspect
from pathlib import Path
from typing import Any

import pytest

from app.domain import deadlines
from tests.simulation.defects import Change, Defect
from tests.simulation.defects.catalogue import DEFECTS, MistakenDefect, hunt
from tests.simulation.promises import PROMISES
from tests.simulation.run import Theatre

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


def _function(value: Any) -> Any:
    return value.__func__ if isinstance(value, staticmethod | classmethod) else value


@pytest.mark.parametrize("defect", DEFECTS, ids=lambda defect: defect.name)
def test_what_takes_a_functions_place_can_be_called_like_it(defect: Defect) -> None:
    """Else the story breaks off at the call, which looks as if the defect had been noticed."""
    for change in defect.changes():
        there, new = _function(inspect.getattr_static(change.holder, change.name)), _function(change.new)
        if not inspect.isfunction(there):
            assert not callable(there) or inspect.isclass(there)
            continue
        wanted = inspect.signature(there).parameters.values()
        in_turn = [one.name for one in wanted if one.kind is one.POSITIONAL_OR_KEYWORD]
        by_name = {one.name: one.name for one in wanted if one.kind is one.KEYWORD_ONLY}
        inspect.signature(new).bind(*in_turn, **by_name)


def test_a_defect_that_is_itself_a_mistake_does_not_count_as_noticed() -> None:
    """It proves nothing about the stories."""
    mistake = Change(holder=deadlines, name="_overdue", new=lambda instance: instance.no_such_thing)
    with (
        Theatre() as theatre,
        pytest.raises(MistakenDefect, match=r"mistaken: nothing_breaks_off broken by .*TypeError"),
    ):
        hunt(theatre, Defect(name="mistaken", words="", changes=lambda: [mistake]), range(3), 60)


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
