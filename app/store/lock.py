"""The lock file beside the database: one writer, whatever happens to the processes, and how the last one ended."""

import contextlib
import fcntl
import os
from collections.abc import Iterator
from enum import StrEnum
from pathlib import Path

from app.errors import StoreHeld, StoreUnavailable
from app.store import private

_MAX_TEXT = 1000
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
"""Linux makes a new one at every boot; containers see their machine's."""


class Ending(StrEnum):
    """What the lock file says about the last writer; no note at all means the same as `RUNNING`."""

    CREATING = "creating the database"
    """The database has never been complete, so whatever a killed process left of it may be made anew."""
    RESTORING = "being replaced by a backup"
    """Found by the next writer: a restore was interrupted, and what is in the database's place may be anything."""
    RUNNING = "in use"
    """Found by the next writer: the last one was killed, or the power failed."""
    CLEAN = "closed cleanly"


class WriterLock:
    """An operating-system lock on a file beside the database.

    The lock is the flock; the file's text is for people and for the next writer: who holds it, how it would look if
    this were the end, in which boot of the machine, and how far the log has come. The database file itself is never
    opened for this, because closing any descriptor of it would drop SQLite's own locks.
    """

    def __init__(self, database: Path) -> None:
        self.path = database.with_name(database.name + ".lock")
        self.last_ending: Ending | None = None
        self.machine_was_up = False
        self.last_position: int | None = None
        self._position: int | None = None
        self._note: tuple[str, str] = ("", "")
        self._descriptor: int | None = None
        self._file: tuple[int, int] | None = None
        self._holder = ""

    def acquire(self, holder: str) -> None:
        """Take the lock or say who has it.

        Afterwards `last_ending` is what the last holder noted, `machine_was_up` whether it was on this machine and the
        machine has not stopped since: then nothing that it had written can have been lost. `last_position` is how far
        the log is known to have come: a database that ends earlier is an older one.

        Raises:
            StoreHeld: another process has the lock.
            StoreUnavailable: the directory cannot be written.
        """
        descriptor = self._opened()
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            words = _text(descriptor)[0] or "an unknown process"
            os.close(descriptor)
            raise StoreHeld(
                f"the database is in use by {words}; stop that process first (lock file {self.path})"
            ) from error
        self._descriptor, self._file = descriptor, _identity(os.fstat(descriptor))
        if not self.is_ours():
            self.release()
            raise StoreHeld(f"the lock file {self.path} was replaced at this very moment: start again")
        _, note, boot, position = _text(descriptor)
        self._holder = " ".join(holder.split())
        self.last_position = self._position = int(position) if position.isdecimal() else None
        self.last_ending = next((ending for ending in Ending if ending == note), None)
        self.machine_was_up = bool(boot) and boot == _boot()
        try:
            self._write(descriptor, note, boot)
            self._sync(descriptor)
        except StoreUnavailable:
            self.release()
            raise

    def _opened(self) -> int:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            return os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, private.MODE)
        except OSError as error:
            raise StoreUnavailable(
                f"cannot write beside the database: {self.path}: {error.strerror} ({_who_may(self.path.parent)})"
            ) from error

    def note(self, ending: Ending) -> None:
        """Write down how it would look to the next one if this were the end; durable.

        Until then the note of the last one stands, and what it asks of a start is still to be done.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        if self._descriptor is not None:
            self._write(self._descriptor, ending, _boot())
            self._sync(self._descriptor)

    def mark(self, position: int) -> None:
        """Write down how far the log has come. Not durable by itself: it is a second witness and holds nothing up.

        Raises:
            StoreUnavailable: the file cannot be written.
        """
        self._position = position
        if self._descriptor is not None:
            self._write(self._descriptor, *self._note)

    def _write(self, descriptor: int, note: str, boot: str) -> None:
        self._note = (note, boot)
        position = "" if self._position is None else str(self._position)
        raw = f"{self._holder}\n{note}\n{boot}\n{position}\n".encode()
        with self._translated():
            os.pwrite(descriptor, raw, 0)
            os.ftruncate(descriptor, len(raw))

    def _sync(self, descriptor: int) -> None:
        with self._translated():
            os.fsync(descriptor)

    @contextlib.contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreUnavailable(f"cannot write {self.path}: {error.strerror}", path=str(self.path)) from error

    def is_ours(self) -> bool:
        """The lock is held, and on the file that other processes would look at."""
        try:
            return self._descriptor is not None and self._file == _identity(self.path.stat())
        except OSError:
            return False

    def release(self) -> None:
        """Let go; harmless when not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


@contextlib.contextmanager
def translated_file_errors() -> Iterator[None]:
    """Turn what the file system throws into our own error."""
    try:
        yield
    except OSError as error:
        raise StoreUnavailable(f"the database cannot be used: {error}", reason=error.strerror or "") from error


def _identity(file: os.stat_result) -> tuple[int, int]:
    return file.st_dev, file.st_ino


def _text(descriptor: int) -> tuple[str, str, str, str]:
    """The holder's words, the note, the boot it was written in, and the position the log had reached."""
    text = os.pread(descriptor, _MAX_TEXT, 0).decode(errors="replace")
    words, note, boot, position, *_ = (*text.split("\n"), "", "", "")
    return words, note, boot, position


def _boot() -> str:
    """Which boot of which machine this is, empty where the system does not tell."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _who_may(directory: Path) -> str:
    """Who we are and whose the directory is, for the person who has to mend its permissions."""
    who = f"running as uid {os.getuid()}"
    try:
        found = directory.stat()
    except OSError:
        return f"{who}; there is no directory {directory}"
    return f"{who}; {directory} belongs to uid {found.st_uid} and has mode {found.st_mode & 0o7777:04o}"
