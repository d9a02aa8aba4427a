"""`script-server`: startup scripts for whoever asks by group and host name, without a provider beside it."""

import os
from pathlib import Path
from typing import Annotated

import typer

from app.bootstrap import log_as_configured
from app.cli.options import NodesOption
from app.cli.serve import stop_on_signals
from app.cloud.verda.cloud import VerdaCloud
from app.clouds import backend_of, may_rent
from app.config.load import load_given
from app.config.scripts import sources
from app.config.specs import to_specs
from app.config.values import Refused, address
from app.errors import ConfigurationError, Problem
from app.web.scripts import Shop, plain_pages
from app.web.server import WebServer


def register(cli: typer.Typer) -> None:
    """Add the command."""
    cli.command("script-server")(script_server)


def script_server(
    *,
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The configuration file.")] = None,
    nodes: NodesOption = None,
    listen: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address to serve on.")] = "127.0.0.1:8088",
    token_file: Annotated[Path | None, typer.Option(help="A file with the token that everybody has to show.")] = None,
) -> None:
    """Serve startup scripts to whoever asks by group and host name.

    They are the configuration's, at /script?node_group=…&hostname=…, until it is told to stop.
    `serve` can do it as well, with a token for each machine that works once; prefer that.
    """
    loaded = load_given(config, nodes or (), environ=os.environ)
    log_as_configured(loaded)
    try:
        place = address(listen)
    except Refused as refused:
        raise _wrong("--listen", str(refused)) from refused
    token = _token(token_file)
    if token is None and not place.is_loopback():
        raise _wrong("--token-file", f"is needed: other machines can reach {listen}, and scripts hold secrets")
    if not may_rent(loaded.config):
        raise _wrong("--config", "has no group with a startup script: all machines are our own")
    backend = backend_of(loaded.config, None)
    cloud = VerdaCloud(
        base_url=backend.base_url,
        client_id=backend.client_id,
        client_secret=backend.client_secret,
        backend=backend.name,
    )
    shop = Shop(
        specs={spec.name: spec for spec in to_specs(loaded.config)},
        sources=sources(loaded.config),
        catalogue={kind.name: kind for kind in cloud.instance_types()},
        cluster=loaded.config.cluster_name or "",
        token=token,
    )
    stop = stop_on_signals()
    server = WebServer(plain_pages(shop), place.host, place.port)
    server.start()
    typer.echo(f"ready: http://{server.host}:{server.port}/script for {', '.join(shop.sources) or 'no group'}")
    stop.wait()
    server.stop()
    cloud.close()


def _token(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        token = path.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong("--token-file", f"cannot be read: {type(error).__name__}") from error
    if not token:
        raise _wrong("--token-file", "holds no token")
    if not token.isascii() or not token.isprintable():
        raise _wrong("--token-file", "must hold printable ASCII characters: make a token with `openssl rand -hex 32`")
    return token


def _wrong(flag: str, message: str) -> ConfigurationError:
    return ConfigurationError((Problem(source="command line", line=None, path=flag, message=message),))
