"""Cluster Autoscaler's gRPC expander: which of its scale-up options to take. Optional, on a port of its own.

The autoscaler insists on TLS here and never shows a certificate itself, so a port that demands client certificates
cannot serve it.
"""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc

from app.clock import Clock
from app.domain.expansion import Choice, best_choices
from app.errors import ConfigurationError, Problem
from app.ledger.ledger import Ledger
from app.log import get_logger
from app.rpc.gen import expander_pb2 as pb
from app.rpc.gen.expander_pb2_grpc import ExpanderServicer, add_ExpanderServicer_to_server
from app.rpc.tls import CONNECTION_AGE_MS, Certificates, ServerFiles

_log = get_logger(room="expander")


class Expander(ExpanderServicer):
    """Answers from the books."""

    def __init__(self, ledger: Ledger, clock: Clock) -> None:
        self._ledger = ledger
        self._clock = clock

    def BestOptions(self, request: pb.BestOptionsRequest, context: grpc.ServicerContext) -> pb.BestOptionsResponse:
        """The cheapest options in stock. Never empty for a request that is not: that would mean no scale-up."""
        choices = [Choice(node_group=option.nodeGroupId, count=option.nodeCount) for option in request.options]
        best = best_choices(choices, self._ledger.books, self._clock.now())
        _log.info("expander asked", options=[choice.node_group for choice in choices], best=list(best))
        chosen = [pb.Option(nodeGroupId=o.nodeGroupId, nodeCount=o.nodeCount) for o in request.options]
        return pb.BestOptionsResponse(options=[option for option in chosen if option.nodeGroupId in best])


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpanderServer:
    """A server for the expander alone."""

    server: grpc.Server
    port: int

    def start(self) -> None:
        """Begin to answer."""
        self.server.start()

    def stop(self, grace_s: float) -> None:
        """Take no more calls; the autoscaler then chooses without us."""
        self.server.stop(grace_s)


def build_expander(ledger: Ledger, clock: Clock, address: str, files: ServerFiles) -> ExpanderServer:
    """A server on an address `host:port`, not started; port 0 takes a free one.

    Raises:
        ConfigurationError: the TLS files are not usable, or the address is taken.
    """
    pool = ThreadPoolExecutor(max_workers=4, thread_name_prefix="expander")
    options = (("grpc.so_reuseport", 0), ("grpc.max_connection_age_ms", CONNECTION_AGE_MS))
    server = grpc.server(pool, options=options)
    add_ExpanderServicer_to_server(Expander(ledger, clock), server)  # type: ignore[no-untyped-call] # generated
    try:
        port = server.add_secure_port(address, Certificates(files).credentials())
    except RuntimeError as error:
        words = f"cannot listen on {address}: is another process using the port?"
        problem = Problem(source="expander", line=None, path="expander.listen", message=words)
        raise ConfigurationError((problem,)) from error
    return ExpanderServer(server=server, port=port)
