"""Access tokens: one for all threads, fetched before the old one expires or when the API refuses it."""

import threading
from http import HTTPStatus
from typing import NoReturn

from pydantic import SecretStr
from verda.authentication import AuthenticationService  # type: ignore[import-untyped]  # the SDK ships no py.typed

from app.clock import Clock
from app.cloud.verda import fields
from app.cloud.verda.outcome import failure_of, parse_json
from app.cloud.verda.transport import Transport
from app.errors import CloudError, NotSent

TOKEN_PATH = "/oauth2/token"  # noqa: S105 - a path
MARGIN_S = 60.0
# The answer should always say how long its token lives; without that word we ask again soon.
LIFETIME_WITHOUT_HINT_S = 300.0
LONGEST_LIFETIME_S = 86_400.0
# A server that gives out dead tokens must not be asked more often than this.
SHORTEST_USE_S = 1.0
# Without this, n threads behind a hanging login would each wait out a timeout of their own, one after the other.
FAILURE_LASTS_S = 2.0
LONGEST_FAILURE_S = 60.0
# The caller came too late, or the breaker, which has a memory of its own, did not let it through.
OWN_TROUBLES = frozenset({"deadline", "circuit_open"})


class Auth(AuthenticationService):  # type: ignore[misc]  # the SDK is untyped, so its classes are Any
    """Logs in with the client credentials, always: refresh tokens would be a second path with failures of its own.

    The parent's constructor is not called: it keeps the secret in the open.
    """

    def __init__(
        self, client_id: str, client_secret: SecretStr, base_url: str, *, transport: Transport, clock: Clock
    ) -> None:
        self._base_url = base_url
        self._client_id = client_id
        self._client_secret = client_secret
        self._transport = transport
        self._clock = clock
        self._lock = threading.Lock()
        self._token = SecretStr("")
        self._good_until = 0.0
        self._failure: NotSent | None = None
        self._failure_until = 0.0

    def token(self, deadline: float) -> str:
        """A token that should work; `deadline` is in the clock's monotonic seconds.

        Raises:
            NotSent: none could be got, with the reason; a refusal of our credentials has code `unauthorized_request`.
        """
        if not self._lock.acquire(timeout=max(deadline - self._clock.monotonic(), 0)):
            raise NotSent("another thread's login took too long", code="login_timeout")
        try:
            now = self._clock.monotonic()
            if now < self._good_until:
                return self._token.get_secret_value()
            if self._failure and now < self._failure_until:
                raise _same(self._failure)
            try:
                self._log_in(deadline)
            except NotSent as failure:
                self._remember(failure)
                raise
            return self._token.get_secret_value()
        finally:
            self._lock.release()

    def reject(self, token: str) -> None:
        """The API refused this token; the next call fetches another, unless some thread already did."""
        with self._lock:
            if token == self._token.get_secret_value():
                self._good_until = 0.0

    def redact(self, words: str) -> str:
        """The words without our secrets, in case the API repeats what it was sent."""
        for secret in (self._client_secret.get_secret_value(), self._token.get_secret_value()):
            words = words.replace(secret, "***") if secret else words
        return words

    @property
    def _access_token(self) -> str:
        """What the SDK puts into its headers."""
        return self._token.get_secret_value()

    def is_expired(self) -> bool:
        """Whether the next call logs in first."""
        return self._clock.monotonic() >= self._good_until

    def authenticate(self) -> NoReturn:
        """Not offered: the SDK's way has neither deadline nor lock.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("use token()")

    refresh = authenticate

    def _remember(self, failure: NotSent) -> None:
        """Let it stand for the next callers too, unless it says more about this one than about the login."""
        if failure.code in OWN_TROUBLES:
            return
        hint_s = failure.retry_after.total_seconds() if failure.retry_after else 0.0
        self._failure = failure
        self._failure_until = self._clock.monotonic() + min(max(hint_s, FAILURE_LASTS_S), LONGEST_FAILURE_S)

    def _log_in(self, deadline: float) -> None:
        try:
            answer = self._transport.exchange(
                "POST",
                self._base_url + TOKEN_PATH,
                headers=self._generate_headers(),
                deadline=deadline,
                json={
                    "grant_type": "client_credentials",
                    "client_id": self._client_id,
                    "client_secret": self._client_secret.get_secret_value(),
                },
            )
        except CloudError as error:
            raise _no_token(error) from error
        failure = failure_of(answer, creating=False, now=self._clock.now(), redact=self.redact)
        if failure is not None:
            raise _no_token(failure)
        try:
            granted = parse_json(answer.body)
        except ValueError:
            granted = None
        token = fields.text(fields.inner(granted, "access_token"))
        if answer.status != HTTPStatus.OK or token is None or not (token.isascii() and token.isprintable()):
            raise NotSent("no access token: the answer holds none", code="unreadable_token", status=answer.status)
        self._keep(token, granted)

    def _keep(self, token: str, granted: object) -> None:
        lifetime = fields.amount(fields.inner(granted, "expires_in"))
        lifetime_s = LIFETIME_WITHOUT_HINT_S if lifetime is None else min(float(lifetime), LONGEST_LIFETIME_S)
        usable_s = max(lifetime_s - min(MARGIN_S, lifetime_s / 5), SHORTEST_USE_S)
        self._token = SecretStr(token)
        # Monotonic: a wall clock that is set back would keep a dead token in use.
        self._good_until = self._clock.monotonic() + usable_s
        self._failure = None


def _no_token(error: CloudError) -> NotSent:
    """Whatever became of the login, the call that needed it was not sent."""
    return NotSent(
        f"no access token: {error.message}", code=error.code, status=error.status, retry_after=error.retry_after
    )


def _same(failure: NotSent) -> NotSent:
    """A fresh copy: one exception raised by many threads would grow one traceback."""
    return NotSent(failure.message, code=failure.code, status=failure.status, retry_after=failure.retry_after)
