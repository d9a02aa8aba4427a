"""`serve`: the provider itself."""

import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import FrameType
from typing import Annotated, NoReturn

import typer

from app.bootstrap import App, embedded_simulator, log_as_configured, wait_until_serving
from app.cli.options import NodesOption
from app.config.load import LoadedConfig, Overrides, given_file, load_given
from app.config.values import Refused, address
from app.errors import ConfigurationError, Problem, ProviderError, StoreHeld
from app.log import DebugSwitch, get_logger
from app.reload import Origin
from app.simulator.http import Simulator

_SIMULATOR_STATE = "simulator.json"
_FENCE_CHECK_S = 0.5
_STOPPING = (signal.SIGINT, signal.SIGTERM)
_log = get_logger()

ConfigOption = Annotated[
    Path | None, typer.Option("--config", "-c", help="The configuration file; config.yaml unless there are --nodes.")
]
PortOption = Annotated[int | None, typer.Option(help="gRPC port, in place of the configuration's.")]
HttpPortOption = Annotated[int | None, typer.Option(help="HTTP port, in place of the configuration's.")]
DatabaseOption = Annotated[str | None, typer.Option(help="Database file, in place of the configuration's.")]
LevelOption = Annotated[str | None, typer.Option(help="debug, info, warning or error.")]
TemplateOption = Annotated[str | None, typer.Option(help="Form of provider ids, in place of the configuration's.")]
SimulatorOption = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="Start the simulated cloud there and use it instead of Verda."),
]


def register(cli: typer.Typer) -> None:
    """Add the commands of this family."""
    cli.command("serve")(serve)


def serve(
    *,
    config: ConfigOption = None,
    nodes: NodesOption = None,
    provider_id_template: TemplateOption = None,
    port: PortOption = None,
    http_port: HttpPortOption = None,
    database: DatabaseOption = None,
    log_level: LevelOption = None,
    with_simulator: SimulatorOption = None,
) -> None:
    """Serve Cluster Autoscaler until told to stop.

    SIGINT and SIGTERM stop it; a second one ends it at once. SIGHUP reads the configuration again, which also happens
    by itself when the file changes. SIGUSR1 turns the debug log on and off.
    """
    overrides = Overrides(
        port=port,
        http_port=http_port,
        database=database,
        log_level=log_level,
        provider_id_template=provider_id_template,
    )

    def read() -> LoadedConfig:
        return load_given(config, nodes or (), environ=os.environ, overrides=overrides)

    path = given_file(config, nodes or (), os.environ)
    origin = None if path is None else Origin.before_reading(path, read)
    loaded = read()
    log_as_configured(loaded)
    for warning in loaded.warnings:
        _log.warning("configuration", where=f"{warning.source}:{warning.line}", path=warning.path, what=warning.message)
    stop = stop_on_signals()
    simulator = _simulator(with_simulator, loaded)
    try:
        if simulator is not None:
            simulator.start()
        app = App(loaded, simulator=simulator, origin=origin)
        signal.signal(signal.SIGHUP, lambda _number, _frame: app.read_configuration_again())
        _debug_on_signal()
        _run(app, loaded, stop)
    finally:
        if simulator is not None:
            simulator.stop()
    _leave()


def _leave() -> NoReturn:
    """End the process now: everything is stopped and durable, and a call that hangs must not delay it."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _run(app: App, loaded: LoadedConfig, stop: threading.Event) -> None:
    app.start()
    try:
        if wait_until_serving(app, stop):
            typer.echo(ready_line(app, loaded))
            sys.stdout.flush()
            while not stop.wait(_FENCE_CHECK_S):
                if app.ledger.fenced is not None:
                    raise StoreHeld(app.ledger.fenced)
    finally:
        app.stop()


def ready_line(app: App, loaded: LoadedConfig) -> str:
    """What a person sees once, and where to look next."""
    config = loaded.config
    return (
        f"ready: gRPC {config.listen}, http://{config.http.listen}/readyz, cloud: {app.backend}. "
        f"Try: {sys.argv[0]} status --database {config.database}"
    )


def _simulator(where: str | None, loaded: LoadedConfig) -> Simulator | None:
    if where is None:
        return None
    try:
        place = address(where)
    except Refused as refused:
        problem = Problem(source="command line", line=None, path="--with-simulator", message=f"{refused}, is {where!r}")
        raise ConfigurationError((problem,)) from refused
    state = Path(loaded.config.database).with_name(_SIMULATOR_STATE)
    try:
        return embedded_simulator(place.host, place.port, state)
    except OSError as error:
        raise ProviderError(f"the simulator cannot listen on {where}: {error.strerror}") from error


def _debug_on_signal() -> None:
    """SIGUSR1 has everything logged, the next one no longer: for when a restart would change what is to be seen."""
    switch = DebugSwitch()

    def _handle(_number: int, _frame: FrameType | None) -> None:
        _log.warning("log level changed by a signal", level=switch.flick())

    signal.signal(signal.SIGUSR1, _handle)


def stop_on_signals() -> threading.Event:
    """An event set by the first SIGINT or SIGTERM; the second ends the process at once, which the log survives.

    A handler of Python's own runs only when the main thread comes back to Python, which may be never if something
    hangs; so a thread hears of the signals as they arrive.
    """
    stop = threading.Event()
    hearing, telling = socket.socketpair()
    telling.setblocking(False)  # as set_wakeup_fd wants it

    def listen() -> None:
        numbers = (number for number in iter(lambda: hearing.recv(1)[0], None) if number in _STOPPING)
        next(numbers)
        stop.set()
        os._exit(128 + next(numbers))

    for number in _STOPPING:
        signal.signal(number, lambda *_: None)  # without a handler nothing would be told
    signal.set_wakeup_fd(telling.detach(), warn_on_full_buffer=False)
    threading.Thread(target=listen, name="signals", daemon=True).start()
    return stop
