"""The questions of docs/audit.md, with the answers that stand there, which were worked out by hand."""

import re
from pathlib import Path

import pytest

from app.store.views import VIEWS
from tests.store.harness import rows

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "audit.md").read_text()
QUESTIONS = re.findall(r"### \d+\. (.+?)\n\n```sql\n(.+?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)


def test_there_are_at_least_twenty_questions() -> None:
    """And each of them has its answer beside it, or it would not be found here."""
    assert len(QUESTIONS) == PAGE.count("\n### ")
    assert len(QUESTIONS) >= 20


def test_every_view_is_explained() -> None:
    """What is not on the page is nobody's to rely on."""
    assert [view for view in VIEWS if f"| `{view}` |" not in PAGE] == []


@pytest.mark.parametrize(("question", "query", "answer"), QUESTIONS, ids=[question for question, _, _ in QUESTIONS])
def test_the_answer_is_the_one_that_stands_there(question: str, query: str, answer: str, story: Path) -> None:
    """As `sqlite3` prints it."""
    assert question
    told = ["|".join("" if value is None else str(value) for value in row) for row in rows(story, query)]
    assert told == answer.splitlines()
