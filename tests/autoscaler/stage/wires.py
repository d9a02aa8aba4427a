"""Ways to the provider: its handlers called with bytes, or a real channel over loopback."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, NoReturn, cast

import grpc

from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen.externalgrpc_pb2_grpc import add_CloudProviderServicer_to_server
from app.rpc.interceptors import SERVICE, Edge
from app.rpc.tls import TlsFiles
from tests.autoscaler.ca.wire import RpcFailed

DEADLINE_S: Final = 5.0


class _Aborted(Exception):
    def __init__(self, code: grpc.StatusCode, words: str) -> None:
        super().__init__(words)
        self.code = code
        self.words = words


class _Context:
    """The part of a gRPC context that handlers and their edge use."""

    def time_remaining(self) -> float:
        return DEADLINE_S

    def abort(self, code: grpc.StatusCode, details: str) -> NoReturn:
        raise _Aborted(code, details)


class _Details(NamedTuple):
    method: str
    invocation_metadata: Sequence[tuple[str, str]] = ()


class Handlers:
    """The provider's handlers behind its own interceptor, serialization included: a server without sockets."""

    def __init__(self, servicer: CloudProvider, edge: Edge) -> None:
        self._handlers: dict[str, Any] = {}
        self._edge = edge
        add_CloudProviderServicer_to_server(servicer, self)  # type: ignore[no-untyped-call] # generated without types

    def add_generic_rpc_handlers(self, _handlers: object) -> None:
        """Called by the generated code; the registered handlers are enough."""

    def add_registered_method_handlers(self, _service: str, handlers: Mapping[str, Any]) -> None:
        """Called by the generated code."""
        for method, handler in handlers.items():
            details = cast("grpc.HandlerCallDetails", _Details(f"/{SERVICE}/{method}"))
            self._handlers[method] = self._edge.intercept_service(lambda _, handler=handler: handler, details)  # type: ignore[misc] # a default binds the loop's variable

    def call(self, method: str, request: bytes) -> bytes:
        """One call. Raises: RpcFailed."""
        handler = self._handlers[method]
        try:
            answer = handler.unary_unary(handler.request_deserializer(request), _Context())
        except _Aborted as aborted:
            raise RpcFailed(method, aborted.code.name, aborted.words) from aborted
        data: bytes = handler.response_serializer(answer)
        return data


Dial = Callable[[int], grpc.Channel]
"""Connects to a port on this machine."""


def plain(port: int) -> grpc.Channel:
    """Without TLS."""
    return grpc.insecure_channel(f"127.0.0.1:{port}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Port:
    """The provider listens for real: with which certificates, and how the autoscaler connects."""

    tls: TlsFiles | None = None
    dial: Dial = plain


class Channel:
    """A real channel."""

    def __init__(self, channel: grpc.Channel) -> None:
        self._channel = channel

    def call(self, method: str, request: bytes) -> bytes:
        """One call. Raises: RpcFailed."""
        call: Callable[..., bytes] = self._channel.unary_unary(f"/{SERVICE}/{method}", request_serializer=bytes)
        try:
            return call(request, timeout=DEADLINE_S)
        except grpc.RpcError as error:
            failed = cast("grpc.Call", error)
            raise RpcFailed(method, failed.code().name, failed.details() or "") from error

    def close(self) -> None:
        """Close it."""
        self._channel.close()


class Line:
    """What the autoscaler's client talks through: can be cut, and can lose answers.

    `lost` counts how many more answers of a method will come too late for the caller, though the call is carried out.
    """

    def __init__(self, target: Callable[[], Handlers | Channel | None]) -> None:
        self._target = target
        self.is_cut = False
        self.lost: Counter[str] = Counter()

    def call(self, method: str, request: bytes) -> bytes:
        """One call. Raises: RpcFailed."""
        target = None if self.is_cut else self._target()
        if target is None:
            raise RpcFailed(method, "UNAVAILABLE", "connection refused")
        answer = target.call(method, request)
        if self.lost[method] > 0:
            self.lost[method] -= 1
            raise RpcFailed(method, "DEADLINE_EXCEEDED", "the answer came too late")
        return answer
