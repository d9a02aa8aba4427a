"""The 15 RPCs: translate, ask the books or the ledger, translate. No handler calls the cloud or waits for a machine."""

import grpc

from app.clock import Clock, Ids
from app.domain.books import Books
from app.domain.ids import instance_name
from app.domain.instance.commands import LearnProviderId
from app.domain.instance.state import Instance
from app.domain.nodegroup.commands import DecreaseTargetSize, DeleteNodes, IncreaseSize, RecordJoined
from app.domain.nodegroup.decide import served_group
from app.domain.nodegroup.joining import success
from app.errors import InvalidRequest
from app.ledger.ledger import Ledger
from app.log import get_logger
from app.rpc.answers import Answers, Wire, available_gpu_types
from app.rpc.gen import externalgrpc_pb2 as pb
from app.rpc.gen.externalgrpc_pb2_grpc import CloudProviderServicer
from app.rpc.generation import encode_options, why_withheld
from app.rpc.interceptors import current_call
from app.rpc.prices import price_of_node, price_of_pod
from app.rpc.spellings import Spellings

_FAKE_NODE = "k8s.io/cluster-autoscaler/fake-node-reason"
"""The autoscaler marks its stand-ins for machines without a node with this annotation, and says why they have none."""
_NEVER_REGISTERED = "unregistered"

_log = get_logger()


