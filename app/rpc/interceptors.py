"""The edge of every RPC: correlation id, gate, deadline, errors, logs, metrics. Handlers hold nothing of it."""

from __future__ import annotations  # gRPC's generic types exist for the type checker alone

import contextvars
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import grpc

from app.clock import Clock, Ids
from app.domain.envelope import Cause
from app.errors import DeadlinePassed, NotAllowed, NotServing, ProviderError, StoreError
from app.ledger.serving import Reason
from app.log import CORRELATION_ID, DURATION, RPC, get_logger
from app.rpc.answers import Wire
from app.rpc.status import status_of
from app.rpc.tls import is_allowed
from app.rpc.traffic import Traffic

SERVICE = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
ACTOR = "cluster-autoscaler"

_WRITES = frozenset({"NodeGroupIncreaseSize", "NodeGroupDeleteNodes", "NodeGroupDecreaseTargetSize"})
_MESSAGE_LIMIT = 1000

RpcObserver = Callable[[str, str, float], None]
"""Told after every RPC: method, gRPC status name, duration in seconds."""

_log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """The RPC being handled on this thread: its cause, and the monotonic time after which nobody waits for it."""

    cause: Cause
    not_after: float


_current: contextvars.ContextVar[Call] = contextvars.ContextVar("current_call")


def current_call() -> Call:
    """The RPC being handled on this thread."""
    return _current.get()


class Edge(grpc.ServerInterceptor):
    """Wraps every method of the provider service; health and reflection pass untouched."""

    def __init__(
        self,
        clock: Clock,
        ids: Ids,
        *,
        gate: Callable[[], tuple[Reason, ...]],
        observer: RpcObserver,
        allowed_clients: tuple[str, ...] = (),
    ) -> None:
        self._clock = clock
        self._ids = ids
        self.traffic = Traffic(clock)
        self._gate = gate
        self._observer = observer
        self._allowed_clients = allowed_clients

    def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], grpc.RpcMethodHandler[Any, Any] | None],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Put the edge around the handler that would have been called."""
        handler = continuation(handler_call_details)
        service, _, method = handler_call_details.method.lstrip("/").partition("/")
        if handler is None or handler.unary_unary is None or service != SERVICE:
            return handler
        return grpc.unary_unary_rpc_method_handler(
            self._around(method, handler.unary_unary),
            request_deserializer=handler.request_deserializer,
            response_serializer=_unless_on_the_wire(handler.response_serializer),
        )

    def _around(self, method: str, handle: Callable[[Any, grpc.ServicerContext], Any]) -> Callable[..., Any]:
        def edge(request: Any, context: grpc.ServicerContext) -> Any:
            with self.traffic.passing():
                return answered(request, context)

        def answered(request: Any, context: grpc.ServicerContext) -> Any:
            began = self._clock.monotonic()
            call = self._call(context, began)
            token = _current.set(call)
            try:
                self._admit(call, context, began)
                answer = handle(request, context)
            except Exception as error:  # noqa: BLE001 - the edge: every failure becomes a status
                self._account(method, call, error, began)
                context.abort(status_of(error), _words(error))
            else:
                self._account(method, call, None, began)
                return answer
            finally:
                _current.reset(token)

        return edge

    def _call(self, context: grpc.ServicerContext, began: float) -> Call:
        return Call(
            cause=Cause(actor=ACTOR, correlation_id=self._ids.token()),
            not_after=began + context.time_remaining(),
        )

    def _admit(self, call: Call, context: grpc.ServicerContext, began: float) -> None:
        if not is_allowed(context, self._allowed_clients):
            raise NotAllowed("the client's certificate carries none of the names in tls.allowed_clients")
        if began >= call.not_after:
            raise DeadlinePassed("the caller's deadline had passed before the call was begun")
        obstacles = (*self.traffic.farewell(), *self._gate())
        if obstacles:
            raise NotServing("; ".join(reason.message for reason in obstacles))

    def _account(self, method: str, call: Call, failure: Exception | None, began: float) -> None:
        seconds = self._clock.monotonic() - began
        code = "OK" if failure is None else status_of(failure).name
        self._observer(method, code, seconds)
        about = {RPC: method, CORRELATION_ID: call.cause.correlation_id, DURATION: round(seconds, 4)}
        if failure is None:
            (_log.info if method in _WRITES else _log.debug)("rpc answered", **about)
        elif isinstance(failure, StoreError):
            _log.error("rpc failed", code=code, error=failure.message, **about)
        elif isinstance(failure, ProviderError):
            _log.info("rpc refused", code=code, error=failure.message, **{**failure.context, **about})
        else:
            _log.error("rpc broke off", code=code, exc_info=failure, **about)


def _unless_on_the_wire(serialize: Callable[[Any], bytes] | None) -> Callable[[Any], bytes] | None:
    """A serializer that lets pass what was serialized before."""
    if serialize is None:
        return None
    return lambda answer: answer.data if isinstance(answer, Wire) else serialize(answer)


def _words(failure: Exception) -> str:
    """What the caller reads: our own sentences, nothing of unknown exceptions."""
    if isinstance(failure, ProviderError):
        return failure.message[:_MESSAGE_LIMIT]
    return "internal error, see the provider's log"
