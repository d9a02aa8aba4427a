"""Which gRPC status each of our errors becomes. The autoscaler only tells OK, UNIMPLEMENTED and the rest apart."""

import grpc

from app.errors import (
    CloudError,
    Conflict,
    DeadlinePassed,
    InvalidRequest,
    NotAllowed,
    NotFound,
    NotServing,
    ProviderError,
    RuleViolation,
    StoreError,
)

_STATUS: dict[type[BaseException], grpc.StatusCode] = {
    InvalidRequest: grpc.StatusCode.INVALID_ARGUMENT,
    NotFound: grpc.StatusCode.NOT_FOUND,
    RuleViolation: grpc.StatusCode.FAILED_PRECONDITION,
    Conflict: grpc.StatusCode.ABORTED,
    DeadlinePassed: grpc.StatusCode.DEADLINE_EXCEEDED,
    NotServing: grpc.StatusCode.UNAVAILABLE,
    NotAllowed: grpc.StatusCode.PERMISSION_DENIED,
    StoreError: grpc.StatusCode.UNAVAILABLE,
    CloudError: grpc.StatusCode.UNAVAILABLE,
    ProviderError: grpc.StatusCode.INTERNAL,
}


def status_of(error: BaseException) -> grpc.StatusCode:
    """The status for an error: that of its nearest known class, INTERNAL for everything we did not raise on purpose."""
    for known in type(error).__mro__:
        if known in _STATUS:
            return _STATUS[known]
    return grpc.StatusCode.INTERNAL
