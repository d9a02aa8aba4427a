"""Pages that are made from code are what the code says today."""

from pathlib import Path

from app.cli import commands_page, metrics_page
from app.cli.catalogue_page import page
from app.domain.instance.events import FailureCode
from app.simulator.config import SimulatorConfig
from app.simulator.inprocess import InProcessCloud
from app.simulator.world import World

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_page_of_instance_types_is_what_the_templates_say() -> None:
    """`python -m app.cli.catalogue_page > docs/instance-types.md` makes it anew."""
    kinds = InProcessCloud(World(SimulatorConfig())).instance_types()
    assert len(kinds) == 55
    assert (DOCS / "instance-types.md").read_text() == page(kinds)


def test_every_failure_code_is_explained() -> None:
    """An operator looks up what the autoscaler shows."""
    text = (DOCS / "autoscaler.md").read_text()
    assert [code for code in FailureCode if f"`{code}`" not in text] == []


def test_page_of_commands_says_what_the_commands_say() -> None:
    """All commands with all their options: `python -m app.cli.commands_page > docs/commands.md` makes it anew."""
    assert (DOCS / "commands.md").read_text() == commands_page.page()


def test_page_of_metrics_is_what_the_server_exposes() -> None:
    """`python -m app.cli.metrics_page > docs/metrics.md` makes it anew."""
    assert (DOCS / "metrics.md").read_text() == metrics_page.page()
