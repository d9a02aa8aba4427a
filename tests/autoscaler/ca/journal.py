"""What the autoscaler would tell in events, with the moment of the loop that told it."""

from datetime import datetime


class Journal:
    """Events in order, as words: `ScaledUpGroup gpu 1`."""

    def __init__(self) -> None:
        self.now: datetime | None = None
        self.entries: list[tuple[datetime, str]] = []

    def note(self, words: str) -> None:
        """Something worth an event."""
        assert self.now is not None, "nothing happens outside of loops and the background"
        self.entries.append((self.now, words))
