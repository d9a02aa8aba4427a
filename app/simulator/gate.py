"""Who may come in, and how often: tokens and rate limits."""

import hmac
import json
import math
from dataclasses import dataclass
from urllib.parse import parse_qs

from app.simulator.core import to_ms
from app.simulator.errors import ApiError, invalid, unauthorized
from app.simulator.state import TokenRecord
from app.simulator.wire import Request, Response, refusal, text
from app.simulator.world import World

_LISTS = frozenset({("GET", "/v1/instances"), ("GET", "/v1/volumes")})
_MANY = 10_000


@dataclass(slots=True)
class _Window:
    start: float
    used: int = 0


class Tokens:
    """POST /oauth2/token and the bearer check."""

    def __init__(self, world: World) -> None:
        self._world = world

    def issue(self, request: Request) -> Response:
        """A new pair of tokens. Raises: 400 for an unknown grant, 401 for unknown credentials."""
        world, auth = self._world, self._world.config.auth
        world.state.counters.token_calls += 1
        form = _form(request)
        grant = form.get("grant_type")
        if grant == "client_credentials":
            client = form.get("client_id", "")
            secret = auth.clients.get(client)
            given = form.get("client_secret", "")
            if secret is None or not hmac.compare_digest(secret.get_secret_value().encode(), given.encode()):
                raise unauthorized("Invalid client id or client secret")
        elif grant == "refresh_token":
            client = self._refreshing_client(form.get("refresh_token", ""))
        else:
            raise invalid("unsupported grant type")
        number = world.core.ordinal("token")
        access, refresh = world.core.chance.token("access", number), world.core.chance.token("refresh", number)
        now = self._now_ms()
        self._prune(now)
        world.state.tokens[access] = TokenRecord(expires_ms=now + to_ms(auth.token_ttl_s), client_id=client)
        world.state.refresh_tokens[refresh] = TokenRecord(expires_ms=now + to_ms(auth.refresh_ttl_s), client_id=client)
        return Response(
            status=200,
            payload={
                "access_token": access,
                "refresh_token": refresh,
                "token_type": "Bearer",
                "expires_in": auth.token_ttl_s,
                "scope": "cloud-api-v1",
            },
            committed=True,
        )

    def require(self, request: Request) -> str:
        """The client behind a request's bearer token. Raises: 401."""
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        found = self._world.state.tokens.get(token.strip()) if scheme.lower() == "bearer" else None
        if found is None or found.revoked or found.expires_ms <= self._now_ms():
            raise unauthorized()
        return found.client_id

    def revoke_all(self, *, refresh_too: bool) -> int:
        """Make every token useless; returns how many access tokens that were."""
        for record in self._world.state.tokens.values():
            record.revoked = True
        if refresh_too:
            self._world.state.refresh_tokens.clear()
        return len(self._world.state.tokens)

    def _refreshing_client(self, token: str) -> str:
        found = self._world.state.refresh_tokens.get(token)
        if found is None or found.expires_ms <= self._now_ms():
            raise unauthorized("Invalid refresh token")
        if self._world.config.auth.refresh_single_use:
            del self._world.state.refresh_tokens[token]
        return found.client_id

    def _now_ms(self) -> int:
        by_real_clock = self._world.config.auth.token_clock == "real"  # noqa: S105 - the name of a clock
        return to_ms(self._world.clock.now().timestamp()) if by_real_clock else self._world.state.now_ms

    def _prune(self, now_ms: int) -> None:
        for shelf in (self._world.state.tokens, self._world.state.refresh_tokens):
            if len(shelf) > _MANY:
                for token in [token for token, record in shelf.items() if record.expires_ms <= now_ms]:
                    del shelf[token]


class Limiter:
    """Fixed windows per project and per method and path (Verda OpenAPI, "Rate Limits").

    A window begins with the first request after the previous one ended. It is not saved with the world.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._project = _Window(-math.inf)
        self._endpoints: dict[tuple[str, str], _Window] = {}
        self._burden = 0
        self._burdened_windows = 0

    def burden(self, requests: int, windows: int) -> None:
        """Let a stranger in the same project spend so many requests of this and the following windows."""
        self._burden, self._burdened_windows = requests, windows
        self._project = _Window(-math.inf)

    def spend(self, request: Request) -> tuple[dict[str, str], Response | None]:
        """Count a request; returns the headers for its answer, and the 429 if it is one too many."""
        limits, now = self._world.config.limits, self._now()
        key = (request.method, request.path)
        quota = limits.list_per_window if key in _LISTS else limits.endpoint_per_window
        project = self._project_window(now)
        endpoint = self._endpoints.get(key)
        if endpoint is None or now >= endpoint.start + limits.window_s:
            endpoint = self._endpoints[key] = _Window(now)
            self._forget(now)
        over = project.used >= limits.project_per_window or endpoint.used >= quota
        if not over:
            project.used += 1
            endpoint.used += 1
        left = (max(0, limits.project_per_window - project.used), max(0, quota - endpoint.used))
        reset = tuple(max(1, math.ceil(window.start + limits.window_s - now)) for window in (project, endpoint))
        width = round(limits.window_s)
        headers = {
            "RateLimit-Policy": f'"project";q={limits.project_per_window};w={width}, "endpoint";q={quota};w={width}',
            "RateLimit": f'"project";r={left[0]};t={reset[0]}, "endpoint";r={left[1]};t={reset[1]}',
        }
        if not over or not limits.enabled:
            return headers, None
        self._world.state.counters.rate_limited += 1
        wait = reset[0] if project.used >= limits.project_per_window else reset[1]
        return headers, self.throttled(wait).with_headers(headers)

    def throttled(self, wait_s: int) -> Response:
        """A 429 with the configured body; `wait_s` seconds to wait."""
        headers = {"Retry-After": str(wait_s)}
        body = self._world.config.limits.body
        if body == "json":
            return refusal(ApiError(429, "rate_limit_exceeded", "Too many requests"), headers)
        return text(429, "rate limit!" if body == "text" else "", "application/json; charset=utf-8").with_headers(
            headers
        )

    def _project_window(self, now: float) -> _Window:
        if now >= self._project.start + self._world.config.limits.window_s:
            self._project = _Window(now)
            if self._burdened_windows:
                self._burdened_windows -= 1
                self._project.used = self._burden
        return self._project

    def _forget(self, now: float) -> None:
        if len(self._endpoints) > _MANY:
            width = self._world.config.limits.window_s
            self._endpoints = {key: item for key, item in self._endpoints.items() if now < item.start + width}

    def _now(self) -> float:
        if self._world.config.limits.clock == "sim":
            return self._world.state.now_ms / 1000
        return self._world.clock.monotonic()


def _form(request: Request) -> dict[str, str]:
    """The token request's fields, sent as JSON or as a form."""
    if "x-www-form-urlencoded" in request.headers.get("content-type", ""):
        parsed = parse_qs(request.body.decode("utf-8", "replace"))
        return {key: values[0] for key, values in parsed.items()}
    try:
        data = json.loads(request.body or b"null")
    except ValueError as error:
        raise invalid("Request body is not valid JSON") from error
    if not isinstance(data, dict):
        raise invalid("Request body must be a JSON object")
    return {key: value for key, value in data.items() if isinstance(value, str)}
