"""`certs`: a private authority with a certificate for the server and one for the autoscaler, to begin with."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Annotated

import typer

from app.certificates import Pair, authority_of, is_name, issue, make_authority
from app.clock import SystemClock
from app.errors import ProviderError

_CA = ("ca.crt", "ca.key")
_SERVER = ("tls.crt", "tls.key")
_CLIENT = ("client.crt", "client.key")
_NAMES = ("verda-cloud-provider", "verda-cloud-provider.kube-system.svc", "localhost", "127.0.0.1", "::1")


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("certs")(certs)


def certs(
    directory: Annotated[Path, typer.Argument(help="Where the files are put.")] = Path("certs"),
    *,
    name: Annotated[
        list[str] | None,
        typer.Option("--name", "-n", help="A DNS name or address by which the autoscaler reaches the server; many."),
    ] = None,
    client: Annotated[str, typer.Option(help="Name in the autoscaler's certificate.")] = "cluster-autoscaler",
    days: Annotated[int, typer.Option(min=1, max=3650, help="How long the two are good; the authority 3650.")] = 365,
) -> None:
    """Make a private authority with a certificate for the server and one for the autoscaler.

    If the directory has an authority of an earlier call, it signs again: the two certificates are renewed, and nobody
    has to trust anything new. Keep `ca.key` away from the cluster.
    """
    now, lifetime = SystemClock().now(), timedelta(days=days)
    names = tuple(name) if name else _NAMES
    for one, option in (*((each, "--name") for each in names), (client, "--client")):
        if not is_name(one):
            message = f"{one!r} is neither a DNS name such as provider.example.com nor an IP address"
            raise typer.BadParameter(message, param_hint=option)
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        authority = _authority(directory)
        server = issue(authority, names, is_server=True, now=now, lifetime=lifetime)
        autoscaler = issue(authority, (client,), is_server=False, now=now, lifetime=lifetime)
        for files, pair in ((_SERVER, server), (_CLIENT, autoscaler)):
            _write(directory, files, pair)
    except OSError as error:
        raise ProviderError(f"cannot write {error.filename or directory}: {error.strerror}") from error
    typer.echo(f"for {', '.join(names)}, good for {days} days, in {directory}:")
    typer.echo("  the server's configuration: tls: {cert: tls.crt, key: tls.key, client_ca: ca.crt}")
    typer.echo("  the autoscaler's cloud config: cert: client.crt, key: client.key, cacert: ca.crt")
    typer.echo("  ca.key signs the next ones; it belongs neither into the cluster nor into version control")


def _authority(directory: Path) -> Pair:
    certificate, key = (directory / file for file in _CA)
    if certificate.exists() != key.exists():
        missing = key if certificate.exists() else certificate
        raise ProviderError(f"{missing} is missing beside its other half: put it there, or begin in an empty directory")
    if not certificate.exists():
        made = make_authority("verda-cloud-provider authority", SystemClock().now())
        _write(directory, _CA, made)
        return made
    try:
        return authority_of(certificate.read_bytes(), key.read_bytes())
    except (ValueError, TypeError) as error:
        raise ProviderError(f"{certificate} and {key} are no authority of ours: {error}") from error


def _write(directory: Path, files: tuple[str, str], pair: Pair) -> None:
    """Each file appears whole under its name, the key first: a server that reads them again never sees half of one."""
    for file, content, mode in ((files[1], pair.key_pem, 0o600), (files[0], pair.certificate_pem, 0o644)):
        target = directory / file
        fresh = target.with_name(f".{file}.new")
        fresh.unlink(missing_ok=True)
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
        fresh.replace(target)
