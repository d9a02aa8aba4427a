"""How the autoscaler reaches its provider: bytes there, bytes back, or a status."""

from dataclasses import dataclass
from typing import Protocol


class RpcFailed(Exception):
    """A call ended with a status that is not OK."""

    def __init__(self, method: str, code: str, words: str) -> None:
        super().__init__(f"{method}: {code}: {words}")
        self.method = method
        self.code = code
        self.words = words


class NotOffered(Exception):
    """An optional RPC was answered with UNIMPLEMENTED, and this release knows what that means."""


class AutoscalerCrashed(Exception):
    """The process is gone: what it read made it follow a nil pointer."""


class Wire(Protocol):
    """A channel to the provider."""

    def call(self, method: str, request: bytes) -> bytes:
        """One unary call. Raises: RpcFailed."""
        ...


@dataclass(frozen=True, slots=True)
class Rpc:
    """A call that was made; `group` is empty for calls that concern none, `code` the name of the gRPC status."""

    method: str
    group: str
    code: str
