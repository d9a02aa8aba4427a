"""No fault that the simulated API can play is without its test."""

from pathlib import Path

import pytest

from app.simulator.acts import ACTS
from app.simulator.presets import PRESETS

HERE = Path(__file__).parent
BY_HAND = {"listener_down", "neighbour_storm", "token_revoked"}
"""Faults of the catalogue that are not presets: they have calls or settings of their own."""
HELPERS = {"fail", "stick", "unstick", "unvanish", "offline", "set_status"}
"""Acts that are parts of others: the faults are `stuck_*`, `install_error`, `vanish*`, `guest_poweroff`, any status."""


@pytest.mark.parametrize("name", sorted((set(PRESETS) | set(ACTS) | BY_HAND) - HELPERS))
def test_every_fault_is_named_in_a_test(name: str) -> None:
    """With its right outcome beside it."""
    text = "".join(
        file.read_text(encoding="utf-8") for file in HERE.glob("test_*.py") if file.name != Path(__file__).name
    )
    assert f'"{name}"' in text or f"`{name}`" in text
