"""One thing after the other, so that what the cluster does not let be done to one holds up none of the others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final, TypeVar

from app.clock import Clock
from app.errors import ClusterConflict, ClusterDown, ClusterError

_LONGEST: Final = timedelta(seconds=30)
"""While a webhook hangs, the API server answers every change late; whoever is left waits for the next pass."""

T = TypeVar("T")


@dataclass(slots=True, kw_only=True)
class Turns:
    """The row in which a piece of work serves its nodes or tokens. Who was refused goes to its end."""

    clock: Clock
    _refused: dict[str, int] = field(default_factory=dict)
    _turn: int = 0

    def serve(self, due: Mapping[str, T], most: int, act: Callable[[T], None]) -> None:
        """Act on at most so many of what is due, in its order, but for those that were refused before.

        A lost race is nobody's trouble: the next picture shows what the others did.

        Raises:
            ClusterError: the first refusal, when all have had their turn, or nobody answers, or it takes too long.
        """
        self._refused = {key: turn for key, turn in self._refused.items() if key in due}
        ends_at = self.clock.monotonic() + _LONGEST.total_seconds()
        first: ClusterError | None = None
        for key in sorted(due, key=lambda key: self._refused.get(key, 0))[:most]:
            if self.clock.monotonic() > ends_at:
                break
            try:
                act(due[key])
            except ClusterConflict:
                continue
            except ClusterError as error:
                self._turn += 1
                self._refused[key] = self._turn
                first = first or error
                if isinstance(error, ClusterDown):
                    break
            else:
                self._refused.pop(key, None)
        if first is not None:
            raise first
