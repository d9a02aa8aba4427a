"""Finds what an explanation needs in a database."""

from pathlib import Path

from app.clock import SystemClock
from app.domain.explain.group import explain_group
from app.domain.explain.instance import DOUBLES, Story, explain_instance
from app.domain.explain.page import Page
from app.store import queries
from app.store.past import books_now, told_about, told_of, told_with
from app.store.reading import asking


def explained(database: Path, name: str) -> Page | None:
    """The page on an instance or a node group; None if there is neither of that name.

    Raises:
        StoreError: the database cannot be read.
    """
    now = SystemClock().now()
    with asking(database) as moment:
        books = books_now(moment)
        if name in books.groups:
            return explain_group(books, books.groups[name], tuple(told_of(moment, f"nodegroup-{name}")), now)
        known = queries.instance_named(moment, name)
        if known is None:
            return None
        instance = books.instances[known]
        return explain_instance(
            Story(
                instance=instance,
                events=tuple(told_of(moment, f"instance-{known}")),
                beside=tuple(told_with(moment, instance.correlation_id)),
                doubles=tuple(told_about(moment, known, DOUBLES)),
                now=now,
            )
        )
