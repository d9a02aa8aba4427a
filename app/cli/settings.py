"""The configuration: `config check`."""

import os
from pathlib import Path
from typing import Annotated

import typer

from app.config.load import load

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")]


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    config = typer.Typer(help="The configuration: check it.", no_args_is_help=True, rich_markup_mode="markdown")
    config.command("check")(check)
    cli.add_typer(config, name="config")


def check(*, config: ConfigOption = Path("config.yaml")) -> None:
    """Read the configuration as `serve` would and say everything that is wrong or odd; exit code 2 if it is wrong."""
    loaded = load(config, environ=os.environ)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    typer.echo(f"{config}: fine, {len(loaded.config.node_groups)} node groups")
