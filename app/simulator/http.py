"""The simulated Verda API over HTTP: data plane under /v1, control plane under /_sim."""

import email.utils
import threading
from types import TracebackType
from typing import Self

from app.clock import Clock
from app.errors import ConfigurationError, Problem
from app.simulator.config import SimulatorConfig
from app.simulator.control import Control
from app.simulator.exchange import Delivery, Exchange
from app.simulator.server import HttpServer
from app.simulator.storage import StateFile
from app.simulator.wire import Request
from app.simulator.world import World

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})


class Simulator:
    """A running simulated cloud.

    `Simulator(config).start()` listens on a free loopback port; `base_url` is what the Verda SDK takes as its own, and
    `control_url` is the root of the control plane. Also a context manager.

    Raises:
        ConfigurationError: a non-loopback host without a control key, or a state file that is no world.
        OSError: the address is taken.
    """

    def __init__(
        self,
        config: SimulatorConfig | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        clock: Clock | None = None,
    ) -> None:
        self.config = config or SimulatorConfig()
        if host not in _LOOPBACK and self.config.control and self.config.control_key is None:
            message = f"listening on {host} needs a control_key, or control: false"
            raise ConfigurationError((Problem(source="simulator", line=None, path="control_key", message=message),))
        self.world = World(self.config, clock)
        self.exchange = Exchange(self.world)
        self._store = StateFile(self.config.state_file, self.world) if self.config.state_file else None
        if self._store is not None:
            self._store.load()
        self._server = HttpServer(host, port, self._answer, self._date)
        self._control = Control(self.world, self.exchange, self._server)
        self._stopped = threading.Event()

    @property
    def host(self) -> str:
        """The address it listens on."""
        return self._server.host

    @property
    def port(self) -> int:
        """The port it listens on."""
        return self._server.port

    @property
    def base_url(self) -> str:
        """What a client is given instead of https://api.verda.com/v1."""
        return f"{self._origin}/v1"

    @property
    def control_url(self) -> str:
        """The root of the control plane."""
        return f"{self._origin}/_sim"

    @property
    def _origin(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    def start(self) -> Self:
        """Begin to serve; returns itself."""
        if self._store is not None:
            self._store.start()
        self._server.start()
        return self

    def stop(self) -> None:
        """Stop serving and save the world; a second call does nothing."""
        if self._stopped.is_set():
            return
        self._stopped.set()
        self._server.stop()
        if self._store is not None:
            self._store.stop()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _answer(self, request: Request) -> Delivery:
        if request.path.startswith("/_sim"):
            return Delivery(response=self._control.handle(request))
        with self.exchange.under_way():
            self._control.hold(request)
            self._lag(request)
            delivery = self.exchange.perform(request, self._server.sleep)
            if self._store is not None and delivery.response.committed:
                self._store.save_now()
            return delivery

    def _lag(self, request: Request) -> None:
        """The time a real round trip takes, before anything happens; the later half is not modelled."""
        latency, scale = self.world.config.latency, self.world.config.latency_scale
        if not scale:
            return
        span = latency.read if request.method == "GET" else latency.write
        if request.path.endswith("/oauth2/token"):
            span = latency.token
        with self.world.lock:
            generator = self.world.core.chance.stream("latency", self.exchange.requests)
        self._server.sleep(span.draw(generator) * scale)

    def _date(self) -> str:
        with self.world.lock:
            shown_ms = self.world.state.now_ms + self.world.state.skew_ms
        return email.utils.formatdate(shown_ms / 1000, usegmt=True)
