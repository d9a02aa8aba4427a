"""The hash chain over the log: any change, deletion or reordering of stored events shows.

`hash = SHA-256("v1", previous hash, then every column as stored)`, each part preceded by its length in eight bytes,
most significant first, so that no two different rows can look the same to the hash. The columns come in table order,
numbers as decimal text; the chain starts at 64 zeros. Cutting off the tail is invisible to a chain alone, which is why
the head is a metric and stands in backups.
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


def broken_links(rows: Iterable[Row], after: int = 0, previous: str = GENESIS) -> Iterator[str]:
    """What is wrong with rows, in the order of the log, that follow position `after` with the hash `previous`.

    Behind a gap the first row's own link cannot be judged: its predecessor is not there.
    """
    for row in rows:
        if row.position > after + 1:
            yield _missing(after + 1, row.position - 1)
        elif link(previous, parts_of(row)) != row.hash:
            yield f"position {row.position} was changed after it was written, or its predecessor was"
        after, previous = row.position, row.hash


def _missing(first: int, last: int) -> str:
    return f"position {first} is missing" if first == last else f"positions {first} to {last} are missing"
