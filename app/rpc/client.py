"""A client of the provider service, for the demonstration, examples and tests. It asks what Cluster Autoscaler asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import grpc

from app.errors import Unreachable
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen.externalgrpc_pb2_grpc import CloudProviderStub


class CallFailed(Unreachable):
    """The provider refused or could not be reached; `status` is the name of the gRPC status."""

    def __init__(self, method: str, error: grpc.RpcError) -> None:
        super().__init__(f"{method}: {error.code().name}: {error.details()}", method=method)
        self.status = error.code().name


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientFiles:
    """PEM files as the autoscaler's cloud configuration names them."""

    cert: Path
    key: Path
    cacert: Path

    def credentials(self) -> grpc.ChannelCredentials:
        """Credentials of a connection; OSError if a file cannot be read."""
        return grpc.ssl_channel_credentials(
            self.cacert.read_bytes(), private_key=self.key.read_bytes(), certificate_chain=self.cert.read_bytes()
        )


class Client:
    """One connection, in plain text or with mutual TLS. Every call has the autoscaler's own deadline of five seconds.

    Raises:
        CallFailed: from every method, when the answer is not OK.
    """

    def __init__(self, address: str, timeout_s: float = 5.0, files: ClientFiles | None = None) -> None:
        if files is None:
            self._channel = grpc.insecure_channel(address)
        else:
            self._channel = grpc.secure_channel(address, files.credentials())
        self._stub = CloudProviderStub(self._channel)  # type: ignore[no-untyped-call] # generated without types
        self._timeout_s = timeout_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def raw(self, method: str, request: object) -> object:
        """Any method with a request of its own type; the answer's type is the method's."""
        try:
            answer: object = getattr(self._stub, method)(request, timeout=self._timeout_s)
        except grpc.RpcError as error:
            raise CallFailed(method, error) from error
        return answer

    def node_groups(self) -> Sequence[pb.NodeGroup]:
        """Every served group."""
        answer = self.raw("NodeGroups", pb.NodeGroupsRequest())
        assert isinstance(answer, pb.NodeGroupsResponse)  # noqa: S101 - what the stub returns
        return answer.nodeGroups

    def target_size(self, node_group: str) -> int:
        """How many nodes a group should have."""
        answer = self.raw("NodeGroupTargetSize", pb.NodeGroupTargetSizeRequest(id=node_group))
        assert isinstance(answer, pb.NodeGroupTargetSizeResponse)  # noqa: S101 - likewise
        return answer.targetSize

    def instances(self, node_group: str) -> Sequence[pb.Instance]:
        """Every listed instance of a group."""
        answer = self.raw("NodeGroupNodes", pb.NodeGroupNodesRequest(id=node_group))
        assert isinstance(answer, pb.NodeGroupNodesResponse)  # noqa: S101 - likewise
        return answer.instances

    def increase_size(self, node_group: str, delta: int) -> None:
        """Ask for more nodes."""
        self.raw("NodeGroupIncreaseSize", pb.NodeGroupIncreaseSizeRequest(id=node_group, delta=delta))

    def decrease_target_size(self, node_group: str, delta: int) -> None:
        """Release wishes; `delta` is negative."""
        self.raw("NodeGroupDecreaseTargetSize", pb.NodeGroupDecreaseTargetSizeRequest(id=node_group, delta=delta))

    def delete_nodes(self, node_group: str, provider_ids: Sequence[str]) -> None:
        """Give instances back, named as the autoscaler names machines that never registered."""
        nodes = [pb.ExternalGrpcNode(providerID=provider_id, name=provider_id) for provider_id in provider_ids]
        self.raw("NodeGroupDeleteNodes", pb.NodeGroupDeleteNodesRequest(id=node_group, nodes=nodes))
