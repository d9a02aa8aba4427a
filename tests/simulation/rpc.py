"""The provider's RPCs without a network: the real servicer behind the real edge, called as gRPC would call it."""

from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import grpc

from app.clock import Clock, Ids
from app.ledger.ledger import Ledger
from app.ledger.serving import obstacles
from app.rpc.answers import Wire
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.interceptors import SERVICE, Edge
from app.rpc.status import status_of

PATIENCE_S = 5.0
"""Cluster Autoscaler's deadline for every call."""


@dataclass(slots=True)
class _Details:
    """What gRPC tells an interceptor of a call."""

    method: str
    invocation_metadata: Any = ()


class Refused(Exception):
    """The caller was answered with a status other than OK."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        super().__init__(f"{code.name}: {details}")
        self.code = code


@dataclass(frozen=True, slots=True)
class _Context:
    """As much of a `grpc.ServicerContext` as the edge uses."""

    patience_s: float

    def time_remaining(self) -> float:
        """Seconds until the caller stops waiting."""
        return self.patience_s

    def abort(self, code: grpc.StatusCode, details: str) -> None:
        """End the call with a status. Raises: Refused."""
        raise Refused(code, details)


class Rpc:
    """Every method of the service by name."""

    def __init__(self, ledger: Ledger, clock: Clock, ids: Ids, pool: Executor | None = None) -> None:
        self._provider = CloudProvider(ledger, clock, ids, "verda.com/gpu")
        if pool is not None:
            self._provider._spellings._pool = pool  # type: ignore[assignment] # a pool, and no threads of its own
        self._edge = Edge(clock, ids, gate=lambda: obstacles(ledger.books), observer=lambda *_: None)

    def call(self, method: str, request: Any, patience_s: float = PATIENCE_S) -> Any:
        """Call a method and return its answer. Raises: Refused."""
        handler = self._edge.intercept_service(self._continue, _Details(f"/{SERVICE}/{method}"))
        assert handler is not None
        handle: Callable[[Any, Any], Any] = handler.unary_unary  # type: ignore[assignment] # it is one
        return _read(method, handle(request, _Context(patience_s)))

    def look(self, method: str, request: Any) -> Any:
        """Call a method past the edge, which has nothing to add for a caller who is in no hurry. Raises: Refused."""
        try:
            return _read(method, getattr(self._provider, method)(request, _Context(PATIENCE_S)))
        except Exception as error:
            raise Refused(status_of(error), str(error)) from error

    def _continue(self, details: Any) -> Any:
        return grpc.unary_unary_rpc_method_handler(getattr(self._provider, details.method.rpartition("/")[2]))


def _read(method: str, answer: Any) -> Any:
    """The answer as its caller reads it."""
    return getattr(pb, f"{method}Response").FromString(answer.data) if isinstance(answer, Wire) else answer
