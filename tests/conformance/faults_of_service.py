"""Faults of the service as a whole."""

from collections.abc import Callable
from typing import Any

import grpc
from google.protobuf.unknown_fields import UnknownFieldSet

from app.domain.nodegroup.commands import DeleteNodes
from app.errors import Conflict, InvalidRequest, NotFound, NotServing
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.interceptors import current_call
from app.rpc.tls import Certificates

from .faults import change, fault
from .faulty import Handler, after, before, everywhere, give_the_cloud_to_handlers, handler, needs_the_cloud


def _refresh_asks_the_cloud() -> None:
    give_the_cloud_to_handlers()
    change(CloudProvider, "Refresh", before(lambda self, _request, _context: self.cloud.list_instances()))()


def _wait_for_refresh() -> None:
    seen: set[str] = set()

    def check(_self: Any, request: Any, _context: grpc.ServicerContext) -> None:
        seen.add(type(request).__name__)
        if "RefreshRequest" not in seen:
            raise NotServing("waiting for the first Refresh")

    everywhere(before(check))()


def _no_unknown_fields(_self: Any, request: Any, _context: grpc.ServicerContext) -> None:
    if len(UnknownFieldSet(request)):
        raise InvalidRequest("unknown field")


def _credentials(_self: Any, _request: Any, context: grpc.ServicerContext) -> None:
    if not any(key == "authorization" for key, _ in context.invocation_metadata()):
        context.abort(grpc.StatusCode.UNAUTHENTICATED, "who are you?")


def _one_at_a_time() -> None:
    busy: set[object] = set()

    def make(old: Handler) -> Handler:
        def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
            if busy:
                raise Conflict("busy")
            busy.add(context)
            try:
                return old(self, request, context)
            finally:
                busy.discard(context)

        return new

    everywhere(make)()


def _anybody(
    _old: Callable[[Certificates], grpc.ServerCredentials],
) -> Callable[[Certificates], grpc.ServerCredentials]:
    return lambda certificates: grpc.ssl_server_credentials([(certificates.pems.key, certificates.pems.cert)])


def _bloat(_request: Any, answer: pb.NodeGroupTemplateNodeInfoResponse) -> pb.NodeGroupTemplateNodeInfoResponse:
    padding = pb.NodeGroup(debug="x" * 600_000).SerializeToString()
    return pb.NodeGroupTemplateNodeInfoResponse(
        nodeInfo=answer.nodeInfo + padding, nodeBytes=answer.nodeBytes + padding
    )


def _unknown_is_empty(old: Handler) -> Handler:
    def new(self: Any, request: Any, context: grpc.ServicerContext) -> Any:
        try:
            return old(self, request, context)
        except NotFound:
            return pb.NodeGroupTargetSizeResponse()

    return new


def _tear_down(self: Any, _request: Any, _context: grpc.ServicerContext) -> None:
    for group in self._books.served_groups:
        names = tuple(self._books.members(group.name).live)
        self._ledger.execute(DeleteNodes(node_group=group.name, instances=names), current_call().cause)


FAULTS = (
    fault("no-cleanup", "the method Cleanup is missing", "1 69", lambda: delattr(CloudProvider, "Cleanup")),
    fault(
        "refresh-asks-the-cloud",
        "Refresh lists the machines, and fails with the cloud",
        "2 68",
        _refresh_asks_the_cloud,
    ),
    fault("waits-for-refresh", "nothing is answered before the first Refresh", "3", _wait_for_refresh),
    fault("rejects-the-future", "unknown fields are refused", "4", everywhere(before(_no_unknown_fields))),
    fault("one-at-a-time", "a call that comes during another is refused", "5 51", _one_at_a_time),
    fault(
        "lets-everybody-in", "TLS asks no client for a certificate", "7", change(Certificates, "credentials", _anybody)
    ),
    fault(
        "bloated-template",
        "template answers are larger than a mebibyte",
        "8",
        handler("NodeGroupTemplateNodeInfo", after(_bloat)),
    ),
    fault("asks-who-you-are", "calls without a credential are refused", "9", everywhere(before(_credentials))),
    fault(
        "unknown-is-empty",
        "unknown groups have the target size 0",
        "10 70",
        handler("NodeGroupTargetSize", _unknown_is_empty),
    ),
    fault(
        "groups-need-the-cloud", "NodeGroups fails with the cloud", "12", handler("NodeGroups", before(needs_the_cloud))
    ),
    fault(
        "sizes-need-the-cloud",
        "NodeGroupTargetSize fails with the cloud",
        "23",
        handler("NodeGroupTargetSize", before(needs_the_cloud)),
    ),
    fault(
        "lists-need-the-cloud",
        "NodeGroupNodes fails with the cloud",
        "42",
        handler("NodeGroupNodes", before(needs_the_cloud)),
    ),
    fault(
        "templates-need-the-cloud",
        "templates fail with the cloud",
        "60",
        handler("NodeGroupTemplateNodeInfo", before(needs_the_cloud)),
    ),
    fault("cleanup-tears-down", "Cleanup deletes everything", "69", handler("Cleanup", before(_tear_down))),
)
