"""The bearer token of the pages. Without one they are open to whoever reaches the port."""

import base64
import binascii
import hmac
from pathlib import Path

from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from app.errors import ConfigurationError, Problem
from app.log import get_logger

OPEN_PATHS = frozenset({"/healthz", "/readyz"})
"""What a kubelet asks for; it has no token."""

SHORTEST = 16
"""Characters; a shorter token can be guessed."""

_CHALLENGES = ('Basic realm="verda-cloud-provider"', 'Bearer realm="verda-cloud-provider"')
"""Each in a header of its own, the one that browsers know first. Any user's name does; the token is the password."""

_log = get_logger(room="web")


def read_token(path: Path) -> bytes:
    """The token in a file, without the white space around it.

    Raises:
        ConfigurationError: the file cannot be read, or holds nothing that could be a token.
    """
    try:
        token = path.read_bytes().strip()
    except OSError as error:
        raise _problem(f"cannot read {path}: {error.strerror}") from error
    if len(token) < SHORTEST or not token.isascii() or not token.decode("ascii", "replace").isprintable():
        raise _problem(
            f"{path} must hold a token of at least {SHORTEST} printable ASCII characters: "
            "make one with `openssl rand -hex 32`"
        )
    return token


def _problem(message: str) -> ConfigurationError:
    return ConfigurationError((Problem(source="http", line=None, path="http.token_file", message=message),))


class Guard:
    """Lets through who shows the token: as a bearer, or as the password that a browser asks for.

    The file is read at every request, so a new token holds at once. If it cannot be read nobody gets in.
    """

    def __init__(self, app: ASGIApp, token_file: Path) -> None:
        """See that there is a token.

        Raises:
            ConfigurationError: there is none.
        """
        read_token(token_file)
        self._app = app
        self._token_file = token_file

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer 401 to strangers."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS and not self._knows(Headers(scope=scope)):
            refusal = PlainTextResponse(
                "this page asks for the token of http.token_file: as bearer, or as password with any user\n",
                status_code=401,
                headers={"Cache-Control": "no-store"},
            )
            for challenge in _CHALLENGES:
                refusal.headers.append("WWW-Authenticate", challenge)
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _knows(self, headers: Headers) -> bool:
        shown = shown_token(headers.get("authorization", ""))
        try:
            token = read_token(self._token_file)
        except ConfigurationError as error:
            _log.error("pages are closed, their token cannot be read", error=error.message)
            return False
        return hmac.compare_digest(shown, token)


def shown_token(header: str) -> bytes:
    """What an Authorization header shows: a bearer token, or the password of basic authentication. Empty for others."""
    scheme, _, value = header.strip().partition(" ")
    if scheme.lower() == "bearer":
        return value.strip().encode()
    if scheme.lower() == "basic":
        try:
            return base64.b64decode(value.strip(), validate=True).partition(b":")[2]
        except (binascii.Error, ValueError):
            return b""
    return b""
