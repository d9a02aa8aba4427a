"""A Kubernetes API server for tests, as small as it can be and on a real socket: real JSON, real status codes.

It knows nodes: list with pages, watch with bookmarks, get, conditional delete, JSON patch; events; and the Secrets of
join tokens in kube-system. What it is told to do wrong
it does wrong: refuse, be slow, drop watches, forget versions, answer lists from an old cache.
"""

import base64
import json
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]

SECRETS = "/api/v1/namespaces/kube-system/secrets"
STAMP = "2026-01-05T00:00:00Z"


def node_json(name: str, provider_id: str = "", *, ready: str = "True", since: str = STAMP, **more: Any) -> Json:
    """A Node as a kubelet and the node controller make it, without uid and version."""
    spec: Json = {"podCIDR": "10.42.0.0/24"} | ({"providerID": provider_id} if provider_id else {})
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {"name": name, "creationTimestamp": STAMP, "labels": {"kubernetes.io/hostname": name}},
        "spec": spec | more.pop("spec", {}),
        "status": {
            "capacity": {"cpu": "32", "memory": "180388212Ki", "pods": "110", "nvidia.com/gpu": "1"},
            "allocatable": {"cpu": "31850m", "memory": "180285812Ki", "pods": "110", "nvidia.com/gpu": "1"},
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "lastHeartbeatTime": STAMP, "lastTransitionTime": STAMP},
                {
                    "type": "Ready",
                    "status": ready,
                    "lastHeartbeatTime": STAMP,
                    "lastTransitionTime": since,
                    "reason": "KubeletReady" if ready == "True" else "NodeStatusUnknown",
                    "message": "kubelet is posting ready status" if ready == "True" else "Kubelet stopped posting",
                },
            ],
            "addresses": [{"type": "InternalIP", "address": "10.0.0.7"}, {"type": "Hostname", "address": name}],
            "nodeInfo": {"bootID": "b007", "machineID": "m", "kubeletVersion": "v1.34.1", "architecture": "amd64"},
        },
    } | more


