"""`doctor`: looks at everything that has to be right, and says what to do about what is not."""

import os
from collections.abc import Iterator
from dataclasses import asdict

import typer

from app.cli.checks import account, autoscaler, machine, past
from app.cli.checks.finding import Finding, Verdict, fine, warning, wrong
from app.cli.options import OutputOption
from app.cli.render import Output, show
from app.cli.settings import CONFIG, ConfigOption
from app.clock import SystemClock
from app.cloud.verda.cloud import VerdaCloud
from app.cloud.verda.transport import Limits
from app.clouds import backend_of
from app.config.load import LoadedConfig, load
from app.config.model import Config
from app.config.secrets import secrets_of
from app.domain.service import OWN_MACHINES
from app.errors import ConfigurationError
from app.log import set_up_logging

EXIT_WRONG = 1
EXIT_UNREACHABLE = 3
_NEEDED = frozenset({"credentials", "scope"})
_SIGNS = {Verdict.FINE: "ok  ", Verdict.WARNING: "WARN", Verdict.WRONG: "BAD ", Verdict.UNKNOWN: "?   "}


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("doctor")(doctor)


def doctor(*, config: ConfigOption = CONFIG, output: OutputOption = Output.TABLE) -> None:
    """Look at configuration, certificates, disk, clock, autoscaler, account and groups; a remedy for what is wrong.

    Nothing is changed anywhere. Exit code 1 if something is wrong, 2 if the configuration cannot be read, 3 if the
    API does not answer.
    """
    loaded = load(config, environ=os.environ)
    set_up_logging("warning", "auto", secrets=secrets_of(loaded.config))  # what is found is told here, and not twice
    findings: list[Finding] = []
    for finding in _look(loaded):
        findings.append(finding)
        if output is Output.TABLE:
            typer.echo(f"{_SIGNS[finding.verdict]}  {finding.check}: {finding.seen}")
            if finding.remedy:
                typer.echo(f"      -> {finding.remedy}")
    if output is not Output.TABLE:
        show(output, [asdict(finding) for finding in findings])
    if any(finding.verdict is Verdict.WRONG for finding in findings):
        raise typer.Exit(EXIT_WRONG)
    if any(finding.verdict is Verdict.UNKNOWN and finding.check in _NEEDED for finding in findings):
        raise typer.Exit(EXIT_UNREACHABLE)


def _look(loaded: LoadedConfig) -> Iterator[Finding]:
    config, now = loaded.config, SystemClock().now()
    for problem in loaded.warnings:
        yield warning(f"configuration {problem.path}", problem.message, "docs/configuration.md has the keys of today")
    if not loaded.warnings:
        yield fine("configuration", f"{len(config.node_groups)} node groups, nothing odd")
    yield from machine.tls(config, now)
    yield from machine.volume(config)
    yield from machine.clock(config, now)
    yield from autoscaler.reach(config, now)
    yield from past.quota(config, now)
    yield from _account(config)


def _account(config: Config) -> Iterator[Finding]:
    try:
        backend = backend_of(config, None)
    except ConfigurationError as error:
        yield wrong("credentials", error.problems[0].message, "make a pair in Verda's console")
        return
    if backend.name == OWN_MACHINES:
        yield fine("credentials", "every machine is our own, so none are needed")
        return
    cloud = VerdaCloud(
        base_url=backend.base_url,
        client_id=backend.client_id,
        client_secret=backend.client_secret,
        limits=Limits(timeout=config.verda.timeout, rate_share=config.verda.rate_share),
        backend=backend.name,
    )
    try:
        yield from account.account(config, cloud)
    finally:
        cloud.close()
