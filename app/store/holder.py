"""Who writes a database right now, without touching its lock."""

from pathlib import Path

_LOCKS = Path("/proc/locks")
"""Linux: every lock with `<major>:<minor>:<inode>` of its file, of the processes that this one can see."""


def holder_of(database: Path) -> str | None:
    """The words of the process that holds the writer lock, None if none does or the system does not tell.

    To try the lock would be simpler, and would make a server that starts at that very moment refuse to.
    """
    lock = database.with_name(database.name + ".lock")
    try:
        inode = lock.stat().st_ino
        held = any(line.split()[5].endswith(f":{inode}") for line in _LOCKS.read_text("ascii").splitlines())
        return lock.read_text(errors="replace").partition("\n")[0] if held else None
    except OSError:
        return None
