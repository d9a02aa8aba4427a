"""What every job is made of."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
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


class FirstLook:
    """Whether this process has seen a whole listing of the cloud, and where the log stood when it began.

    Books can be older than the truth: a backup or a snapshot of the volume was put back. So what was wished before this
    process began is ordered only once the cloud has been looked at, and what is there already is not bought again.
    """

    def __init__(self, began_at: int) -> None:
        self.began_at = began_at
        self._done = threading.Event()

    @property
    def is_done(self) -> bool:
        """The cloud was seen."""
        return self._done.is_set()

    def done(self) -> None:
        """The cloud was seen."""
        self._done.set()

    def is_open_to(self, ordinal: int) -> bool:
        """A wish at that position may be ordered."""
        return self.is_done or ordinal > self.began_at


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """The tools a job works with, and what the jobs of one process know together."""

    first_look: FirstLook = field(default_factory=lambda: FirstLook(0))
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
