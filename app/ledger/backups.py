"""The plan of copies: where they go, how often one is due, how many are kept."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from app.clock import Clock
from app.store.backup import Backup, BackupReason, advice, backups, prune, take

__all__ = ["Backup", "BackupPlan", "BackupReason", "default_directory"]


def default_directory(database: Path) -> Path:
    """Where copies are kept unless the configuration says otherwise."""
    return database.parent / "backups"


@dataclass(frozen=True, slots=True, kw_only=True)
class BackupPlan:
    """Copies of one database in one directory."""

    database: Path
    directory: Path
    every: timedelta
    keep: int
    clock: Clock

    def newest(self) -> Backup | None:
        """The newest complete copy, whoever made it.

        Raises:
            StoreUnavailable: the directory cannot be read.
        """
        return next(iter(backups(self.directory, self.database)), None)

    def is_due(self, position: int) -> bool:
        """The newest copy is old enough, and lacks something of a log that goes to this position.

        Raises:
            StoreUnavailable: the directory cannot be read.
        """
        newest = self.newest()
        if newest is None:
            return True
        is_behind = newest.manifest.position != position
        return is_behind and self.clock.now() - newest.manifest.made_at >= self.every

    def take(self, reason: BackupReason) -> Backup:
        """Make a copy and clear away those that are too many.

        Raises:
            StoreError: it could not be made; the older ones are all still there.
        """
        now = self.clock.now()
        made = take(self.database, self.directory, now, reason)
        prune(self.directory, self.database, self.keep, now)
        return made

    def before_migration(self) -> None:
        """Make a copy that the version before this one can read.

        Raises:
            StoreError: it could not be made.
        """
        self.take(BackupReason.BEFORE_MIGRATION)

    def advice(self) -> str:
        """What to type when the database is beyond repair."""
        return advice(self.directory, self.database, self.clock.now())