class CloudProvider(CloudProviderServicer):
    """Cluster Autoscaler's external cloud provider."""

    def __init__(self, ledger: Ledger, clock: Clock, ids: Ids, gpu_label: str) -> None:
        self._ledger = ledger
        self._ids = ids
        self._gpu_label = gpu_label
        self._answers = Answers(clock)
        self._spellings = Spellings(ledger)
        self._warned: set[tuple[str, ...]] = set()

    def close(self) -> None:
        """Write nothing more; for when no RPC is answered any longer."""
        self._spellings.close()

    @property
    def _books(self) -> Books:
        return self._ledger.books

    def NodeGroups(self, request: pb.NodeGroupsRequest, context: grpc.ServicerContext) -> Wire:
        """Every served group, always in the same order."""
        return self._answers.groups(self._books)

    def NodeGroupForNode(
        self, request: pb.NodeGroupForNodeRequest, context: grpc.ServicerContext
    ) -> pb.NodeGroupForNodeResponse | Wire:
        """The group of a node with its limits; an empty id for nodes that are not ours or on their way out."""
        if not request.HasField("node"):
            raise InvalidRequest("the request names no node")
        books = self._books
        instance = books.find(request.node.providerID, request.node.name)
        if instance is None or not instance.state.is_live or instance.node_group not in books.served_names:
            return pb.NodeGroupForNodeResponse(nodeGroup=pb.NodeGroup())
        self._learn(request.node, instance)
        return self._answers.group(instance.node_group, books)

    def _learn(self, node: pb.ExternalGrpcNode, instance: Instance) -> None:
        """A real node shows how Kubernetes spells the provider id; it is written down without waiting for the disk."""
        if _FAKE_NODE in node.annotations or node.providerID.endswith("://"):
            return
        if node.providerID not in {"", instance.provider_id} and not instance.provider_id_learned:
            command = LearnProviderId(instance=instance.name, provider_id=node.providerID)
            self._spellings.learn(command, current_call().cause)
        elif node.providerID and success(instance, self._books.groups[instance.node_group]):
            self._spellings.learn(RecordJoined(instance=instance.name), current_call().cause)

    def NodeGroupTargetSize(
        self, request: pb.NodeGroupTargetSizeRequest, context: grpc.ServicerContext
    ) -> pb.NodeGroupTargetSizeResponse:
        """How many nodes the group should have."""
        books = self._books
        group = served_group(books, request.id)
        return pb.NodeGroupTargetSizeResponse(targetSize=books.target_size(group.name))

    def NodeGroupNodes(self, request: pb.NodeGroupNodesRequest, context: grpc.ServicerContext) -> Wire:
        """Every instance of the group, wishes and failures too, each with a state."""
        books = self._books
        group = served_group(books, request.id)
        return self._answers.nodes(group.name, books.members(group.name))

    def NodeGroupIncreaseSize(
        self, request: pb.NodeGroupIncreaseSizeRequest, context: grpc.ServicerContext
    ) -> pb.NodeGroupIncreaseSizeResponse:
        """Take on `delta` more nodes, durably; the machines come later."""
        call = current_call()
        command = IncreaseSize(node_group=request.id, delta=request.delta, names=self._mint(request.id, request.delta))
        self._ledger.execute(command, call.cause, call.not_after)
        return pb.NodeGroupIncreaseSizeResponse()

    def _mint(self, node_group: str, delta: int) -> tuple[str, ...]:
        """New names, one a node; none if the request is going to be refused for its size anyway.

        Whether an instance that ended long ago had such a name the ledger asks the store, once for all of them: asked
        here one by one, a thousand names would outlast the autoscaler's patience.
        """
        books = self._books
        group = books.groups.get(node_group)
        if group is None or delta > group.spec.max_size:
            return ()
        names: dict[str, None] = {}
        while len(names) < delta:
            name = instance_name(node_group, self._ids.suffix())
            if name not in books.instances:
                names[name] = None
        return tuple(names)

    def NodeGroupDeleteNodes(
        self, request: pb.NodeGroupDeleteNodesRequest, context: grpc.ServicerContext
    ) -> pb.NodeGroupDeleteNodesResponse:
        """Give the named instances back, all or none; the machines go later.

        A machine of our own has one provider id for ever: where no instance has it, it was given back before.
        """
        call = current_call()
        served_group(self._books, request.id)
        books = self._books
        taken = [node for node in request.nodes if not books.is_free_machine(node.providerID, request.id)]
        found = [(node, self._named(node)) for node in taken]
        command = DeleteNodes(
            node_group=request.id,
            instances=tuple(instance.name for _, instance in found),
            unregistered=frozenset(
                instance.name for node, instance in found if node.annotations.get(_FAKE_NODE) == _NEVER_REGISTERED
            ),
        )
        self._ledger.execute(command, call.cause, call.not_after)
        return pb.NodeGroupDeleteNodesResponse()

    def _named(self, node: pb.ExternalGrpcNode) -> Instance:
        key = self._books.node_key(node.providerID, node.name)
        if key is None:
            raise InvalidRequest(f"node {node.name[:100]!r} ({node.providerID[:100]!r}) is no instance of ours")
        instance = self._books.find_by_key(key) or self._ledger.find_ended(key)
        if instance is None:
            raise InvalidRequest(f"node {node.name[:100]!r} ({node.providerID[:100]!r}) is no instance of ours")
        return instance

    def NodeGroupDecreaseTargetSize(
        self, request: pb.NodeGroupDecreaseTargetSizeRequest, context: grpc.ServicerContext
    ) -> pb.NodeGroupDecreaseTargetSizeResponse:
        """Drop wishes for which no machine may exist."""
        call = current_call()
        command = DecreaseTargetSize(node_group=request.id, delta=request.delta)
        self._ledger.execute(command, call.cause, call.not_after)
        return pb.NodeGroupDecreaseTargetSizeResponse()

    def NodeGroupTemplateNodeInfo(
        self, request: pb.NodeGroupTemplateNodeInfoRequest, context: grpc.ServicerContext
    ) -> Wire:
        """The node that the group's next machine would become."""
        books = self._books
        return self._answers.template_response(served_group(books, request.id), books)

    def NodeGroupGetOptions(
        self, request: pb.NodeGroupAutoscalingOptionsRequest, context: grpc.ServicerContext
    ) -> pb.NodeGroupAutoscalingOptionsResponse:
        """The group's own options where the client can be told them without harm, else none: "your own flags"."""
        group = served_group(self._books, request.id)
        defaults = request.defaults if request.HasField("defaults") else None
        overrides = group.spec.autoscaling_options
        options = encode_options(defaults, overrides)
        if defaults is not None and options is None and not overrides.is_empty():
            self._warn_once("options withheld", node_group=request.id, reason=why_withheld(defaults, overrides))
        return pb.NodeGroupAutoscalingOptionsResponse(nodeGroupAutoscalingOptions=options)

    def _warn_once(self, event: str, **details: str) -> None:
        """Say what the operator can change, and not again with every loop of the autoscaler."""
        words = (event, *details.values())
        if words not in self._warned:
            self._warned.add(words)
            _log.warning(event, **details)

    def GPULabel(self, request: pb.GPULabelRequest, context: grpc.ServicerContext) -> pb.GPULabelResponse:
        """The label that says "this node is supposed to have a GPU"."""
        return pb.GPULabelResponse(label=self._gpu_label)

    def GetAvailableGPUTypes(
        self, request: pb.GetAvailableGPUTypesRequest, context: grpc.ServicerContext
    ) -> pb.GetAvailableGPUTypesResponse:
        """Every value that the GPU label can have."""
        return available_gpu_types(self._books)

    def PricingNodePrice(
        self, request: pb.PricingNodePriceRequest, context: grpc.ServicerContext
    ) -> pb.PricingNodePriceResponse:
        """What a node costs over a period."""
        return pb.PricingNodePriceResponse(price=price_of_node(request, self._books, self._answers))

    def PricingPodPrice(
        self, request: pb.PricingPodPriceRequest, context: grpc.ServicerContext
    ) -> pb.PricingPodPriceResponse:
        """The least a pod costs over a period."""
        return pb.PricingPodPriceResponse(price=price_of_pod(request, self._books, self._answers))

    def Refresh(self, request: pb.RefreshRequest, context: grpc.ServicerContext) -> pb.RefreshResponse:
        """Nothing to do: the jobs keep the books fresh, and the autoscaler's loop must not wait for the cloud."""
        return pb.RefreshResponse()

    def Cleanup(self, request: pb.CleanupRequest, context: grpc.ServicerContext) -> pb.CleanupResponse:
        """The autoscaler goes away, at each of its restarts. Machines stay."""
        return pb.CleanupResponse()
