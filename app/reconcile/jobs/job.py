"""What every job is made of."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

from app.clock import Clock, Ids
from app.cloud.port import Cloud
from app.domain.books import Books
from app.domain.decide import Command
from app.domain.envelope import Cause, Event, Recorded
from app.ledger.ledger import Ledger


class Job(Protocol):
    """Looks, decides through the ledger, acts. Running it twice in a row does nothing the second time."""

    name: ClassVar[str]

    def run(self) -> None:
        """One pass. Raises StoreError when the books cannot be written; the next pass picks up where this one ended."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The tools a job works with."""

    ledger: Ledger
    cloud: Cloud
    clock: Clock
    ids: Ids

    @property
    def books(self) -> Books:
        """The current books."""
        return self.ledger.books

    def cause(self, job: str) -> Cause:
        """A fresh cause for one run of a job."""
        return Cause(actor=f"reconcile/{job}", correlation_id=self.ids.token())

    def record(self, command: Command, cause: Cause) -> Sequence[Recorded[Event]]:
        """Have the ledger decide and record."""
        return self.ledger.execute(command, cause)
