"""Stories in words."""

from app.domain.cloud import CatalogueChanged
from tests.simulation.run import Verdict
from tests.simulation.stage import Facts

COMMAND = "python -m tests.simulation"


def told(words: str, facts: Facts) -> str:
    """A step and the facts published in it, one line each."""
    lines = [words]
    for item in facts:
        if not isinstance(item.event, CatalogueChanged):
            sentence = item.event.words.format(**item.event.model_dump())
            lines.append(f"      {item.position:>4} {item.recorded_at:%H:%M:%S} {item.cause.actor}: {sentence}")
    return "\n".join(lines)


def where(verdict: Verdict) -> str:
    """At which point of the story it broke."""
    return "when everything should have settled" if verdict.step is None else f"at step {verdict.step}"


def replay(verdict: Verdict, length: int, kept: list[int] | None = None) -> str:
    """The command that runs the story again."""
    only = "" if kept is None else f" --only {','.join(str(number) for number in kept)}"
    return f"{COMMAND} --seed {verdict.seed} --steps {length}{only}"
