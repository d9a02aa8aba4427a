"""The official SDK with our transport inside.

The stock client logs in while it is constructed, waits for ever, opens a connection per call, never logs in again when
the API stops accepting its token, and lets every thread fetch a token of its own (SDK 1.25). Its services, paths and
headers are kept; what sends and what logs in is replaced by subclassing, nothing is patched.
"""

import inspect
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from http import HTTPStatus
from typing import Any

import requests
from verda import VerdaClient, __version__  # type: ignore[import-untyped]  # the SDK ships no py.typed
from verda.authentication import AuthenticationService  # type: ignore[import-untyped]  # likewise
from verda.constants import Constants  # type: ignore[import-untyped]  # likewise
from verda.http_client import HTTPClient  # type: ignore[import-untyped]  # likewise
from verda.volumes import VolumesService  # type: ignore[import-untyped]  # likewise

from app.clock import Clock
from app.cloud.ratelimit import RateLimiter, Urgency
from app.cloud.verda.auth import Auth
from app.cloud.verda.outcome import api_error, failure_of
from app.cloud.verda.transport import Answer, Transport
from app.errors import ConfigurationError, NotSent, Problem, Throttled

# What we call or override although it is private or may change: owner, name, parameters.
Expectation = tuple[type[Any], str, tuple[str, ...]]
RELIED_ON: tuple[Expectation, ...] = (
    (HTTPClient, "_request", ("self", "method", "url", "json", "params", "path_params", "kwargs")),
    (HTTPClient, "_build_path", ("self", "url", "path_params")),
    (HTTPClient, "_add_base_url", ("self", "url")),
    (HTTPClient, "_generate_headers", ("self",)),
    (AuthenticationService, "_generate_headers", ("self",)),
    (VolumesService, "delete_by_id", ("self", "volume_id", "is_permanent")),
)


def check_sdk(relied_on: Sequence[Expectation] = RELIED_ON) -> None:
    """Make sure that the installed SDK still is what this adapter was written for.

    Raises:
        ConfigurationError: it is not; names the SDK's version and each difference.
    """
    problems = []
    for owner, name, expected in relied_on:
        member = getattr(owner, name, None)
        if member is None:
            problems.append((owner, name, "is missing"))
        elif (found := tuple(inspect.signature(member).parameters)) != expected:
            problems.append((owner, name, f"takes ({', '.join(found)}) instead of ({', '.join(expected)})"))
    if problems:
        source = f"verda SDK {__version__}"
        raise ConfigurationError(
            tuple(
                Problem(
                    source=source,
                    line=None,
                    path=f"{owner.__name__}.{name}",
                    message=f"{what}; this program was written for SDK 1.25, install that",
                )
                for owner, name, what in problems
            )
        )


class Http(HTTPClient):  # type: ignore[misc]  # the SDK is untyped, so its classes are Any
    """What the SDK's services send through. The parent's constructor is not called: it logs in.

    The errors raised are ours, not the SDK's `APIException`, which forgets the HTTP status and all headers.
    """

    def __init__(
        self, auth: Auth, base_url: str, *, transport: Transport, limiter: RateLimiter, clock: Clock, timeout: timedelta
    ) -> None:
        self._version = __version__
        self._base_url = base_url
        self._auth_service = auth
        self._transport = transport
        self._limiter = limiter
        self._clock = clock
        self._timeout_s = timeout.total_seconds()

    def deadline(self) -> float:
        """When a call that begins now has to end, in the clock's monotonic seconds."""
        return self._clock.monotonic() + self._timeout_s

    def _request(
        self,
        method: str,
        url: str,
        json: object = None,
        params: Mapping[str, str] | None = None,
        path_params: Mapping[str, str] | None = None,
        **kwargs: Any,
    ) -> requests.Response:
        """Log in, wait for the rate limit, send; after a 401, which proves that nothing was done, once more.

        `deadline` in `kwargs` is in monotonic seconds; the SDK's own services do not pass it and get the usual one.

        Raises:
            CloudError: anything but a complete success.
        """
        deadline: float = kwargs.get("deadline") or self.deadline()
        try:
            path = self._build_path(url, path_params)
            target = self._add_base_url(path)
        except ValueError as error:
            raise NotSent(f"not a possible path: {error}", code="invalid_path") from error
        call = _Call(
            method=method,
            path=path,
            target=target,
            urgency=Urgency.ROUTINE if method == "GET" and not path_params else Urgency.URGENT,
            deadline=deadline,
            json=json,
            params=params,
        )
        answer = self._send(call)
        # In anybody else's words a 401 proves nothing, and an order must not be sent twice.
        if answer.status == HTTPStatus.UNAUTHORIZED and (method != "POST" or api_error(answer) is not None):
            answer = self._send(call)
        return self._judge(call, answer)

    def _send(self, call: "_Call") -> Answer:
        token = self._auth_service.token(call.deadline)
        self._limiter.acquire(call.method, call.path, call.urgency, call.deadline)
        try:
            answer = self._transport.exchange(
                call.method,
                call.target,
                headers=self._generate_headers() | {"Authorization": f"Bearer {token}"},
                deadline=call.deadline,
                json=call.json,
                params=call.params,
            )
        except NotSent:
            self._limiter.give_back(call.method, call.path)
            raise
        self._limiter.heard(call.method, call.path, answer.headers.get("RateLimit", ""))
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._auth_service.reject(token)
        return answer

    def _judge(self, call: "_Call", answer: Answer) -> requests.Response:
        redact = self._auth_service.redact
        failure = failure_of(
            answer, creating=call.method == "POST" and call.path == "/instances", now=self._clock.now(), redact=redact
        )
        if isinstance(failure, Throttled):
            limits = answer.headers.get("RateLimit", "")
            self._limiter.refused(call.method, call.path, failure.retry_after, limits)
        if failure is not None:
            raise failure
        return _as_response(answer, call.target)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Call:
    """One request of a service, checked and addressed. `deadline` is in the clock's monotonic seconds."""

    method: str
    path: str
    target: str
    urgency: Urgency
    deadline: float
    json: object
    params: Mapping[str, str] | None


def _as_response(answer: Answer, url: str) -> requests.Response:
    """What the SDK's services expect; the body is here already."""
    response = requests.Response()
    response.status_code = answer.status
    response.headers.update(answer.headers)
    response.url = url
    response.encoding = "utf-8"
    response.raw = io.BytesIO(answer.body)
    return response


class Client(VerdaClient):  # type: ignore[misc]  # likewise
    """The SDK's client with the services used here. Construction does no network; the parent's would log in."""

    def __init__(self, auth: Auth, http: Http, base_url: str) -> None:
        check_sdk()
        self.constants = Constants(base_url, __version__)
        self._authentication = auth
        self._http_client = http
        self.volumes = VolumesService(http)
