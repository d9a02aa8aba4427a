"""The control plane under /_sim: time, faults, acts of the platform and of people, and the truth."""

from app.simulator.exchange import Exchange
from app.simulator.server import HttpServer
from app.simulator.wire import Request, Response
from app.simulator.world import World


class Control:
    """Answers /_sim requests."""

    def __init__(self, world: World, exchange: Exchange, server: HttpServer) -> None:
        self._world = world
        self._exchange = exchange
        self._server = server

    def hold(self, request: Request) -> None:
        """Hold a request at a barrier."""

    def handle(self, request: Request) -> Response:
        """Answer a control request."""
        return Response(status=200, payload={"status": "ok"})
