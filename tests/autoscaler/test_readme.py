"""The description of the model says what the model does."""

from pathlib import Path

from .ca.releases import Change

README = (Path(__file__).parent / "README.md").read_text(encoding="utf-8")


def test_every_difference_between_releases_is_described() -> None:
    """One row of the table for each, with the release that brought it and the model's own words."""
    rows = [line for line in README.splitlines() if line.startswith("| 1.")]
    assert rows == [f"| 1.{change.minor} | {change.words} |" for change in Change]
