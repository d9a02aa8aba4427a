"""Commands that look after the database: `verify`, `rebuild`, `backup`, `restore`, `claim`."""

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from app.admin.client import claim as take_over
from app.cli.options import DATABASE, DatabaseOption, NetworksOption, OutputOption
from app.cli.render import Output, Table, progress_bar, show
from app.clock import SystemClock, SystemIds
from app.domain.envelope import Cause
from app.domain.startup import RecordRestore
from app.errors import RuleViolation, StoreCorrupt
from app.ledger.backups import default_directory
from app.ledger.ledger import open_ledger
from app.store import backup as copies
from app.store import restore as restoring
from app.store.log import Head, head
from app.store.reading import reading, require
from app.store.rebuild import rebuild as fold_anew
from app.store.verify import verify as findings_of

DirectoryOption = Annotated[
    Path | None, typer.Option("--directory", help="Where copies are; the default is `backups` beside the database.")
]
_NEWEST = "newest"


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    for command in (verify, rebuild, backup, restore, claim):
        cli.command(command.__name__)(command)


def verify(*, database: DatabaseOption = DATABASE, output: OutputOption = Output.TABLE) -> None:
    """Prove that a database or a backup is what was written.

    Looks at the file's structure, the schema, the hash chain and its gaps, and folds the whole log to compare it with
    the projections. Also while a server writes it. Exit code 1 if anything is wrong.
    """
    found, end = _examined(database)
    if output is not Output.TABLE:
        show(
            output,
            {
                "sound": not found,
                "findings": found,
                "position": end and end.position,
                "head_hash": end and end.hash,
            },
        )
    elif end is not None:
        typer.echo(f"sound: {end.position} events, no gap, projections equal the log; head {end.hash}")
    else:
        for finding in found:
            typer.echo(finding)
    if found:
        raise typer.Exit(1)


def rebuild(*, database: DatabaseOption = DATABASE) -> None:
    """Fold the log into the projections anew.

    The server must be stopped.
    """
    with progress_bar("folding events") as progress:
        position = fold_anew(database, _holder("rebuild"), progress)
    typer.echo(f"the projections stand for position {position}")


def backup(
    *,
    database: DatabaseOption = DATABASE,
    directory: DirectoryOption = None,
    list_: Annotated[bool, typer.Option("--list", help="Only show the copies there are.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """Copy a database, also while a server writes it, and prove the copy.

    Copies made by hand are never cleared away.
    """
    place = directory or default_directory(database)
    if list_:
        found = copies.backups(place, database)
    else:
        made = copies.take(database, place, SystemClock().now(), copies.BackupReason.BY_HAND)
        with reading(made.path) as connection:
            findings = list(findings_of(connection))
        if findings:
            raise StoreCorrupt(f"{made.path} was made, and the database is not sound: {'; '.join(findings[:3])}")
        found = [made]
    rows = [{"path": str(one.path), **one.manifest.model_dump(mode="json")} for one in found]
    if output is not Output.TABLE:
        show(output, rows)
        return
    Table("path", "made_at", "reason", "position", "size", "head_hash").print(rows)


def restore(
    copy: Annotated[str, typer.Argument(help="The backup's file, or `newest`.")],
    *,
    database: DatabaseOption = DATABASE,
    directory: DirectoryOption = None,
    discard_newer: Annotated[
        bool, typer.Option("--discard-newer", help="Also if the database can be read and has more events.")
    ] = False,
    database_network_filesystems: NetworksOption = None,
) -> None:
    """Put a backup in the place of a database.

    The server must be stopped. The backup is proven first; what it replaces is kept beside it. At its next start the
    server takes in the machines that the backup does not know, and buys nothing that was wished for and not ordered
    when the backup was made.
    """
    chosen = _chosen(copy, directory or default_directory(database), database)
    if not discard_newer:
        restoring.refuse_to_lose(chosen, database)
    clock, ids = SystemClock(), SystemIds()
    once_reached = restoring.position_of(database)
    trusted = frozenset(database_network_filesystems or ())

    def record(incoming: Path) -> None:
        ledger = open_ledger(incoming, clock, _holder("restore"), trusted)
        try:
            cause = Cause(actor="operator", correlation_id=ids.token())
            ledger.execute(RecordRestore(once_reached=once_reached), cause)
        finally:
            ledger.close()

    done = restoring.restore(chosen, database, _holder("restore"), clock.now(), record)
    typer.echo(f"{database} is {chosen} now and ends at position {done.position}")
    if done.kept is not None:
        reached = "could not be read" if done.replaced_position is None else f"ended at {done.replaced_position}"
        typer.echo(f"what it replaced {reached} and is kept as {done.kept}")


def claim(
    installation: Annotated[str, typer.Argument(help="The installation, as the machines' marks name it.")],
    *,
    database: DatabaseOption = DATABASE,
    database_network_filesystems: NetworksOption = None,
) -> None:
    """Take over the machines of an earlier installation of this cluster.

    After a loss of the database: the server is not ready until it is told whose the machines are that carry its
    cluster's name. Readiness names them, their cost and the installation.
    """
    require(database)
    trusted = frozenset(database_network_filesystems or ())
    for sentence in take_over(database, installation, SystemClock(), SystemIds(), trusted):
        typer.echo(sentence)


def _examined(database: Path) -> tuple[list[str], Head | None]:
    try:
        copies.check(database)
        with reading(database) as connection:
            found = list(findings_of(connection))
            return found, None if found else head(connection)
    except StoreCorrupt as error:
        return [error.message], None


def _chosen(copy: str, directory: Path, database: Path) -> Path:
    if copy != _NEWEST:
        return Path(copy)
    newest = next(iter(copies.backups(directory, database)), None)
    if newest is None:
        raise RuleViolation(f"there is no backup of {database} in {directory}: name the file")
    return newest.path


def _holder(command: str) -> str:
    return f"`{command}`, process {os.getpid()} on {socket.gethostname()}"
