"""`demo`: plays Cluster Autoscaler against a provider and a simulated cloud, kills the provider, compares the books."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from app.cli.demo_stage import DemoFailed, Stage
from app.cli.demo_story import play
from app.cli.demo_verdict import compare, print_costs, print_events

_console = Console(highlight=False)


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("demo")(demo)


def demo(
    *,
    keep: Annotated[Path | None, typer.Option(help="Keep the database and the logs in this directory.")] = None,
) -> None:
    """Play the autoscaler against the simulator and compare the books with the truth.

    Grow, watch, lose a spot machine, run out of stock, delete, kill -9 and restart; under a minute.

    Exit code 1 if the books and the simulator's truth differ in the end.
    """
    with tempfile.TemporaryDirectory(prefix="verda-demo-") as scratch:
        directory = keep or Path(scratch)
        directory.mkdir(parents=True, exist_ok=True)
        with Stage(directory, _console) as stage:
            try:
                play(stage)
            except DemoFailed as failure:
                _console.print(f"[bold red]The demonstration failed:[/] {failure.message}")
                raise typer.Exit(1) from failure
            print_events(stage)
            print_costs(stage)
            differences = compare(stage)
    for difference in differences:
        _console.print(f"[bold red]differs:[/] {difference}")
    if differences:
        raise typer.Exit(1)
    _console.print("[bold green]The books and the simulator's truth agree.[/]")
