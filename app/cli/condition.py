"""How the books say things are: what /readyz would answer, as far as a database can tell."""

from collections.abc import Sequence
from dataclasses import dataclass

from app.domain.books import Books
from app.ledger.serving import Reason, obstacles, remarks


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """Why RPCs cannot be answered, and what keeps them from nothing but should be seen."""

    obstacles: Sequence[Reason]
    remarks: Sequence[Reason]


def condition_of(books: Books) -> Condition:
    """As far as they can tell: nobody is asked."""
    return Condition(obstacles=obstacles(books), remarks=remarks(books))
