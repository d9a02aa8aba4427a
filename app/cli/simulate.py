"""`simulate`: the Verda API on this machine, with a world, faults and a control plane."""

from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.serve import stop_on_signals
from app.errors import ProviderError
from app.simulator.config import SimulatorConfig, load_config
from app.simulator.runner import run


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("simulate")(simulate)


def simulate(
    *,
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 8090,
    host: Annotated[
        str, typer.Option(help="Address to listen on; beyond loopback a control key is needed.")
    ] = "127.0.0.1",
    seed: Annotated[int | None, typer.Option(help="Same seed, same requests, same world.")] = None,
    time_factor: Annotated[float | None, typer.Option(help="Simulated seconds per real second.")] = None,
    config: Annotated[Path | None, typer.Option(help="A YAML file with the simulator's own settings.")] = None,
    state: Annotated[Path | None, typer.Option(help="Keep the world in this file between runs.")] = None,
) -> None:
    """Simulate the Verda API until told to stop.

    Its control plane is at /_sim, credentials are simulator/simulator.
    """
    settings = load_config(config) if config is not None else SimulatorConfig()
    changes: dict[str, Any] = {}
    if seed is not None:
        changes["seed"] = seed
    if state is not None:
        changes["state_file"] = state
    if time_factor is not None:
        changes["clock"] = settings.clock.model_copy(update={"mode": "scaled", "factor": time_factor})
    try:
        run(settings.model_copy(update=changes), host, port, stop_on_signals(), typer.echo)
    except OSError as error:
        raise ProviderError(f"the simulator cannot listen on {host}:{port}: {error.strerror}") from error
