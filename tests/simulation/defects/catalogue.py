"""All defects, and which seed notices each."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from tests.simulation.defects import Defect
from tests.simulation.defects.answers import ANSWERS
from tests.simulation.defects.books import BOOKS
from tests.simulation.defects.deadlines import DEADLINES
from tests.simulation.defects.deleting import DELETING
from tests.simulation.defects.looking import LOOKING
from tests.simulation.defects.orders import ORDERS
from tests.simulation.run import Theatre, Verdict, naming

DEFECTS: Sequence[Defect] = (*ORDERS, *LOOKING, *DELETING, *DEADLINES, *BOOKS, *ANSWERS)


_MISTAKE = re.compile(r"\b(TypeError|AttributeError|NameError)\b")
"""What does not fit the program any more breaks off like this at its first call."""


class MistakenDefect(RuntimeError):
    """A story broke off because the code of the defect is wrong, which says nothing about the story."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Catch:
    """Whether and how a defect was noticed; `verdict` None if no story did."""

    defect: Defect
    verdict: Verdict | None
    stories: int


def chosen(names: Sequence[str]) -> Sequence[Defect]:
    """The defects of these names, all of them if none is named. Raises: KeyError."""
    by_name = {defect.name: defect for defect in DEFECTS}
    return [by_name[name] for name in names] if names else DEFECTS


def hunt(theatre: Theatre, defect: Defect, seeds: range, length: int) -> Catch:
    """Run stories with a defect until one breaks an invariant. Raises: MistakenDefect."""
    with defect.made(), naming(f"with the defect {defect.name}"):
        for count, seed in enumerate(seeds, start=1):
            verdict = theatre.run(seed, length)
            if verdict.invariant == "nothing_breaks_off" and _MISTAKE.search(verdict.words):
                raise MistakenDefect(f"{defect.name}: {verdict.invariant} broken by {verdict.words}")
            if not verdict.holds:
                return Catch(defect=defect, verdict=verdict, stories=count)
    return Catch(defect=defect, verdict=None, stories=len(seeds))
