"""The configuration: `config check`, `show`, `diff`, `schema`, `convert`."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from app.cli.options import DATABASE, DatabaseOption, NodesOption
from app.cli.render import Output, show
from app.config.convert import from_datacrunch, from_file, report
from app.config.difference import Change, differences, model_differences
from app.config.load import LoadedConfig, load_given
from app.config.schema import page
from app.config.specs import to_specs
from app.store.past import books_now
from app.store.reading import asking

EXIT_DIFFERENT = 1

ConfigOption = Annotated[Path, typer.Option("--config", "-c", help="The configuration file.")]
GivenOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="The configuration file; config.yaml unless there are --nodes.")
]
CONFIG = Path("config.yaml")


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    config = typer.Typer(
        help="The configuration: check it, show it whole, compare it, describe it to editors.",
        no_args_is_help=True,
        rich_markup_mode="markdown",
    )
    config.command("check")(check)
    config.command("show")(show_all)
    config.command("diff")(diff)
    config.command("schema")(schema)
    config.command("convert")(convert)
    cli.add_typer(config, name="config")


def _loaded(config: Path | None, nodes: Sequence[str] = ()) -> LoadedConfig:
    loaded = load_given(config, nodes, environ=os.environ)
    for warning in loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    return loaded


def check(*, config: GivenOption = None, nodes: NodesOption = None) -> None:
    """Read the configuration as `serve` would and say everything that is wrong or odd; exit code 2 if it is wrong."""
    loaded = _loaded(config, nodes or ())
    what = config or ("--nodes" if nodes else CONFIG)
    typer.echo(f"{what}: fine, {len(loaded.config.node_groups)} node groups")


def show_all(
    *,
    config: ConfigOption = CONFIG,
    output: Annotated[Output, typer.Option("--output", "-o", help="yaml or json.")] = Output.YAML,
) -> None:
    """The configuration with all defaults and what the environment adds; secrets are masked."""
    show(Output.YAML if output is Output.TABLE else output, _loaded(config).config.model_dump(mode="json"))


def diff(
    older: Annotated[
        Path | None, typer.Argument(help="Another file; without it, what the log says is in effect.")
    ] = None,
    *,
    config: ConfigOption = CONFIG,
    database: DatabaseOption = DATABASE,
) -> None:
    """What the configuration changes, key by key, in another file or in what is in effect; exit code 1 if anything."""
    after = _loaded(config)
    if older is None:
        changes: Iterable[Change] = _against_the_log(after, database)
    else:
        changes = differences(_loaded(older).config, after.config)
    changed = False
    for change in changes:
        changed = True
        typer.echo(str(change))
    if changed:
        raise typer.Exit(EXIT_DIFFERENT)
    typer.echo("no difference")


def _against_the_log(after: LoadedConfig, database: Path) -> Iterable[Change]:
    """The log knows the node groups, the budget and the cluster's name; of the rest it has a fingerprint."""
    with asking(database) as moment:
        books = books_now(moment)
    wanted = {spec.name: spec for spec in to_specs(after.config)}
    running = {name: group.spec for name, group in books.groups.items() if not group.retired}
    for name in dict.fromkeys((*books.group_order, *wanted)):
        yield from model_differences(f"node_groups.{name}", running.get(name), wanted.get(name))
    installation = books.installation
    if installation.max_hourly_cost != after.config.max_hourly_cost:
        before, now = installation.max_hourly_cost, after.config.max_hourly_cost
        yield Change(path="max_hourly_cost", before=str(before or "not set"), after=str(now or "not set"))
    cluster = after.config.cluster_name or installation.installation_id
    if installation.cluster_name != cluster:
        yield Change(path="cluster_name", before=installation.cluster_name, after=cluster)


def schema() -> None:
    """The JSON Schema of the configuration file, for editors and continuous integration."""
    typer.echo(page(), nl=False)


def convert(
    file: Annotated[
        Path | None, typer.Argument(help="The older tool's file; with --nodes a file with other settings.")
    ] = None,
    *,
    nodes: NodesOption = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write the file there, not over one.")] = None,
) -> None:
    """Make a configuration of ours from another tool's, and tell of every setting what became of it.

    Reads the Python provider's file, or the in-tree DataCrunch provider's flags and DATACRUNCH_* variables. The file
    goes to the standard output, the report to the standard error.
    """
    if file is None and not nodes:
        raise typer.BadParameter("name a file, or give the --nodes of the older tool")
    converted = from_datacrunch(nodes, file, os.environ) if nodes else from_file(file or CONFIG, os.environ)
    for line in report(converted.steps):
        typer.echo(line, err=True)
    for warning in converted.loaded.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if output is None:
        typer.echo(converted.text, nl=False)
        return
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise typer.BadParameter(f"cannot write {output}: {error.strerror}") from error
    with os.fdopen(descriptor, "w", encoding="utf-8") as target:
        target.write(converted.text)
