"""Running the simulator in the foreground, for the command line."""

import sys
import threading
from collections.abc import Callable

from app.simulator.config import SimulatorConfig
from app.simulator.http import Simulator


def _print_line(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def run(
    config: SimulatorConfig,
    host: str,
    port: int,
    stop_event: threading.Event,
    announce: Callable[[str], object] = _print_line,
) -> None:
    """Serve until `stop_event` is set, then save and return. Announces one line once it accepts requests.

    Raises:
        ConfigurationError: a non-loopback host without a control key, or a state file that is no world.
        OSError: the address is taken.
    """
    with Simulator(config, host=host, port=port) as simulator:
        announce(
            f"verda-simulator ready: base url {simulator.base_url}, control {simulator.control_url}, "
            f"seed {simulator.world.state.seed}, clock {simulator.world.state.clock_mode}, profile {config.profile}"
        )
        stop_event.wait()
