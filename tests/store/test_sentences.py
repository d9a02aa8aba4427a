"""The sentences of `v_events`: put together from words of ours and payloads of anybody's, as SQL."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from app.store.columns import canonical
from app.store.views import VIEWS, _sentence

from .golden import SAMPLES


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("it's {a}", "it's x'y\"z"),
        ("{a}", "x'y\"z"),
        ("'{a}' is \"{b}\"; --", "'x'y\"z' is \"-\"; --"),
        ("{n} of {n}", "3 of 3"),
        ("no field at all: '';", "no field at all: '';"),
    ],
)
def test_words_with_quotes_are_safe_sql(words: str, sentence: str) -> None:
    """Whoever words an event need not think of SQL; null is told as a dash."""
    with closing(sqlite3.connect(":memory:")) as connection:
        data = json.dumps({"a": "x'y\"z", "b": None, "n": 3})
        told = connection.execute(f"SELECT {_sentence(words)} FROM (SELECT ? AS data)", (data,))  # noqa: S608 - the point
        assert told.fetchone() == (sentence,)


def test_every_event_has_its_sentence(tmp_path: Path) -> None:
    """No event type shows as its bare name, and no placeholder is left over."""
    with closing(sqlite3.connect(tmp_path / "golden.db")) as connection:
        connection.execute(
            "CREATE TABLE events (position, stream, version, type, recorded_at, actor, correlation_id, data)"
        )
        connection.execute(f"CREATE VIEW v_events AS {VIEWS['v_events']}")
        for event in SAMPLES:
            row = (event.stream, event.type, canonical(event.model_dump(mode="json")))
            connection.execute("INSERT INTO events (stream, type, data) VALUES (?, ?, ?)", row)
        told = connection.execute("SELECT type, what FROM v_events").fetchall()
    assert len(told) == len(SAMPLES)
    assert [what for name, what in told if not what or what == name or "{" in what] == []
