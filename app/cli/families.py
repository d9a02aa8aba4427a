"""Commands that are loaded when they are called: `--help` and quick looks do not pay for the server's imports.

A family is a module of this package with `register(cli)`, which adds its commands to a Typer application.
"""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

Families = Mapping[str, tuple[str, str]]
"""Command → its family and what it does: all that `--help` and completion need."""


def application(families: Families, **settings: Any) -> typer.Typer:
    """A Typer application with the commands of these families."""

    class Group(TyperGroup):
        def resolve_command(self, ctx: Any, args: list[str]) -> Any:
            """The real command in place of what stands for it."""
            name = args[0]
            if name in families:
                self.commands[name] = loaded(families[name][0]).commands[name]
            return super().resolve_command(ctx, args)

    cli = typer.Typer(cls=Group, rich_markup_mode="markdown", **settings)
    for name, (_, words) in families.items():
        cli.command(name, help=words)(_placeholder)
    return cli


def _placeholder() -> None:
    """Never called: the real command is resolved first."""


def loaded(family: str) -> TyperGroup:
    """The commands of a family, by name."""
    cli = typer.Typer(rich_markup_mode="markdown")
    import_module(f"app.cli.{family}").register(cli)
    return typer.main.get_group(cli)
