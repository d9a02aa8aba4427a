"""The small jobs: catalogue, deadlines, housekeeping."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from app.domain.cloud import CatalogueChanged, RecordBalance, RecordCatalogue
from app.domain.instance.commands import CheckDeadlines
from app.errors import CloudError
from app.ledger.backups import Backup, BackupPlan, BackupReason
from app.log import get_logger
from app.reconcile.jobs.job import Bench

FAILED_EXPIRY = timedelta(minutes=30)
"""The autoscaler deletes failed instances within two loops; half an hour later nobody is coming for them any more."""

_log = get_logger(job="upkeep")


@dataclass(slots=True, kw_only=True)
class Catalog:
    """Instance types and prices. The last good catalogue stays in the books when the API does not answer.

    Read again after `every`, or at the next run if it could not be read, or lacks what was there before: one entry that
    could not be read is left out by the client.
    """

    name: ClassVar[str] = "catalog"
    bench: Bench
    every: timedelta
    _read_at: float | None = None

    def run(self) -> None:
        """Read the catalogue if it is time, record what changed."""
        began = self.bench.clock.monotonic()
        if self._read_at is not None and began - self._read_at < self.every.total_seconds():
            return
        try:
            types = tuple(self.bench.cloud.instance_types())
        except CloudError as error:
            _log.warning("catalogue not read, keeping the last one", error=error.message, code=error.code)
            return
        recorded = self.bench.record(RecordCatalogue(types=types), self.bench.cause(self.name))
        lacks = any(isinstance(item.event, CatalogueChanged) and item.event.withdrawn for item in recorded)
        self._read_at = None if lacks else began


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchBalance:
    """Reads what is left on the account, as long as growth depends on it. The last reading stays when none is had."""

    name: ClassVar[str] = "balance"
    bench: Bench

    def run(self) -> None:
        """Record it if it has changed."""
        if self.bench.books.installation.balance_runway_s is None:
            return
        try:
            left = self.bench.cloud.balance()
        except CloudError as error:
            _log.warning("balance not read, keeping the last one", error=error.message, code=error.code)
            return
        self.bench.record(RecordBalance(amount=left.amount, currency=left.currency), self.bench.cause(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deadlines:
    """Gives up on what takes too long, and notices when the disk can be written again."""

    name: ClassVar[str] = "deadlines"
    bench: Bench

    def run(self) -> None:
        """Check every listed instance against its group's limits."""
        if self.bench.ledger.trouble is not None:
            self.bench.ledger.probe()
        self.bench.record(CheckDeadlines(failed_expiry=FAILED_EXPIRY), self.bench.cause(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Backups:
    """Copies of the database, when one is due and there is something new to copy."""

    name: ClassVar[str] = "backup"
    bench: Bench
    plan: BackupPlan
    proven: Callable[[Backup], None] = lambda _: None

    def run(self) -> None:
        """Make a copy if it is time."""
        if self.plan.is_due(self.bench.ledger.head.position):
            backup = self.plan.take(BackupReason.SCHEDULED)
            _log.info("backup made", path=str(backup.path), position=backup.manifest.position)
        newest = self.plan.newest()
        if newest is not None:
            self.proven(newest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekeeping:
    """Keeps memory and the write-ahead log short."""

    name: ClassVar[str] = "housekeeping"
    bench: Bench

    def run(self) -> None:
        """Forget what ended long ago, checkpoint."""
        forgotten = self.bench.ledger.forget_ended()
        if forgotten:
            _log.debug("ended instances dropped from memory", count=forgotten)
        self.bench.ledger.checkpoint()
