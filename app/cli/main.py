"""The command line: `verda-cloud-provider [serve] …`. Commands are thin: parse, call, render."""

import sys
from collections.abc import Sequence

import typer
from rich.console import Console

from app.cli import demo, read, serve, simulate
from app.errors import CloudError, ConfigurationError, ProviderError, RuleViolation, StoreError, StoreHeld
from app.rpc.client import CallFailed

EXIT_NO = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_HELD = 4

_NOT_SERVE = frozenset({"--help", "-h", "--version", "--install-completion", "--show-completion"})
_errors = Console(stderr=True, highlight=False, soft_wrap=True)

cli = typer.Typer(
    name="verda-cloud-provider",
    help="Lets a Kubernetes Cluster Autoscaler rent and return GPU machines at Verda Cloud. Without a command: serve.",
    no_args_is_help=False,
    rich_markup_mode="markdown",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
cli.command("serve")(serve.serve)
cli.command("simulate")(simulate.simulate)
cli.command("demo")(demo.demo)
cli.command("status")(read.status)
cli.command("instances")(read.instances)
cli.command("events")(read.events)


@cli.callback()
def _root(
    *,
    version: bool = typer.Option(
        False, "--version", help="Print the version.", is_eager=True, callback=serve.print_version
    ),
) -> None:
    """Options that stand before every command."""


def with_default_command(arguments: Sequence[str]) -> list[str]:
    """`--config x` alone means `serve --config x`."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in _NOT_SERVE):
        return ["serve", *arguments]
    return list(arguments)


def main() -> None:
    """Run, and turn our own errors into one clear message and an exit code."""
    try:
        cli(with_default_command(sys.argv[1:]))
    except ProviderError as error:
        _errors.print("[bold red]error:[/] ", end="")
        _errors.print(error.message, markup=False)
        sys.exit(exit_code(error))


def exit_code(error: ProviderError) -> int:
    """1 the answer is no, 2 wrong usage or configuration, 3 cannot reach what is needed, 4 the database is held."""
    match error:
        case StoreHeld():
            return EXIT_HELD
        case ConfigurationError() | RuleViolation():
            return EXIT_USAGE
        case StoreError() | CloudError() | CallFailed():
            return EXIT_UNREACHABLE
        case _:
            return EXIT_USAGE


if __name__ == "__main__":
    main()
