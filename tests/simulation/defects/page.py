"""The page of defects: what was broken on purpose, and which promise of which story noticed."""

from collections.abc import Iterator, Sequence

from tests.simulation.defects.catalogue import Catch
from tests.simulation.promises import PROMISES

COMMAND = "make defects"

_HEAD = f"""<!-- Made by `{COMMAND}`; do not edit. -->

# Deliberate defects

A test that cannot fail proves nothing. Each row is a mistake that somebody could make in this program, made on purpose
for the length of a hunt: stories of the simulation are run with it, seed 0 first, until one breaks a promise. All
{{count}} are noticed, the best hidden one after {{most}} stories. Without a defect the same stories break nothing.

Seeds are those of the day a defect was hunted last: any change of the program makes other stories of them.
"""


def page(catches: Sequence[Catch]) -> str:
    """Everything that was hunted, as a page in Markdown."""
    return "\n".join(_lines(catches))


def _lines(catches: Sequence[Catch]) -> Iterator[str]:
    yield _HEAD.format(count=len(catches), most=max(catch.stories for catch in catches))
    yield "| defect | what it breaks | broken promise that gave it away | seed |"
    yield "|---|---|---|---|"
    for catch in sorted(catches, key=lambda catch: catch.defect.name):
        found = catch.verdict
        promise = f"`{found.invariant}`: {PROMISES[found.invariant]}" if found else "not noticed"
        yield f"| `{catch.defect.name}` | {catch.defect.words} | {promise} | {found.seed if found else ''} |"
    yield ""
