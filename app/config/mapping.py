"""What becomes of another tool's settings here."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One setting of the older tool and its place here; `target` None for what is lost, with the reason in `note`."""

    source: str
    target: str | None
    note: str = ""

    def __str__(self) -> str:
        """One line of a report."""
        where = self.target if self.target is not None else "(nothing)"
        return f"{self.source} -> {where}{f': {self.note}' if self.note else ''}"
