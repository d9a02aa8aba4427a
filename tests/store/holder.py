"""A process that opens a database, says so, and holds it until it is killed or its input ends."""

import sys
from pathlib import Path

from app.store.store import Store

from .harness import LONG_AGO


def main(path: str, holder: str) -> None:
    """Hold the database at a path under a name."""
    store = Store(Path(path))
    books = store.open(holder, LONG_AGO)
    sys.stdout.write(f"open at {books.position}\n")
    sys.stdout.flush()
    sys.stdin.readline()
    store.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
