"""What an explanation is made of."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """A question and its answer, a sentence a line."""

    question: str
    answer: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """One page in plain words: what it is about, how it stands, and the questions."""

    title: str
    sections: tuple[Section, ...]

    @property
    def lines(self) -> Sequence[str]:
        """As text."""
        lines = [self.title]
        for section in self.sections:
            lines += ["", section.question, *(f"  {sentence}" for sentence in section.answer)]
        return lines
