"""Sends one request and brings back one answer, within a deadline, or proves how far it got."""

import http.client
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from http.cookiejar import DefaultCookiePolicy

import requests
import urllib3.exceptions

from app.clock import Clock
from app.cloud.breaker import Breaker
from app.cloud.verda.wire import CURRENT, Exchange, PatientAdapter, Stage
from app.cloud.verda.words import printable
from app.errors import CloudError, NotSent, OutcomeUnknown

CHUNK_BYTES = 65_536
# An error that needs more words than this is a gateway's page.
ERROR_BYTES = 65_536
SUCCESS = range(200, 300)
TOO_LARGE = "answer_too_large"

# Everything the layers below may raise; requests' own exceptions are OSErrors, a negative chunk size a ValueError.
_FAILURES = (OSError, ValueError, http.client.HTTPException, urllib3.exceptions.HTTPError)

_NOT_SENT_CODES: Mapping[Stage, tuple[str, str]] = {
    Stage.WAITING: ("not_sent", "the request could not be made"),
    Stage.RESOLVING: ("name_not_resolved", "the name of the API's host was not resolved"),
    Stage.CONNECTING: ("connection_failed", "no connection to the API"),
    Stage.CONNECTED: ("tls_failed", "no secure connection to the API"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how often we may talk to the API.

    `timeout` is for one call of the `Cloud` port, with everything in it: waiting for the rate limit, logging in, the
    answer's last byte. `silence_timeout` is the longest pause between two bytes. `rate_share` is our part of the API's
    rate limits, above 0 and at most 1. A list of 500 machines is about 1 MB.
    """

    timeout: timedelta = timedelta(seconds=30)
    connect_timeout: timedelta = timedelta(seconds=5)
    silence_timeout: timedelta = timedelta(seconds=20)
    answer_bytes: int = 64 * 1024 * 1024
    rate_share: float = 0.8
    breaker_threshold: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back. A `flaw` says why `body` is not all of it; the status is trustworthy in either case."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    flaw: str = ""


class _Session(requests.Session):
    """Follows no redirect, asks no environment, keeps no cookie.

    A followed redirect turns POST into GET and would take some page for the id of a new machine; the environment's
    `.netrc` would silently replace our token.
    """

    def __init__(self) -> None:
        super().__init__()
        self.trust_env = False
        self.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
        adapter = PatientAdapter()
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, resp: requests.Response) -> None:  # noqa: ARG002 - requests' signature
        """Nowhere; requests would otherwise read the whole body of a redirect before we can stop it."""
        return


class Transport:
    """Connections to one API, shared by all threads."""

    def __init__(self, *, limits: Limits, clock: Clock, breaker: Breaker) -> None:
        self._limits = limits
        self._clock = clock
        self._breaker = breaker
        self._session = _Session()
        # A kept connection may just have been closed by the other side, which would leave the outcome of a POST
        # unknown; so a POST, the one thing that must not be repeated, always gets a fresh one.
        self._fresh = _Session()
        self._fresh.headers["Connection"] = "close"

    def exchange(
        self,
        method: str,
        url: str,
        *,
        headers: Mapping[str, str],
        deadline: float,
        json: object = None,
        params: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send and receive; any status is an answer. `deadline` is in the clock's monotonic seconds.

        Raises:
            NotSent: not a byte of the request has left.
            OutcomeUnknown: it may have arrived, but no answer did.
        """
        if self._clock.monotonic() >= deadline:
            raise NotSent("the call's time was used up before the request could be sent", code="deadline")
        exchange = Exchange(
            clock=self._clock,
            deadline=deadline,
            connect_s=self._limits.connect_timeout.total_seconds(),
            silence_s=self._limits.silence_timeout.total_seconds(),
            reusable=method != "POST",
        )
        with self._breaker.attempt() as succeeded:
            answer = self._send(exchange, requests.Request(method, url, dict(headers), json=json, params=params))
            if answer.flaw in {"", TOO_LARGE}:
                succeeded()
        return answer

    def close(self) -> None:
        """Close the connections that are kept open."""
        self._session.close()
        self._fresh.close()

    def _send(self, exchange: Exchange, request: requests.Request) -> Answer:
        session = self._session if exchange.reusable else self._fresh
        before = CURRENT.set(exchange)
        try:
            response = session.send(
                session.prepare_request(request),
                stream=True,
                allow_redirects=False,
                timeout=(exchange.patience(exchange.connect_s), exchange.patience(exchange.silence_s)),
            )
            return self._receive(exchange, response)
        except _FAILURES as error:
            raise _explain(exchange, error) from error
        finally:
            CURRENT.reset(before)

    def _receive(self, exchange: Exchange, response: requests.Response) -> Answer:
        """Read the body up to the limit; what goes wrong from here on does not take the status away."""
        longest = self._limits.answer_bytes if response.status_code in SUCCESS else ERROR_BYTES
        body = bytearray()
        flaw = ""
        try:
            for chunk in response.iter_content(CHUNK_BYTES):
                body += chunk
                if len(body) > longest:
                    flaw = TOO_LARGE
                    break
        except _FAILURES:
            flaw = "timeout" if exchange.timed_out else "answer_cut_short"
        finally:
            if flaw:
                response.close()
        return Answer(status=response.status_code, headers=response.headers, body=bytes(body), flaw=flaw)


def _explain(exchange: Exchange, error: Exception) -> CloudError:
    """Judge by how far the request got, not by the exception's class, which is the same for opposite cases."""
    reason = _root(error)
    if exchange.stage is Stage.SENT:
        if exchange.timed_out:
            return OutcomeUnknown("the API did not answer in time", code="timeout")
        return OutcomeUnknown(f"the connection broke before the answer came: {reason}", code="connection_lost")
    code, words = _NOT_SENT_CODES[exchange.stage]
    return NotSent(f"{words}: {reason}", code=code)


def _root(error: BaseException) -> str:
    """The innermost reason in words. The outer exceptions only add object addresses and the request's path."""
    for _ in range(16):
        inner = error.__cause__ or error.__context__ or next((a for a in error.args if isinstance(a, Exception)), None)
        if inner is None:
            break
        error = inner
    return printable(str(error)) or type(error).__name__
