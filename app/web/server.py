"""The HTTP server: uvicorn on a thread of its own."""

import socket
import threading

import uvicorn
from starlette.types import ASGIApp

from app.errors import ProviderError

_START_TIMEOUT_S = 10.0
_STOP_TIMEOUT_S = 2.0


class WebError(ProviderError):
    """The address cannot be listened on."""


class WebServer:
    """Pages on one address. The socket is bound at construction, so a taken port is known before anything starts.

    Raises:
        WebError: the address is taken or not ours.
    """

    def __init__(self, pages: ASGIApp, host: str, port: int) -> None:
        try:
            self._socket = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        except OSError as error:
            raise WebError(f"cannot listen on {host}:{port}: {error.strerror}") from error
        self.host: str = host
        self.port: int = self._socket.getsockname()[1]
        config = uvicorn.Config(
            pages, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1, server_header=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, name="web", daemon=True)

    def _serve(self) -> None:
        self._server.run(sockets=[self._socket])

    def start(self) -> None:
        """Begin to answer."""
        self._thread.start()

    def stop(self) -> None:
        """Take no more requests and wait briefly for those under way."""
        self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(_STOP_TIMEOUT_S)
        self._socket.close()
