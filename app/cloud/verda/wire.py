"""Sockets that keep a deadline and know how far a request has got.

`requests` limits only single socket reads, so a server that drips one byte a second holds a caller for hours, and a
name server that never answers is not limited at all. It also raises the same `ConnectionError` for a connection that
was refused and for one reset after the request was sent, which prove opposite things. Both are cured one layer down.
"""

import http.client
import io
import queue
import socket
import threading
from contextvars import ContextVar
from dataclasses import dataclass
from enum import IntEnum, auto
from typing import TYPE_CHECKING, Any

from requests.adapters import HTTPAdapter
from urllib3 import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection

from app.clock import Clock

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# More threads than this at once get connections of their own that are not kept.
KEPT_CONNECTIONS = 32


class Stage(IntEnum):
    """How far a request has got. Before SENT it is proven that not a byte of it has left."""

    WAITING = auto()
    RESOLVING = auto()
    CONNECTING = auto()
    CONNECTED = auto()
    SENT = auto()


@dataclass(slots=True, kw_only=True)
class Exchange:
    """One request and its answer under way. `deadline` is in the clock's monotonic seconds.

    `reusable` tells whether the connection may serve another exchange afterwards.
    """

    clock: Clock
    deadline: float
    connect_s: float
    silence_s: float
    reusable: bool
    stage: Stage = Stage.WAITING
    timed_out: bool = False

    def patience(self, longest_s: float) -> float:
        """Seconds the next step may take.

        Raises:
            TimeoutError: the deadline has passed.
        """
        left = self.deadline - self.clock.monotonic()
        if left <= 0:
            self.timed_out = True
            raise TimeoutError("the call's deadline has passed")
        return min(left, longest_s)


# Pooled connections serve whichever thread comes next; this tells them for which exchange they work right now.
CURRENT: ContextVar[Exchange] = ContextVar("exchange")


def resolve(host: str, port: int, longest_s: float) -> list[tuple[Any, ...]]:
    """`getaddrinfo` with a time limit, which the operating system's does not have.

    The helper thread of a look-up that was given up ends by itself when the resolver does, usually within a minute.

    Raises:
        OSError: no such host, or no answer in time (TimeoutError).
    """
    answer: queue.SimpleQueue[list[tuple[Any, ...]] | OSError] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            answer.put(list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)))
        except OSError as error:
            answer.put(error)
        except UnicodeError as error:
            answer.put(OSError(f"{host!r} is not a host name: {error}"))

    threading.Thread(target=look_up, name="verda-resolve", daemon=True).start()
    try:
        found = answer.get(timeout=longest_s)
    except queue.Empty:
        raise TimeoutError(f"the name {host} was not resolved within {longest_s:.1f} s") from None
    if isinstance(found, OSError):
        raise found
    return found


def connect(host: str, port: int, options: list[tuple[int, int, int | bytes]], exchange: Exchange) -> socket.socket:
    """A connected socket to the first address that answers, all addresses together within the deadline.

    Raises:
        OSError: none answered; the last address's reason.
    """
    exchange.stage = Stage.RESOLVING
    addresses = resolve(host, port, exchange.patience(exchange.connect_s))
    exchange.stage = Stage.CONNECTING
    problem = OSError(f"the name {host} has no address")
    for family, kind, protocol, _, address in addresses:
        connection = socket.socket(family, kind, protocol)
        try:
            for option in options:
                connection.setsockopt(*option)
            connection.settimeout(exchange.patience(exchange.connect_s))
            connection.connect(address)
            connection.settimeout(exchange.patience(exchange.connect_s))  # for the TLS handshake
        except OSError as error:
            connection.close()
            problem = error
        else:
            exchange.stage = Stage.CONNECTED
            return connection
    raise problem


class _PatientReader(io.RawIOBase):
    """The receiving end of a socket; every read, of headers too, gets only the time that is left."""

    def __init__(self, raw: io.RawIOBase, connection: socket.socket, exchange: Exchange) -> None:
        super().__init__()
        self._raw = raw
        self._connection = connection
        self._exchange = exchange

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int | None:
        self._connection.settimeout(self._exchange.patience(self._exchange.silence_s))
        try:
            return self._raw.readinto(buffer)
        except TimeoutError:
            self._exchange.timed_out = True
            raise

    def close(self) -> None:
        self._raw.close()
        super().close()


class _Response(http.client.HTTPResponse):
    """Reads status line, headers and body through a patient reader."""

    def __init__(self, sock: socket.socket, *args: Any, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        self.fp = io.BufferedReader(_PatientReader(self.fp.detach(), sock, CURRENT.get()))

    def begin(self) -> None:
        super().begin()
        # Not left to the server, which may close a connection that we asked it to close without saying so.
        self.will_close = self.will_close or not CURRENT.get().reusable


class _PlainConnection(HTTPConnection):
    """HTTP for the simulator and for tests."""

    response_class = _Response

    def _new_conn(self) -> socket.socket:
        return connect(self.host, self.port, list(self.socket_options or ()), CURRENT.get())

    def send(self, data: Any) -> None:
        _before_sending(self)
        super().send(data)


class _TlsConnection(HTTPSConnection):
    """The same over TLS."""

    response_class = _Response

    def _new_conn(self) -> socket.socket:
        return connect(self.host, self.port, list(self.socket_options or ()), CURRENT.get())

    def send(self, data: Any) -> None:
        _before_sending(self)
        super().send(data)


def _before_sending(connection: HTTPConnection) -> None:
    """Connect if need be; from here on the request may have been received."""
    exchange = CURRENT.get()
    if connection.sock is None:
        connection.connect()
    connection.sock.settimeout(exchange.patience(exchange.silence_s))
    exchange.stage = Stage.SENT


class _PlainPool(HTTPConnectionPool):
    ConnectionCls = _PlainConnection


class _TlsPool(HTTPSConnectionPool):
    ConnectionCls = _TlsConnection


class PatientAdapter(HTTPAdapter):
    """Makes `requests` use the connections above. It never retries: whoever calls decides what may be repeated."""

    def __init__(self) -> None:
        super().__init__(pool_connections=1, pool_maxsize=KEPT_CONNECTIONS, max_retries=0)

    def init_poolmanager(self, *args: Any, **kwargs: Any) -> None:
        """Called by `requests` at construction and after unpickling."""
        super().init_poolmanager(*args, **kwargs)
        self.poolmanager.pool_classes_by_scheme = {"http": _PlainPool, "https": _TlsPool}