class ApiServer:
    """The server and the levers on it.

    `refusals`: verb → (HTTP status, message), for ever; `retry_after` goes with them. `page`: nodes a page, whatever
    the limit says. `cached`: what lists show instead of the truth. `garbage`: verb → body sent with status 200.
    """

    def __init__(self) -> None:
        self.refusals: dict[str, tuple[int, str]] = {}
        self.retry_after: str | None = None
        self.page: int | None = None
        self.garbage: dict[str, bytes] = {}
        self.requests: list[tuple[str, str, Mapping[str, list[str]]]] = []
        self.authorizations: list[str | None] = []
        self.bodies: list[Any] = []
        self.answered = 0
        self.abrupt = False
        self.hold = threading.Event()
        self.hold.set()
        self.changed = threading.Condition()
        self.events: dict[tuple[str, str], Json] = {}
        self.secrets: dict[str, Json] = {}
        self._objects: dict[str, Json] = {}
        self._log: list[tuple[int, Json]] = []
        self._version = 100
        self._oldest = 0
        self._epoch = 0
        self._watches = 0
        self._closing = False
        handler = type("Handler", (_Handler,), {"api": self})
        self._server = _Server(("127.0.0.1", 0), handler)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def start(self) -> None:
        """Answer."""
        self._thread.start()

    def stop(self) -> None:
        """Answer no more; every watch ends."""
        with self.changed:
            self._closing = True
            self._epoch += 1
            self.hold.set()
            self.changed.notify_all()
        self._server.shutdown()
        self._server.server_close()

    def put(self, value: Json) -> Json:
        """Create or change a node."""
        with self.changed:
            name = value["metadata"]["name"]
            self._version += 1
            known = self._objects.get(name)
            uid = known["metadata"]["uid"] if known else f"uid-{self._version}"
            metadata = {"uid": uid, **value["metadata"], "resourceVersion": str(self._version)}
            written: Json = value | {"metadata": metadata}
            self._objects[name] = written
            self._tell("MODIFIED" if known else "ADDED", written)
        return written

    def drop(self, name: str) -> None:
        """Delete a node."""
        with self.changed:
            self._version += 1
            gone = self._objects.pop(name)
            gone["metadata"]["resourceVersion"] = str(self._version)
            self._tell("DELETED", gone)

    def bookmark(self) -> None:
        """Tell watches how far they are, as the server does about once a minute."""
        with self.changed:
            self._version += 1
            self._tell("BOOKMARK", {"kind": "Node", "metadata": {"resourceVersion": str(self._version)}})

    def forget(self) -> None:
        """Compact: nobody can go on from a version before this one, and watches that want to are told so."""
        with self.changed:
            self._version += 1
            self._oldest = self._version
            self._log.clear()

    def drop_watches(self, *, abrupt: bool = False) -> None:
        """End every watch, as the server does after its time, or cut it in the middle."""
        with self.changed:
            self.abrupt = abrupt
            self._epoch += 1
            self.changed.notify_all()

    def wait_for_watches(self, count: int) -> None:
        """Wait until so many watches have been opened in all."""
        with self.changed:
            assert self.changed.wait_for(lambda: self._watches >= count, 60), f"{self._watches} watches, not {count}"

    def names(self) -> list[str]:
        """Of the nodes there are."""
        return list(self._objects)

    def version_of(self, name: str) -> str:
        """Of a node."""
        version: str = self._objects[name]["metadata"]["resourceVersion"]
        return version

    def verbs(self) -> list[str]:
        """What was asked, in order."""
        return [verb for verb, _, _ in self.requests]

    def _tell(self, kind: str, value: Json) -> None:
        self._log.append((self._version, {"type": kind, "object": json.loads(json.dumps(value))}))
        self.changed.notify_all()

    # --- what the handler asks

    def listing(self, query: Mapping[str, list[str]]) -> tuple[int, Json]:
        """A page of the list."""
        with self.changed:
            items = list(self._objects.values())
            begin, version = 0, str(self._version)
            if "continue" in query:
                token = json.loads(query["continue"][0])
                if token["version"] < self._oldest:
                    return 410, _status(410, "Expired", "The provided continue parameter is too old")
                begin, version = token["begin"], str(token["version"])
            limit = self.page or int(query.get("limit", ["0"])[0]) or len(items) + 1
            metadata: Json = {"resourceVersion": version}
            if begin + limit < len(items):
                metadata["continue"] = json.dumps({"begin": begin + limit, "version": int(version)})
            body = {"kind": "NodeList", "apiVersion": "v1", "metadata": metadata, "items": items[begin : begin + limit]}
            return 200, body

    def watching(self, since: int) -> Iterator[Json]:
        """Changes after a version until the watch is cut."""
        with self.changed:
            self._watches += 1
            epoch = self._epoch
            self.changed.notify_all()
        while True:
            with self.changed:
                if since < self._oldest:
                    yield {"type": "ERROR", "object": _status(410, "Expired", f"too old resource version: {since}")}
                    return
                news = [(version, change) for version, change in self._log if version > since]
                if not news:
                    if epoch != self._epoch or self._closing:
                        return
                    self.changed.wait(0.5)
                    continue
            for version, change in news:
                yield change
                since = version

    def object(self, name: str) -> tuple[int, Json]:
        """One node."""
        with self.changed:
            known = self._objects.get(name)
            return (200, known) if known is not None else (404, _missing(name))

    def delete(self, name: str, options: Json) -> tuple[int, Json]:
        """Delete under conditions."""
        with self.changed:
            known = self._objects.get(name)
            if known is None:
                return 404, _missing(name)
            for key, value in options.get("preconditions", {}).items():
                if known["metadata"][key] != value:
                    words = f"the {key} in the precondition ({value}) does not match {known['metadata'][key]}"
                    return 409, _status(409, "Conflict", words)
            if known["metadata"].get("finalizers"):
                if "deletionTimestamp" in known["metadata"]:
                    return 200, known
                return 200, self.put(known | {"metadata": known["metadata"] | {"deletionTimestamp": STAMP}})
            self.drop(name)
            return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def post_event(self, path: str, event: Json) -> tuple[int, Json]:
        """In the namespace of the path, once for each name."""
        namespace, name = event["metadata"]["namespace"], event["metadata"]["name"]
        assert path == f"/api/v1/namespaces/{namespace}/events"
        with self.changed:
            if (namespace, name) in self.events:
                return 409, _status(409, "AlreadyExists", f'events "{name}" already exists')
            self.events[namespace, name] = event
        return 201, event

    def post_secret(self, secret: Json) -> tuple[int, Json]:
        """Stored as the API server does it: what came as text is kept in base64; join tokens need a fitting name."""
        name, text = secret["metadata"]["name"], secret.pop("stringData")
        assert secret["metadata"]["namespace"] == "kube-system"
        with self.changed:
            if name in self.secrets:
                return 409, _status(409, "AlreadyExists", f'secrets "{name}" already exists')
            secret["data"] = {key: base64.b64encode(value.encode()).decode() for key, value in text.items()}
            self.secrets[name] = secret
        return 201, secret

    def secret(self, name: str) -> tuple[int, Json]:
        """One of them."""
        with self.changed:
            known = self.secrets.get(name)
        return (200, known) if known is not None else (404, _missing(name, "secrets"))

    def delete_secret(self, name: str) -> tuple[int, Json]:
        """Whatever is in it."""
        with self.changed:
            if self.secrets.pop(name, None) is None:
                return 404, _missing(name, "secrets")
        return 200, {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}

    def patch(self, name: str, operations: list[Json]) -> tuple[int, Json]:
        """RFC 6902 as far as needed, all or nothing, with the API server's rule for provider ids."""
        with self.changed:
            known = self._objects.get(name)
            if known is None:
                return 404, _missing(name)
            patched: Json = json.loads(json.dumps(known))
            try:
                for operation in operations:
                    _apply(patched, operation)
            except (KeyError, IndexError, AssertionError):
                words = "the server rejected our request due to an error in our request"
                return 422, _status(422, "Invalid", words)
            before, after = known["spec"].get("providerID", ""), patched["spec"].get("providerID", "")
            if before not in {"", after}:
                return 422, _status(422, "Invalid", "spec.providerID: Forbidden: node updates may not change it")
            return 200, self.put(patched)


