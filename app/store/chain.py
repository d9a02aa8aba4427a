"""The hash chain over the log: any change, deletion or reordering of stored events shows.

`hash = SHA-256("v1", previous hash, then every column as stored)`, each part preceded by its length, so that no two
different rows can look the same to the hash. The chain starts at 64 zeros. Cutting off the tail is invisible to a chain
alone, which is why the head is a metric and stands in backups.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Protocol

GENESIS = "0" * 64


class Row(Protocol):
    """The columns of a stored event, as stored."""

    position: int
    stream: str
    version: int
    type: str
    schema: int
    recorded_at: str
    actor: str
    correlation_id: str
    data: str
    hash: str


def link(previous: str, parts: Iterable[str]) -> str:
    """The hash of a row whose columns, in table order and without the hash, are `parts`."""
    digest = hashlib.sha256(b"v1")
    for part in (previous, *parts):
        raw = part.encode()
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.hexdigest()


def parts_of(row: Row) -> Iterator[str]:
    """The hashed columns of a row, in table order."""
    yield from (str(row.position), row.stream, str(row.version), row.type, str(row.schema))
    yield from (row.recorded_at, row.actor, row.correlation_id, row.data)


def broken_links(rows: Iterable[Row], previous: str = GENESIS) -> Iterator[str]:
    """What is wrong with a run of rows that follows the row with hash `previous`, in the order of the log."""
    expected: int | None = None
    for row in rows:
        if expected is not None and row.position != expected:
            yield f"position {expected} is missing"
        if link(previous, parts_of(row)) != row.hash:
            yield f"position {row.position} was changed after it was written, or its neighbour was"
        previous = row.hash
        expected = row.position + 1
