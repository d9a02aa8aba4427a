"""Exchanges with a Kubernetes API server: bounded in time and size, every failure translated."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import httpx2
from lightkube.core.exceptions import ConfigError

from app.clock import Clock
from app.errors import (
    ClusterConflict,
    ClusterDown,
    ClusterError,
    ClusterForbidden,
    ClusterRefused,
    ClusterUnavailable,
)
from app.kube.wire import Status, read_status

Json = dict[str, Any]

_MAX_BODY: Final = 64 * 2**20
"""A page of 500 nodes with all their images is a few megabytes."""
_MAX_WORDS: Final = 300
_OK: Final = 200
_REDIRECT: Final = 300
_UNAUTHORIZED: Final = 401
_FORBIDDEN: Final = 403
_NOT_FOUND: Final = 404
_CONFLICT: Final = 409
_GONE: Final = 410
_UNPROCESSABLE: Final = 422
_TOO_MANY: Final = 429
_PASSING: Final = frozenset({_NOT_FOUND, 408, _TOO_MANY})
"""Refusals that say nothing about what was asked: no such path, too slow, too often."""
_REFUSALS: Final = range(400, 500)


class Expired(ClusterUnavailable):
    """The version to go on from is no longer known: begin anew with a list."""


class Unprocessable(ClusterRefused):
    """The value is not allowed, or a test in a JSON patch has failed: the answer does not say which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long an exchange may take: one read, all of them, and silence during a watch."""

    read: timedelta = timedelta(seconds=10)
    total: timedelta = timedelta(seconds=30)
    silence: timedelta = timedelta(seconds=90)


class Api:
    """Requests with JSON in and out. `client` knows the server, its certificate and our credentials."""

    def __init__(self, client: httpx2.Client, clock: Clock, limits: Limits) -> None:
        self._client = client
        self._clock = clock
        self._limits = limits

    def close(self) -> None:
        """Close the connections; a watch under way ends."""
        self._client.close()

    def get(self, path: str, params: Mapping[str, str] | None = None) -> Json | None:
        """Read an object or a list; None if the server itself says there is none."""
        return self._call("GET", path, params=params)

    def delete(self, path: str, options: Json) -> Json | None:
        """Delete an object; None if there is none."""
        return self._call("DELETE", path, body=options)

    def post(self, path: str, value: Json) -> Json | None:
        """Make an object; None if the place for it does not exist."""
        return self._call("POST", path, body=value)

    def patch(self, path: str, operations: Sequence[Json]) -> Json | None:
        """Change an object by a JSON patch, all or nothing; None if there is none."""
        return self._call("PATCH", path, body=operations, kind="application/json-patch+json")

    def _call(
        self,
        method: str,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        body: Json | Sequence[Json] | None = None,
        kind: str = "application/json",
    ) -> Json | None:
        headers = {"Content-Type": kind} if body is not None else {}
        content = json.dumps(body).encode() if body is not None else None
        request = self._client.build_request(method, path, params=params, content=content, headers=headers)
        with self._translating(method, path):
            with self._opened(request) as response:
                value = self._body(response)
            if _OK <= response.status_code < _REDIRECT:
                return _as_object(value)
            self._refuse(response, value)
            return None

    @contextmanager
    def _opened(self, request: httpx2.Request) -> Iterator[httpx2.Response]:
        response = self._client.send(request, stream=True)
        try:
            yield response
        finally:
            response.close()

    def _body(self, response: httpx2.Response) -> object:
        """The whole body as JSON, None if it is none. A server that trickles is given up as a slow one is."""
        ends_at = self._clock.monotonic() + self._limits.total.total_seconds()
        parts: list[bytes] = []
        size = 0
        for part in response.iter_bytes():
            parts.append(part)
            size += len(part)
            if size > _MAX_BODY or self._clock.monotonic() > ends_at:
                raise ClusterDown(f"the API server's answer does not end ({size} bytes so far)")
        try:
            value: object = json.loads(b"".join(parts))
        except ValueError:
            return None
        return value

    def _refuse(self, response: httpx2.Response, value: object) -> None:
        """Nothing for a proven absence.

        Raises:
            ClusterError: any other refusal.
        """
        status = read_status(value)
        if status is not None and response.status_code == _NOT_FOUND:
            return
        raise _refusal(response.status_code, status, _retry_after(response))

    def watch(self, path: str, params: Mapping[str, str]) -> Iterator[Json]:
        """The changes that a watch tells, until the server or the line ends it.

        Ends without an error when nothing was heard for too long: a line may be dead without anybody saying so.

        Raises:
            Expired: the version to go on from is too old.
            ClusterError: the watch was refused, or broke off.
        """
        timeout = httpx2.Timeout(self._limits.read.total_seconds(), read=self._limits.silence.total_seconds())
        request = self._client.build_request("GET", path, params=params, timeout=timeout)
        with self._translating("WATCH", path), self._opened(request) as response:
            if response.status_code != _OK:
                self._refuse(response, self._body(response))
                raise ClusterUnavailable("the API server has nothing to watch there")
            yield {"type": "OPENED"}
            try:
                for line in response.iter_lines():
                    if line:
                        yield _change(line)
            except httpx2.ReadTimeout:
                return

    @contextmanager
    def _translating(self, method: str, path: str) -> Iterator[None]:
        try:
            yield
        except ClusterError:
            raise
        except ConfigError as error:  # its words may hold what an exec plugin wrote
            raise ClusterForbidden("the credentials for the API server cannot be had") from error
        except httpx2.TimeoutException as error:
            raise ClusterDown(f"the API server is too slow: {method} {path}") from error
        except (httpx2.HTTPError, httpx2.StreamError, OSError, RuntimeError) as error:
            raise ClusterDown(f"the API server cannot be reached: {type(error).__name__}") from error


def _as_object(value: object) -> Json:
    if not isinstance(value, dict):
        raise ClusterUnavailable("the API server's answer is no JSON object")
    return value


def _change(line: str) -> Json:
    """One line of a watch.

    Raises:
        Expired, ClusterUnavailable: it is an error, or cannot be read.
    """
    try:
        change = _as_object(json.loads(line))
    except ValueError as error:
        raise ClusterUnavailable("the API server's watch broke off within a line") from error
    if change.get("type") == "ERROR":
        status = read_status(change.get("object"))
        raise _refusal(status.code if status is not None else 0, status, None)
    return change


def _refusal(code: int, status: Status | None, retry_after: timedelta | None) -> ClusterError:
    """What a status code proves. Only the API's own words are a refusal; a proxy's 4xx may mean anything."""
    words = status.message[:_MAX_WORDS] if status is not None else "not in the API's own words"
    if code in {_UNAUTHORIZED, _FORBIDDEN}:
        return ClusterForbidden(f"the API server refuses ({code}): {words}")
    if code == _GONE:
        return Expired(f"the API server has forgotten that version: {words}")
    if status is not None and code in _REFUSALS and code not in _PASSING:
        proven = {_CONFLICT: ClusterConflict, _UNPROCESSABLE: Unprocessable}.get(code, ClusterRefused)
        return proven(f"the API server refuses ({code}): {words}")
    kind = ClusterDown if code == _TOO_MANY or retry_after is not None else ClusterUnavailable
    return kind(f"the API server answers {code}: {words}", retry_after=retry_after)


def _retry_after(response: httpx2.Response) -> timedelta | None:
    """Seconds, as API servers send them; other forms are nobody's."""
    text = response.headers.get("Retry-After", "")
    return timedelta(seconds=min(int(text), 3600)) if text.isascii() and text.isdigit() else None
