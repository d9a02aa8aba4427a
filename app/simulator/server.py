"""A threading HTTP/1.1 server from the standard library that can also misbehave on purpose."""

import contextlib
import http.client
import io
import math
import socket
import struct
import threading
from collections.abc import Callable
from http import HTTPStatus

from app.simulator.exchange import Delivery
from app.simulator.fault_model import Close, Drip, Hang, Reset, Truncate
from app.simulator.wire import Request, Response

Answer = Callable[[Request], Delivery]

_MAX_BODY = 4 * 1024 * 1024
_MAX_LINE = 65_536
_ACCEPT_POLL_S = 0.2
_BACKLOG = 512
_HANG_POLL_S = 0.05


class HttpServer:
    """Accepts connections on one address and answers requests through a function.

    One thread per connection, keep-alive, header and body in one send, TCP_NODELAY: two small writes on a kept
    connection would cost 40 ms each through delayed acknowledgements. `connections_opened` counts connections that
    carried a request outside `uncounted`.
    """

    def __init__(
        self, host: str, port: int, answer: Answer, date: Callable[[], str], *, uncounted: str = "/_sim"
    ) -> None:
        self._uncounted = uncounted
        self._answer = answer
        self._date = date
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._mine = threading.local()
        self._connections: set[socket.socket] = set()
        self._listener: socket.socket | None = self._listen(host, port)
        address = self._listener.getsockname()
        self.host: str = address[0]
        self.port: int = address[1]
        self.connections_opened = 0
        self._thread = threading.Thread(target=self._accept, name="simulator-accept", daemon=True)

    def start(self) -> None:
        """Begin to accept."""
        self._thread.start()

    def stop(self) -> None:
        """Stop accepting, break every connection, wait for the accepting thread."""
        self._stopping.set()
        with self._lock, contextlib.suppress(OSError):
            if self._listener is not None:
                self._listener.shutdown(socket.SHUT_RDWR)  # wakes accept at once where the system allows it
        if self._thread.ident is not None:
            self._thread.join(timeout=5)
        with self._lock:
            if self._listener is not None:
                self._listener.close()
        self._drop_all()

    def sleep(self, seconds: float) -> None:
        """Wait, but not beyond the end of the server."""
        self._stopping.wait(seconds)

    def go_down(self, seconds: float) -> None:
        """Refuse connections and break the open ones for a while, but for the one this was asked on."""
        with self._lock:
            listener, self._listener = self._listener, None
        if listener is not None:
            listener.close()
        self._drop_all(spare=getattr(self._mine, "connection", None))
        threading.Thread(target=self._come_back, args=(seconds,), name="simulator-listener", daemon=True).start()

    def _come_back(self, seconds: float) -> None:
        if not self._stopping.wait(seconds):
            listener = self._listen(self.host, self.port)
            with self._lock:
                self._listener = listener

    @staticmethod
    def _listen(host: str, port: int) -> socket.socket:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=_BACKLOG)
        listener.settimeout(_ACCEPT_POLL_S)
        return listener

    def _accept(self) -> None:
        while not self._stopping.is_set():
            with self._lock:
                listener = self._listener
            if listener is None:
                self._stopping.wait(0.01)
                continue
            try:
                connection, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:  # closed under us by go_down
                continue
            with self._lock:
                self._connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), name="simulator-connection", daemon=True).start()

    def _drop_all(self, spare: socket.socket | None = None) -> None:
        with self._lock:
            open_now = [connection for connection in self._connections if connection is not spare]
        for connection in open_now:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def _serve(self, connection: socket.socket) -> None:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        reader = connection.makefile("rb")
        self._mine.connection = connection
        counted = False
        try:
            while not self._stopping.is_set():
                request = read_request(reader)
                if request is None:
                    return
                if not counted and not request.path.startswith(self._uncounted):
                    counted = True
                    with self._lock:
                        self.connections_opened += 1
                if not self._deliver(connection, request, self._answer(request)):
                    return
        except OSError:  # the client went away, or a fault broke the connection
            return
        finally:
            with self._lock:
                self._connections.discard(connection)
            reader.close()
            connection.close()

    def _deliver(self, connection: socket.socket, request: Request, delivery: Delivery) -> bool:
        """Send an answer in its manner; returns whether the connection lives on."""
        if delivery.delay_s:
            self.sleep(delivery.delay_s)
        keep = request.headers.get("connection", "").lower() != "close" and self._listener is not None
        match delivery.manner:
            case Hang(seconds=seconds):
                self._hang(connection, seconds)
                return False
            case Reset():
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return False
            case Close():
                return False
            case Truncate(bytes=count, with_length=with_length):
                head, body = self._render(delivery.response, keep=False, with_length=with_length)
                connection.sendall(head + body[:count])
                return False
            case Drip(bytes=count, interval_s=interval):
                head, body = self._render(delivery.response, keep=keep)
                connection.sendall(head)
                for start in range(0, len(body), max(1, count)):
                    self.sleep(interval)
                    connection.sendall(body[start : start + max(1, count)])
                return keep
            case None:
                head, body = self._render(delivery.response, keep=keep)
                connection.sendall(head + body)
                return keep

    def _hang(self, connection: socket.socket, seconds: float) -> None:
        """Say nothing for so long, or until the client has given up."""
        connection.settimeout(_HANG_POLL_S)
        for _ in range(math.ceil(seconds / _HANG_POLL_S)):
            try:
                if not connection.recv(1, socket.MSG_PEEK):
                    return
            except TimeoutError:
                continue
            if self._stopping.wait(_HANG_POLL_S):
                return

    def _render(self, response: Response, *, keep: bool, with_length: bool = True) -> tuple[bytes, bytes]:
        body = response.body()
        try:
            phrase = HTTPStatus(response.status).phrase
        except ValueError:
            phrase = "Unknown"
        lines = [f"HTTP/1.1 {response.status} {phrase}", "Server: verda-simulator", f"Date: {self._date()}"]
        if body:
            lines.append(f"Content-Type: {response.content_type}")
        if with_length and response.status != HTTPStatus.NO_CONTENT:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in response.headers.items()]
        lines.append(f"Connection: {'keep-alive' if keep else 'close'}")
        return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), body


def read_request(reader: io.BufferedIOBase) -> Request | None:
    """The next request on a connection; None when there is none or it is no HTTP."""
    line = reader.readline(_MAX_LINE)
    words = line.decode("latin-1").split()
    if len(words) != 3 or not words[2].startswith("HTTP/1."):  # noqa: PLR2004 - method, target, version
        return None
    try:
        parsed = http.client.parse_headers(reader)
    except http.client.HTTPException:
        return None
    headers = {name.lower(): value for name, value in parsed.items()}
    length = headers.get("content-length", "0")
    if not length.isdigit() or int(length) > _MAX_BODY or "transfer-encoding" in headers:
        return None
    body = reader.read(int(length)) if int(length) else b""
    if len(body) < int(length):
        return None
    if words[2] == "HTTP/1.0":
        headers.setdefault("connection", "close")
    return Request.of(words[0], words[1], headers, body)
