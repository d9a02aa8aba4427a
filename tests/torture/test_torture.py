"""A slice of what `make torture` does for an hour."""

from pathlib import Path

import pytest

from tests.torture.run import Moment, run


@pytest.mark.timeout(600)
def test_ten_kills_lose_nothing_and_double_nothing(tmp_path: Path) -> None:
    """F49: at its start, at work and while it stops: afterwards books and cloud agree, every promise is kept."""
    outcome = run(seed=16, kills=10, directory=tmp_path)
    assert outcome.findings == ()
    assert outcome.kills.total() == 10
    assert set(outcome.kills) == set(Moment)
    assert outcome.promised > 0
    assert outcome.copies > 0
