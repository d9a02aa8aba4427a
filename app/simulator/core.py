"""What all parts of the world share: configuration, state, time and chance."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from app.simulator.chance import Chance
from app.simulator.config import SimulatorConfig
from app.simulator.span import Seconds, Span
from app.simulator.state import JournalRow, WorldState
from app.simulator.timeline import TimeLine

PROJECT_USER = "0b6c3f0e-51a2-4f43-8f0e-5eed00000001"
"""Who owns the credentials the API is called with."""
HUMAN_USER = "0b6c3f0e-51a2-4f43-8f0e-5eed00000002"
"""Another member of the project, who uses the console."""
PROJECT = "9f0e5eed-0000-4000-8000-000000000001"

_UNIX_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - the zone is written as Z
_JOURNAL_KEPT = 20_000


def to_ms(seconds: Seconds) -> int:
    """Milliseconds, rounded."""
    return round(seconds * 1000)


def iso(at_ms: int) -> str:
    """An instant as the API writes it: ISO 8601, UTC, milliseconds, Z."""
    return (_UNIX_EPOCH + timedelta(milliseconds=at_ms)).isoformat(timespec="milliseconds") + "Z"


@dataclass(frozen=True, slots=True)
class Core:
    """The shared parts, handed to every service of the world."""

    config: SimulatorConfig
    state: WorldState
    time: TimeLine
    chance: Chance

    @property
    def now_ms(self) -> int:
        """The instant being worked out, milliseconds since the Unix epoch."""
        return self.state.now_ms

    def ordinal(self, kind: str) -> int:
        """The next number of its kind, from 1."""
        number = self.state.ordinals.get(kind, 0) + 1
        self.state.ordinals[kind] = number
        return number

    def new_id(self, kind: str) -> str:
        """The next id of its kind."""
        return self.chance.uuid(kind, self.ordinal(kind))

    def draw_ms(self, span: Span, stream: str, key: object) -> int:
        """A duration in milliseconds from its own stream."""
        return to_ms(span.draw(self.chance.stream(stream, key)))

    def shown(self, at_ms: int) -> str:
        """An instant as the API shows it, with the clock skew somebody may have ordered."""
        return iso(at_ms + self.state.skew_ms)

    def note(
        self,
        object_id: str,
        action: str,
        location: str,
        *,
        kind: str = "compute",
        actor: str | None = PROJECT_USER,
        reason: str = "",
        error: str = "",
    ) -> None:
        """Write to the activity journal; the oldest entries are dropped beyond twenty thousand."""
        journal, number = self.state.journal, self.ordinal("journal")
        journal.append(
            JournalRow(
                number=number,
                id=self.chance.uuid("journal", number),
                at_ms=self.now_ms,
                object_id=object_id,
                object_type=kind,
                action=action,
                actor=actor,
                location=location,
                reason=reason,
                error=error,
            )
        )
        if len(journal) > _JOURNAL_KEPT:
            del journal[: _JOURNAL_KEPT // 10]
