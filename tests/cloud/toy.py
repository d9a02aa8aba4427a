"""A server on loopback that answers whatever a test tells it to, byte by byte if need be."""

import json
import socket
import ssl
import struct
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from app.domain.machine import Order
from app.domain.offering import Contract

INSTANCE = "5e1f0c9a-7b62-4d1e-9f0b-2a6c3d4e5f60"
OTHER = "6f2a1dab-8c73-4e2f-8a1c-3b7d4e5f6071"
VOLUME = "c3a1b2d4-0000-4000-8000-00000000a001"
SECRET = "s3cr3t-never-to-be-seen"
ORDER = Order(
    hostname="h100-k7p2q9x4",
    instance_type="1H100.80S.30V",
    image="ubuntu-24.04",
    location="FIN-01",
    contract=Contract.ON_DEMAND,
    description="ca:v1",
)
CERTIFICATE = Path(__file__).with_name("loopback.pem")
# Nothing in these tests takes this long; a hanging handler gives up even if a test forgets it.
LONGEST_HANG_S = 5.0


@dataclass(frozen=True, slots=True)
class Seen:
    """One request as the server got it; `connection` numbers the TCP connections from 1."""

    method: str
    path: str
    query: dict[str, str]
    headers: Mapping[str, str]
    body: Any
    connection: int


Reply = Callable[["Handler"], None]


class Handler(BaseHTTPRequestHandler):
    """Looks the reply up and lets it write."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def setup(self) -> None:
        """Number the connection."""
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.number = self.server.toy.next_connection()

    def answer(self) -> None:
        """Any method."""
        length = int(self.headers.get("Content-Length") or 0)
        raw = self.rfile.read(length)
        address = urlsplit(self.path)
        body = json.loads(raw) if raw else None
        query = dict(parse_qsl(address.query, keep_blank_values=True))
        seen = Seen(self.command, address.path, query, dict(self.headers.items()), body, self.number)
        self.server.toy.take(seen)(self)

    do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Quiet."""

    def send(self, status: int, body: bytes, content_type: str = "application/json", **headers: str) -> None:
        """A complete answer in one piece; underscores in header names stand for hyphens."""
        fields = {"Content_Type": content_type, "Content_Length": str(len(body)), **headers}
        lines = [f"HTTP/1.1 {status} Whatever", *(f"{name.replace('_', '-')}: {fields[name]}" for name in fields)]
        # In one write: two small ones on a kept connection cost 40 ms of delayed acknowledgement.
        self.wfile.write("\r\n".join([*lines, "", ""]).encode() + body)

    def drop(self, *, reset: bool = False) -> None:
        """Close the connection, in good order or with a reset."""
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.shutdown(socket.SHUT_RD)
        self.connection.close() if reset else self.connection.shutdown(socket.SHUT_WR)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    toy: "Toy"

    def handle_error(self, *_: object) -> None:
        """A client that went away is what these tests are about."""


class Toy:
    """The server, what it was asked, and what it shall answer."""

    def __init__(self, *, tls: bool = False) -> None:
        self.released = threading.Event()
        self._lock = threading.Lock()
        self._seen: list[Seen] = []
        self._replies: dict[tuple[str, str], deque[Reply]] = defaultdict(deque)
        self._connections = 0
        self._tokens = 0
        self._server = _Server(("127.0.0.1", 0), Handler)
        self._server.toy = self
        self._scheme = "http"
        if tls:
            self._scheme = "https"
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(CERTIFICATE)
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.002}, daemon=True).start()

    @property
    def port(self) -> int:
        """Where it listens."""
        return int(self._server.server_address[1])

    @property
    def base_url(self) -> str:
        """What a client is configured with."""
        return f"{self._scheme}://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        """Stop, and let hanging replies go. A second call does nothing."""
        if self.released.is_set():
            return
        self.released.set()
        self._server.shutdown()
        self._server.server_close()

    def on(self, method: str, path: str, *replies: Reply) -> None:
        """Answer so, one reply after the other; the last one stays. `path` is relative to the base."""
        with self._lock:
            self._replies[method, f"/v1{path}"] = deque(replies)

    def seen(self, method: str, path: str) -> list[Seen]:
        """The requests to one path, in order."""
        with self._lock:
            return [seen for seen in self._seen if (seen.method, seen.path) == (method, f"/v1{path}")]

    @property
    def all_seen(self) -> list[Seen]:
        """Every request, in order."""
        with self._lock:
            return list(self._seen)

    @property
    def logins(self) -> int:
        """How often a token was asked for."""
        return len(self.seen("POST", "/oauth2/token"))

    def next_connection(self) -> int:
        """A number for a new connection."""
        with self._lock:
            self._connections += 1
            return self._connections

    def take(self, seen: Seen) -> Reply:
        """Note a request and choose its reply."""
        with self._lock:
            self._seen.append(seen)
            replies = self._replies[seen.method, seen.path]
            if replies:
                return replies.popleft() if len(replies) > 1 else replies[0]
            if seen.path == "/v1/oauth2/token":
                self._tokens += 1
                return grant(f"token-{self._tokens}")
        return error(404, "not_found", "no such thing")


def grant(token: str, expires_in: object = 3600) -> Reply:
    """A successful login."""
    return ok(
        {
            "access_token": token,
            "refresh_token": "refresh",
            "scope": "cloud-api-v1",
            "token_type": "Bearer",
            "expires_in": expires_in,
        }
    )


def ok(value: object, status: int = 200, **headers: str) -> Reply:
    """JSON."""
    return lambda handler: handler.send(status, json.dumps(value).encode(), **headers)


def raw(body: bytes, status: int = 200, content_type: str = "text/plain", **headers: str) -> Reply:
    """Any bytes."""
    return lambda handler: handler.send(status, body, content_type, **headers)


def error(status: int, code: str | None, message: str | None, **headers: str) -> Reply:
    """The API's own error object."""
    return ok({"code": code, "message": message}, status, **headers)


