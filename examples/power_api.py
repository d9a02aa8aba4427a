"""A power API to try webhook node groups against: machines that are only words.

    python examples/power_api.py 8090

POST /<machine>/start and /<machine>/stop switch, GET /<machine>/status answers {"status": "on"}, "booting" or "off".
A real one would speak to IPMI, a smart plug or a hypervisor, and should be as harmless to call twice.
"""

import json
import sys
import threading
import time
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class PowerApi(ThreadingHTTPServer):
    """Machines by name; each boots for a while after it was started. `calls` is everything that was asked."""

    daemon_threads = True

    def __init__(self, port: int = 0, boot_s: float = 0.0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.boot_s = boot_s
        self.started: dict[str, float] = {}
        self.calls: list[tuple[str, str]] = []
        self.answers: list[int] = []
        self.guard = threading.Lock()

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.server_port}"

    def status(self, machine: str) -> str:
        """On, booting or off."""
        since = self.started.get(machine)
        if since is None:
            return "off"
        return "on" if time.monotonic() - since >= self.boot_s else "booting"

    def switch(self, machine: str, action: str) -> int:
        """Do it, and the HTTP status to answer; a status in `answers` is answered instead."""
        with self.guard:
            self.calls.append((machine, action))
            if self.answers:
                return self.answers.pop(0)
            if action == "start":
                self.started.setdefault(machine, time.monotonic())
            elif action == "stop":
                self.started.pop(machine, None)
            else:
                return HTTPStatus.NOT_FOUND
            return HTTPStatus.OK


class _Handler(BaseHTTPRequestHandler):
    server: PowerApi

    def do_POST(self) -> None:
        """Switch."""
        self.rfile.read(int(self.headers.get("Content-Length", "0")))
        machine, _, action = self.path.strip("/").rpartition("/")
        self._answer(self.server.switch(machine, action), {"machine": machine})

    def do_GET(self) -> None:
        """Tell."""
        machine, _, what = self.path.strip("/").rpartition("/")
        status = HTTPStatus.OK if what == "status" else HTTPStatus.NOT_FOUND
        self._answer(status, {"status": self.server.status(machine)})

    def _answer(self, status: int, body: dict[str, str]) -> None:
        content = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: `calls` remembers."""


if __name__ == "__main__":
    api = PowerApi(int(sys.argv[1]) if len(sys.argv) > 1 else 8090, boot_s=20)
    print(f"power API on {api.url}")
    api.serve_forever()
