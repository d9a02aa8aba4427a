"""The gRPC server: the provider service, health and reflection on one port."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from app.clock import Clock, Ids
from app.errors import ProviderError
from app.ledger.ledger import Ledger
from app.ledger.serving import obstacles
from app.rpc.cloudprovider import CloudProvider
from app.rpc.gen.externalgrpc_pb2_grpc import add_CloudProviderServicer_to_server
from app.rpc.interceptors import SERVICE, Edge, RpcObserver
from app.rpc.tls import CONNECTION_AGE_MS, Certificates, TlsFiles
from app.rpc.traffic import Traffic

_WORKERS = 32
_OPTIONS = (
    # Two servers on one port would each answer half of the autoscaler's calls.
    ("grpc.so_reuseport", 0),
    # Clients may keep idle connections alive; policing their pings would cut the connection just when it is needed.
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 5000),
    ("grpc.http2.max_ping_strikes", 0),
    ("grpc.keepalive_permit_without_calls", 1),
    ("grpc.max_receive_message_length", 16 * 1024 * 1024),
)


class ListenError(ProviderError):
    """The address cannot be listened on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RpcServer:
    """A gRPC server and its health service."""

    server: grpc.Server
    provider: CloudProvider
    traffic: Traffic
    health: health.HealthServicer
    ledger: Ledger
    port: int

    def start(self) -> None:
        """Begin to answer."""
        self.update_health()
        self.server.start()

    def update_health(self) -> None:
        """Say SERVING once there is a picture of the cloud."""
        is_serving = not obstacles(self.ledger.books)
        status = health_pb2.HealthCheckResponse.SERVING if is_serving else health_pb2.HealthCheckResponse.NOT_SERVING
        for service in ("", SERVICE):
            self.health.set(service, status)

    def refuse(self) -> None:
        """Say NOT_SERVING, and let no more calls in: they are answered UNAVAILABLE."""
        self.health.enter_graceful_shutdown()
        self.traffic.close()

    def stop(self, grace_s: float) -> None:
        """Let no more calls in, answer those under way, close the port.

        The port last: a call that gRPC has taken and not handed over yet is dropped with it, and ends as CANCELLED.
        """
        self.refuse()
        self.traffic.settle(grace_s)
        self.server.stop(grace_s).wait(grace_s + 1)
        self.provider.close()


def build_server(
    *,
    ledger: Ledger,
    clock: Clock,
    ids: Ids,
    address: str,
    gpu_label: str,
    observer: RpcObserver,
    tls: TlsFiles | None = None,
) -> RpcServer:
    """A server on an address `host:port`; port 0 takes a free one. Plain text without `tls`.

    Raises:
        ConfigurationError: the TLS files are not usable.
        ListenError: the address is taken or not ours.
    """
    certificates = None if tls is None else Certificates(tls)
    edge = Edge(
        clock,
        ids,
        gate=lambda: obstacles(ledger.books),
        observer=observer,
        allowed_clients=() if tls is None else tls.allowed_clients,
    )
    server = grpc.server(
        ThreadPoolExecutor(max_workers=_WORKERS, thread_name_prefix="rpc"),
        interceptors=[edge],
        options=_OPTIONS if certificates is None else (*_OPTIONS, ("grpc.max_connection_age_ms", CONNECTION_AGE_MS)),
    )
    provider = CloudProvider(ledger, clock, ids, gpu_label)
    add_CloudProviderServicer_to_server(provider, server)  # type: ignore[no-untyped-call] # generated without types
    servicer = health.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    reflection.enable_server_reflection((SERVICE, health.SERVICE_NAME, reflection.SERVICE_NAME), server)
    try:
        if certificates is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, certificates.credentials())
    except RuntimeError as error:
        raise ListenError(f"cannot listen on {address}: is another process using the port?") from error
    return RpcServer(server=server, provider=provider, traffic=edge.traffic, health=servicer, ledger=ledger, port=port)
