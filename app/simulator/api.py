"""The data plane: every endpoint under /v1, from request to answer, over a world. No sockets here."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from app.simulator.api_instances import InstanceEndpoints
from app.simulator.api_static import StaticEndpoints
from app.simulator.api_volumes import VolumeEndpoints
from app.simulator.errors import ApiError, not_found
from app.simulator.gate import Limiter, Tokens
from app.simulator.steer import NO_STEER, Steer
from app.simulator.wire import Request, Response, refusal
from app.simulator.world import World

Handler = Callable[[Request, Mapping[str, str], Steer], Response]


class Route(NamedTuple):
    """One endpoint; `open` ones need no token (Verda OpenAPI)."""

    method: str
    pattern: re.Pattern[str]
    name: str
    handler: Handler
    open: bool


class Found(NamedTuple):
    """A route that matches a request, with the values of its path."""

    route: Route
    values: Mapping[str, str]


class Api:
    """The simulated Verda API."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.tokens = Tokens(world)
        self.limiter = Limiter(world)
        self._routes = self._table()

    def find(self, request: Request) -> Found | None:
        """The endpoint a request is for."""
        for route in self._routes:
            if route.method == request.method and (match := route.pattern.fullmatch(request.path)):
                return Found(route, match.groupdict())
        return None

    def admit(self, request: Request, found: Found | None) -> tuple[dict[str, str], Response | None]:
        """Check token and rate limit; returns headers for the answer, and the refusal if there is one."""
        if found is None or found.route.open:
            return {}, None
        try:
            self.tokens.require(request)
        except ApiError as error:
            return {}, refusal(error)
        return self.limiter.spend(request)

    def handle(self, request: Request, found: Found | None, steer: Steer = NO_STEER) -> Response:
        """Do what the request asks."""
        try:
            if found is None:
                raise not_found()
            return found.route.handler(request, found.values, steer)
        except ApiError as error:
            return refusal(error)

    def _table(self) -> Sequence[Route]:
        instances = InstanceEndpoints(self._world)
        volumes = VolumeEndpoints(self._world)
        static = StaticEndpoints(self._world)
        rows: list[tuple[str, str, Handler, bool]] = [
            ("POST", "/oauth2/token", lambda request, _values, _steer: self.tokens.issue(request), True),
            ("GET", "/instances", instances.listing, False),
            ("POST", "/instances", instances.create, False),
            ("PUT", "/instances", instances.act, False),
            ("POST", "/instances/action", instances.act, False),
            ("GET", "/instances/{id}", instances.get, False),
            ("POST", "/instances/{id}/tags", instances.tag, False),
            ("DELETE", "/instances/{id}/tags/{tag}", instances.untag, False),
            ("GET", "/volumes", volumes.listing, False),
            ("POST", "/volumes", volumes.create, False),
            ("PUT", "/volumes", volumes.act, False),
            ("GET", "/volumes/trash", volumes.trash, False),
            ("GET", "/volumes/{id}", volumes.get, False),
            ("DELETE", "/volumes/{id}", volumes.delete, False),
            ("POST", "/volumes/{id}/tags", volumes.tag, False),
            ("DELETE", "/volumes/{id}/tags/{tag}", volumes.untag, False),
            *static.rows(),
        ]
        return [
            Route(method, _pattern(path), f"{method} {path}", handler, is_open)
            for method, path, handler, is_open in rows
        ]


def _pattern(path: str) -> re.Pattern[str]:
    return re.compile("/v1" + re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", path))
