"""How faults change handlers."""

from collections.abc import Callable
from typing import Any

import grpc

from app.bootstrap import App
from app.domain.books import Books
from app.domain.envelope import Decision
from app.domain.nodegroup import decide as group_decide
from app.errors import NotServing
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb

from .faults import change

Handler = Callable[[Any, Any, grpc.ServicerContext], Any]
Decider = Callable[[Any, Books], Decision]


def before(check: Callable[[Any, Any, grpc.ServicerContext], None]) -> Callable[[Handler], Handler]:
    """A handler that does something first."""

    def make(old: Handler) -> Handler:
        def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
            check(self, request, context)
            return old(self, request, context)

        return new

    return make


def after(alter: Callable[[Any, Any], Any]) -> Callable[[Handler], Handler]:
    """A handler whose answer is altered."""

    def make(old: Handler) -> Handler:
        def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
            return alter(request, old(self, request, context))

        return new

    return make


def handler(method: str, make: Callable[[Handler], Handler]) -> Callable[[], None]:
    """A change of one handler."""
    return change(CloudProvider, method, make)


def decider(name: str, make: Callable[[Decider], Decider]) -> Callable[[], None]:
    """A change of one decision about node groups."""
    return change(group_decide, name, make)


def everywhere(make: Callable[[Handler], Handler]) -> Callable[[], None]:
    """The same change of every handler."""

    def apply() -> None:
        for method in pb.DESCRIPTOR.services_by_name["CloudProvider"].methods:
            change(CloudProvider, method.name, make)()

    return apply


def needs_the_cloud(self: Any, _request: Any, _context: grpc.ServicerContext) -> None:
    """Fail while the cloud does not answer."""
    if not self._books.cloud.reachable:
        raise NotServing("the cloud does not answer")


def give_the_cloud_to_handlers() -> None:
    """Let handlers call the cloud, which ours never do."""

    def make(old: Callable[[App], Any]) -> Callable[[App], Any]:
        def new(self: App) -> Any:
            CloudProvider.cloud = self._cloud  # type: ignore[attr-defined] # a fault
            return old(self)

        return new

    change(App, "_build_rpc", make)()
