"""Requests and answers of the simulated API, before and after the socket."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from http import HTTPStatus
from urllib.parse import parse_qs, urlsplit

from app.simulator.errors import ApiError, invalid


@dataclass(frozen=True)
class Request:
    """One request. `headers` has lower-case names; `path` has no query, `query` every value of every key."""

    method: str
    path: str
    query: Mapping[str, list[str]] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    @classmethod
    def of(cls, method: str, target: str, headers: Mapping[str, str], body: bytes) -> "Request":
        """From a request line's target, which may carry a query."""
        parts = urlsplit(target)
        query = parse_qs(parts.query, keep_blank_values=True)
        return cls(method=method, path=parts.path, query=query, headers=headers, body=body)

    def first(self, *names: str) -> str | None:
        """The first value of the first of these query keys that is there."""
        return next((self.query[name][0] for name in names if name in self.query), None)

    @cached_property
    def json(self) -> object:
        """The body as JSON, None if empty. Raises: 400 when it is none."""
        if not self.body.strip():
            return None
        try:
            parsed: object = json.loads(self.body)
        except ValueError as error:
            raise invalid("Request body is not valid JSON") from error
        return parsed

    @property
    def fields(self) -> dict[str, object]:
        """The body as a JSON object, empty if it is anything else."""
        try:
            return self.json if isinstance(self.json, dict) else {}
        except ApiError:
            return {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """One answer: JSON in `payload`, or anything in `text` when `raw`; `committed` says whether state was changed."""

    status: int
    payload: object = None
    text: str = ""
    raw: bool = False
    content_type: str = "application/json; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)
    committed: bool = False

    def body(self) -> bytes:
        """The body as bytes; empty for 204."""
        if self.status == HTTPStatus.NO_CONTENT:
            return b""
        return (self.text if self.raw else json.dumps(self.payload, ensure_ascii=False)).encode()

    def with_headers(self, headers: Mapping[str, str]) -> "Response":
        """The same answer with more headers."""
        return replace(self, headers={**self.headers, **headers})


def text(
    status: int, body: str, content_type: str = "text/plain; charset=utf-8", *, committed: bool = False
) -> Response:
    """An answer that is not JSON."""
    return Response(status=status, text=body, raw=True, content_type=content_type, committed=committed)


def refusal(error: ApiError, headers: Mapping[str, str] | None = None) -> Response:
    """An error in the API's JSON form."""
    return Response(status=error.status, payload={"code": error.code, "message": error.message}, headers=headers or {})
