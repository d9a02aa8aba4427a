"""The command line: `verda-cloud-provider [serve] …`. Commands are thin: parse, call, render."""

import errno
import os
import sys
from collections.abc import Sequence

import typer
from rich.console import Console

from app.cli.families import Families, application
from app.errors import CloudError, ConfigurationError, ProviderError, RuleViolation, StoreError, StoreHeld, Unreachable

EXIT_NO = 1
EXIT_USAGE = 2
EXIT_UNREACHABLE = 3
EXIT_HELD = 4

COMMANDS: Families = {
    "serve": ("serve", "Serve Cluster Autoscaler until told to stop."),
    "simulate": ("simulate", "Simulate the Verda API until told to stop."),
    "demo": ("demo", "Play the autoscaler against the simulator and compare the books with the truth."),
    "status": ("look", "Node groups with their sizes and costs, and how the cloud is doing."),
    "groups": (
        "look",
        "Node groups: target size, instances by state, limits, cost an hour, the node that corrected the template.",
    ),
    "instances": ("look", "Instances: state, machine, price and what they have cost."),
    "events": ("story", "The log in words, oldest first."),
    "history": ("story", "Every event of one instance, with the time since the one before."),
    "explain": (
        "story",
        "One page in plain words: an instance's life and cost, or why a node group does or does not grow.",
    ),
    "costs": ("money", "What the machines have cost: price times time, and separately what of it was of no use."),
    "state": (
        "past",
        "Node groups and instances as they were at some time, folded from the log.",
    ),
    "export": ("past", "Take out the whole log, or an audit view, as JSON lines or CSV."),
    "pause": (
        "operate",
        "Let a node group grow no more until `resume`; it may still shrink, and what was granted goes on.",
    ),
    "resume": ("operate", "Let a paused node group grow again."),
    "drain": ("operate", "Pause a node group and delete all its machines now."),
    "adopt": (
        "operate",
        "Take over machines that another tool made. Without --yes nothing happens but a list of what would.",
    ),
    "script-server": ("scripts", "Serve startup scripts to whoever asks by group and host name."),
    "verify": ("maintain", "Prove that a database or a backup is what was written."),
    "rebuild": ("maintain", "Fold the log into the projections anew."),
    "backup": ("maintain", "Copy a database, also while a server writes it, and prove the copy."),
    "restore": ("maintain", "Put a backup in the place of a database."),
    "claim": ("maintain", "Take over the machines of an earlier installation of this cluster."),
    "doctor": (
        "doctor",
        "Look at configuration, certificates, disk, clock, autoscaler, account and groups; a remedy for what is wrong.",
    ),
    "certs": ("certs", "Make a private authority with a certificate for the server and one for the autoscaler."),
    "config": ("settings", "The configuration: check it, show it whole, compare it, describe it to editors."),
}
"""Command → its family, a module of this package with `register`, and what it does."""

_CANNOT_BE_WRITTEN = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EIO})
"""How a standard output fails that is a file on a full disk."""

_NOT_SERVE = frozenset({"--help", "-h", "--version", "--install-completion", "--show-completion"})

cli = application(
    COMMANDS,
    name="verda-cloud-provider",
    help="Lets a Kubernetes Cluster Autoscaler rent and return GPU machines at Verda Cloud. Without a command: serve.",
    no_args_is_help=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - what Typer calls back with
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415 - quick looks do not pay for it

        typer.echo(f"verda-cloud-provider {version('verda-cloud-provider')}")
        raise typer.Exit


@cli.callback()
def _root(
    *,
    version: bool = typer.Option(False, "--version", help="Print the version.", is_eager=True, callback=_print_version),
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
        cli(with_default_command(sys.argv[1:]), prog_name="verda-cloud-provider")
    except ProviderError as error:
        _complain(error.message)
        sys.exit(exit_code(error))
    except OSError as error:
        if error.errno not in _CANNOT_BE_WRITTEN or error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is left in the buffer fails no more
        _complain(f"the answer cannot be written: {error.strerror}")
        sys.exit(EXIT_UNREACHABLE)


def _complain(message: str) -> None:
    errors = Console(stderr=True, highlight=False, soft_wrap=True)
    errors.print("[bold red]error:[/] ", end="")
    errors.print(message, markup=False)


def exit_code(error: ProviderError) -> int:
    """1 the answer is no, 2 wrong usage or configuration, 3 cannot reach what is needed, 4 the database is held."""
    match error:
        case StoreHeld():
            return EXIT_HELD
        case ConfigurationError() | RuleViolation():
            return EXIT_USAGE
        case StoreError() | CloudError() | Unreachable():
            return EXIT_UNREACHABLE
        case _:
            return EXIT_USAGE


if __name__ == "__main__":
    main()
