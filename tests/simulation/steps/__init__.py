"""What can happen in a story, one small class a kind. A step says in words what it is and does it to a stage."""

from typing import Protocol

from tests.simulation.stage import Stage


class Step(Protocol):
    """One thing that happens. `str()` of it is a sentence for people."""

    def act(self, stage: Stage) -> None:
        """Let it happen."""
        ...