def html(status: int) -> Reply:
    """A gateway's page."""
    return raw(b"<html><body><h1>Bad Gateway</h1></body></html>", status, "text/html")


def needs_token(token: str, then: Reply) -> Reply:
    """401 for any other token."""

    def reply(handler: Handler) -> None:
        good = handler.headers["Authorization"] == f"Bearer {token}"
        (then if good else error(401, "unauthorized_request", "Invalid token"))(handler)

    return reply


def nothing(handler: Handler) -> None:
    """204, which has no body."""
    handler.wfile.write(b"HTTP/1.1 204 No Content\r\n\r\n")


def written(answer: bytes) -> Reply:
    """These bytes, whatever they are, then the end."""

    def reply(handler: Handler) -> None:
        handler.wfile.write(answer)
        handler.drop()

    return reply


def hang(handler: Handler) -> None:
    """Never answer."""
    handler.server.toy.released.wait(LONGEST_HANG_S)
    handler.close_connection = True


def close(handler: Handler) -> None:
    """Close without an answer."""
    handler.drop()


def reset(handler: Handler) -> None:
    """Reset without an answer."""
    handler.drop(reset=True)


def cut(body: bytes, promised: int | None, status: int = 200) -> Reply:
    """Send less than promised, or promise nothing, then close."""

    def reply(handler: Handler) -> None:
        length = b"" if promised is None else b"Content-Length: %d\r\n" % promised
        handler.wfile.write(b"HTTP/1.1 %d Whatever\r\nConnection: close\r\n%s\r\n%s" % (status, length, body))
        handler.drop()

    return reply


def drip(head: bytes, dripping: bytes, every_s: float = 0.02) -> Reply:
    """Send the head at once and the rest byte by byte."""

    def reply(handler: Handler) -> None:
        handler.close_connection = True
        handler.wfile.write(head)
        for byte in dripping:
            if handler.server.toy.released.wait(every_s):
                return
            handler.wfile.write(bytes([byte]))

    return reply


def later(delay_s: float, then: Reply) -> Reply:
    """Answer after a while."""

    def reply(handler: Handler) -> None:
        handler.server.toy.released.wait(delay_s)
        then(handler)

    return reply


@contextmanager
def deaf_port() -> Iterator[int]:
    """A port that completes no connection: its queue is full and nobody takes from it."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        port = int(listener.getsockname()[1])
        fillers = [socket.socket() for _ in range(4)]
        try:
            for filler in fillers:
                filler.setblocking(False)
                filler.connect_ex(("127.0.0.1", port))
            yield port
        finally:
            for filler in fillers:
                filler.close()


def instance(**changes: object) -> dict[str, object]:
    """A machine as the API shows it."""
    return {
        "id": INSTANCE,
        "ip": "203.0.113.57",
        "status": "running",
        "created_at": "2026-10-04T07:12:31.482Z",
        "instance_type": "1H100.80S.30V",
        "hostname": "h100-k7p2q9x4",
        "description": "ca:v1 cluster=test installation=i group=h100",
        "location": "FIN-01",
        "is_spot": True,
        "contract": "SPOT",
        "price_per_hour": 0.8015,
        "image": "ubuntu-24.04",
        "os_volume_id": VOLUME,
        "volume_ids": [VOLUME],
        **changes,
    }
