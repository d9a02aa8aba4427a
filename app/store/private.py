"""Files that nobody else may read: they tell which machines there are, what they cost, and who asked for them."""

import contextlib
import os
from pathlib import Path

MODE = 0o600


def create(path: Path) -> None:
    """Make an empty file that is its owner's alone, whatever the umask; one that is there is left as it is.

    Before SQLite has opened it: closing a file that it has open would drop its locks. Its write-ahead log takes over
    the mode of the database.

    Raises:
        OSError: the directory cannot be written.
    """
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, MODE))
