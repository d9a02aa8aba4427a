"""There is no calendar in here, and whoever asks for one is told."""

import pytest

from .harness import GROUP, Desk


@pytest.mark.parametrize(
    ("text", "line", "path"),
    [
        # F61: a time of day happens twice or not at all on the two change nights; intervals do not know them.
        ("backup:\n  at: '02:30'\n", 8, "backup.at"),
        # F62: names of zones need data that a slim image lacks.
        ("timezone: Mars/Base\n", 7, "timezone"),
        ("timezone: Europe/Helsinki\n", 7, "timezone"),
        # F64: sizes by office hours.
        (
            "    windows:\n      - {days: mon-fri, from: '08:00', min_size: 5}\n",
            7,
            "node_groups.gpu.windows",
        ),
    ],
)
def test_a_setting_of_the_calendar_is_refused_and_not_passed_over(desk: Desk, text: str, line: int, path: str) -> None:
    """F61, F62, F64: nobody shall believe that it works."""
    (problem,) = desk.told(GROUP + text)
    assert problem[:2] == (line, path)
    assert problem[2].startswith("is not a known key")