def _apply(value: Any, operation: Json) -> None:
    *parents, last = [part.replace("~1", "/").replace("~0", "~") for part in operation["path"].split("/")[1:]]
    for part in parents:
        value = value[int(part)] if isinstance(value, list) else value[part]
    key = int(last) if isinstance(value, list) else last
    match operation["op"]:
        case "test":
            assert value[key] == operation["value"]
        case "add":
            value[key] = operation["value"]
        case "remove":
            del value[key]
        case unknown:
            raise NotImplementedError(unknown)


def _status(code: int, reason: str, message: str) -> Json:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": reason,
        "code": code,
    }


def _missing(name: str, kind: str = "nodes") -> Json:
    return _status(404, "NotFound", f'{kind} "{name}" not found')


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has hung up is none of ours; anything else is."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    api: ApiServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class calls it that
        """Nothing to stderr."""

    def do_GET(self) -> None:
        """List, watch or get."""
        if self.path.startswith(SECRETS):
            if self._admit("get secret", {}):
                self._answer(*self.api.secret(self.path.rpartition("/")[2]))
            return
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        name = parts.path.removeprefix("/api/v1/nodes").strip("/")
        verb = "get" if name else "watch" if "watch" in query else "list"
        if not self._admit(verb, query):
            return
        if verb == "watch":
            self._watch(int(query["resourceVersion"][0]))
        else:
            self._answer(*(self.api.object(name) if name else self.api.listing(query)))

    def do_DELETE(self) -> None:
        """Delete one."""
        body = self._read()
        if self.path.startswith(SECRETS):
            if self._admit("delete secret", {}):
                self._answer(*self.api.delete_secret(self.path.rpartition("/")[2]))
        elif self._admit("delete", {}):
            self._answer(*self.api.delete(self.path.rpartition("/")[2], body))

    def do_POST(self) -> None:
        """Make an event or a Secret."""
        body = self._read()
        if self.path == SECRETS:
            if self._admit("post secret", {}):
                self._answer(*self.api.post_secret(body))
        elif self._admit("post", {}):
            self._answer(*self.api.post_event(self.path, body))

    def do_PATCH(self) -> None:
        """Merge into one."""
        body = self._read()
        assert self.headers["Content-Type"] == "application/json-patch+json"
        if self._admit("patch", {}):
            self._answer(*self.api.patch(self.path.rpartition("/")[2], body))

    def _read(self) -> Any:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.api.bodies.append(json.loads(json.dumps(body)))
        return body

    def _admit(self, verb: str, query: Mapping[str, list[str]]) -> bool:
        with self.api.changed:
            self.api.requests.append((verb, self.path, query))
            self.api.authorizations.append(self.headers["Authorization"])
            self.api.changed.notify_all()
        self.api.hold.wait(60)
        if verb in self.api.garbage:
            self._send(200, self.api.garbage[verb])
            return False
        code, words = self.api.refusals.get(verb, (0, ""))
        if code:
            body = _status(code, "Because", words)
            self._send(code, json.dumps(body).encode() if words else b"<html>a proxy</html>")
        return not code

    def _answer(self, code: int, body: Json) -> None:
        self._send(code, json.dumps(body).encode())

    def _send(self, code: int, body: bytes) -> None:
        self.api.answered += 1
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if self.api.retry_after is not None:
            self.send_header("Retry-After", self.api.retry_after)
        self.end_headers()
        self.wfile.write(body)

    def _watch(self, since: int) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        try:
            for change in self.api.watching(since):
                line = json.dumps(change).encode() + b"\n"
                self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
                self.wfile.flush()
            if self.api.abrupt:
                self.close_connection = True
                return
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True
