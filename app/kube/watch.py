"""A picture of all nodes that follows the API server's: list once, then watch, begin anew when it has moved on."""

import threading
from collections.abc import Sequence
from typing import Final

from app.clock import Clock
from app.domain.cluster.node import Node
from app.errors import ClusterError, ClusterUnavailable
from app.kube.api import Api, Expired, Json
from app.kube.wire import read_bookmark, read_node, read_page
from app.log import get_logger

NODES: Final = "/api/v1/nodes"
_PAGE: Final = "500"
_WATCH_S: Final = "300"
_STALE_S: Final = 300.0
"""A living watch is heard of at least every `Limits.silence`; this is for one whose thread has died."""
_LIFE_S: Final = 5.0
"""A watch that was open for so long was one, although nothing has happened: bookmarks come once a minute."""
_LONGEST_PAUSE_S: Final = 30.0

_log = get_logger(job="cluster")


class NodeWatch:
    """The picture and the thread that keeps it. A whole list replaces it at once; nobody ever sees half of one."""

    def __init__(self, api: Api, clock: Clock) -> None:
        self._api = api
        self._clock = clock
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self._nodes: dict[str, Node] | None = None
        self._version: str | None = None
        self._heard_at = clock.monotonic()
        self._trouble: ClusterError | None = None
        self._lists = 0
        self._failures = 0
        self._thread = threading.Thread(target=self._run, name="node-watch", daemon=True)

    @property
    def lists(self) -> int:
        """How often the whole list was read."""
        return self._lists

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """Follow no longer. A read under way ends when the connections are closed."""
        self._stop.set()

    def nodes(self) -> Sequence[Node]:
        """The picture.

        Raises:
            ClusterError: there is none, or it cannot be kept up to date at the moment.
        """
        with self._changed:
            if self._trouble is not None:
                raise self._trouble
            if self._nodes is None:
                raise ClusterUnavailable("the nodes have not been listed yet")
            if self._clock.monotonic() - self._heard_at > _STALE_S:
                raise ClusterUnavailable("nothing was heard of the nodes for too long")
            return tuple(self._nodes.values())

    def _run(self) -> None:
        while not self._stop.is_set():
            self._keep()
            self._stop.wait(self._pause_s())

    def _keep(self) -> None:
        """One watch, and what its end says."""
        try:
            self._follow()
        except Expired:
            self._version = None
            self._failures += 1
        except ClusterError as error:
            self._fail(error)
        except Exception:  # noqa: BLE001 - the edge of a thread: the picture grows stale and everybody sees why
            _log.exception("watching nodes broke off")
            self._fail(ClusterUnavailable("watching nodes broke off, see the log"))

    def _fail(self, error: ClusterError) -> None:
        self._failures += 1
        if self._stop.is_set():
            return
        with self._changed:
            self._trouble = error
            self._changed.notify_all()

    def _pause_s(self) -> float:
        """Nothing after a watch that was one; else doubling, and at least what the server asks for."""
        wish = getattr(self._trouble, "retry_after", None)
        doubled = min(0.25 * float(1 << min(self._failures, 10)), _LONGEST_PAUSE_S) if self._failures else 0.0
        return max(doubled, wish.total_seconds() if wish is not None else 0.0)

    def _follow(self) -> None:
        """One list if needed, then one watch.

        Proxies and load balancers cut lines all the time. So how a watch ends matters only if it was none: if it could
        not be opened, or was over at once and had told nothing. Such a one must not be opened again at full speed.
        """
        version = self._version or self._list()
        self._version = version
        params = {"watch": "true", "allowWatchBookmarks": "true", "timeoutSeconds": _WATCH_S}
        opened_at: float | None = None
        has_told = False
        end: ClusterError | None = None
        try:
            for change in self._api.watch(NODES, params | {"resourceVersion": version}):
                opened_at = self._clock.monotonic() if opened_at is None else opened_at
                has_told = self._apply(change) or has_told
        except ClusterError as error:
            end = error
        if has_told or (opened_at is not None and self._clock.monotonic() - opened_at >= _LIFE_S):
            self._failures = 0
            end = end if isinstance(end, Expired) else None
        elif end is None:
            self._failures += 1
        if end is not None:
            raise end

    def _list(self) -> str:
        """Read everything, page by page, before any of it is shown."""
        found: dict[str, Node] = {}
        params = {"limit": _PAGE}
        while True:
            answer = self._api.get(NODES, params)
            page = read_page(answer)
            found.update({node.name: node for node in page.nodes})
            if page.more is None:
                break
            params = {"limit": _PAGE, "continue": page.more}
        with self._changed:
            self._nodes = found
            self._lists += 1
            self._note_life()
        return page.version

    def _note_life(self) -> None:
        self._heard_at = self._clock.monotonic()
        self._trouble = None
        self._changed.notify_all()

    def _apply(self, change: Json) -> bool:
        """Take one change over; whether it says anything beyond that the line is open."""
        kind, value = change.get("type"), change.get("object")
        node = read_node(value) if kind in {"ADDED", "MODIFIED", "DELETED"} else None
        version = read_bookmark(value) if kind == "BOOKMARK" else None
        with self._changed:
            self._note_life()
            if node is not None and self._nodes is not None:
                self._version = node.resource_version
                if kind == "DELETED":
                    self._nodes.pop(node.name, None)
                else:
                    self._nodes[node.name] = node
            elif version is not None:
                self._version = version
            self._changed.notify_all()
        return kind != "OPENED"
